"""Two environments as alike as they can be before anything runs: names of one length, and one file for equal libraries.

Every module keeps its path, and the heap is laid out by their lengths. And equal code takes up to 1 % more or less time
in another copy of its file, because of where the system happened to put it in real memory, in all layouts alike.
"""

from __future__ import annotations

import contextlib
import filecmp
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from torchmark.model.plan import Target
from torchmark.runner.folders import make_scratch
from torchmark.runner.spec import find_interpreter

# Of one length.
BASE, HEAD = "base", "head"
VENV_MARK = "pyvenv.cfg"


class Aliases:
    """A folder with another name for each environment; it goes with `close`, or with this process."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def give(self, pythons: Sequence[str]) -> list[str]:
        """The interpreters by other names, if both are of virtual environments: only these do not mind."""
        base, head = (Path(python).parent.parent for python in pythons)
        if not all((home / VENV_MARK).is_file() for home in (base, head)):
            return list(pythons)
        try:
            self._folder = self._folder or make_scratch()
            shared = dict(_find_equal_libraries(base, head))
            # Both, in the same order: Python also keeps what it finds in folders, in the order in which it finds it.
            for home, name in ((base, BASE), (head, HEAD)):
                shadow(home, self._folder / name, shared)
        except OSError:
            # Comparisons are a little less sharp without.
            return list(pythons)
        names = zip((BASE, HEAD), map(Path, pythons), strict=True)
        return [os.path.join(self._folder, name, python.parent.name, python.name) for name, python in names]

    def give_targets(self, targets: Sequence[Target], environ: Mapping[str, str]) -> dict[Target, str]:
        """The same for two targets that name their interpreters; nothing for others."""
        pythons = [target.python for target in targets]
        if len(targets) != 2 or None in pythons:
            return {}
        real = [find_interpreter(python, environ) for python in pythons if python is not None]
        return dict(zip(targets, self.give(real), strict=True))

    def close(self) -> None:
        """Remove the links."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def shadow(home: Path, into: Path, replaced: dict[Path, Path]) -> None:
    """Make a folder that looks like another one, but for some files, which are links to others.

    `replaced` has them by their place within. Whole folders are links where nothing in them is replaced.
    """
    into.mkdir()
    opened = {parent for place in replaced for parent in place.parents}
    for folder in sorted(opened, key=lambda one: len(one.parts)):
        (into / folder).mkdir(exist_ok=True)
        for entry in sorted((home / folder).iterdir()):
            place = folder / entry.name
            if place not in opened:
                (into / place).symlink_to(replaced.get(place, entry))
    if not opened:
        for entry in sorted(home.iterdir()):
            (into / entry.name).symlink_to(entry)


def _find_equal_libraries(base: Path, head: Path) -> Iterator[tuple[Path, Path]]:
    """Native libraries that both environments have, each in a file of its own: the place, and base's file."""
    for folder, names, files in os.walk(head):
        # Links lead out of the environment, or to what is walked through anyway.
        names[:] = [name for name in names if name != "__pycache__"]
        for name in files:
            if ".so" not in name:
                continue
            ours = Path(folder) / name
            place = ours.relative_to(head)
            with contextlib.suppress(OSError):
                if _are_copies(base / place, ours):
                    yield place, base / place


def _are_copies(base: Path, head: Path) -> bool:
    if base.is_symlink() or head.is_symlink() or not base.is_file() or os.path.samefile(base, head):
        return False
    return filecmp.cmp(base, head, shallow=False)
