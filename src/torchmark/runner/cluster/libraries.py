"""Compiled C++ on its way between machines: packed with the hash of its content, unpacked where it is measured.

Apart from the node's server, because files from other machines are checked here.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from torchmark.files import SHIPPING, put_in_place
from torchmark.model.environment import Sdk
from torchmark.model.outcome import Failure, FailureKind, may_pass_later
from torchmark.model.plan import Target
from torchmark.model.task import Compiled, Snippet
from torchmark.native.cache import Cache
from torchmark.runner.cluster.protocol import LibrarySet, PackedLibrary
from torchmark.runner.prepare import build_snippets

# Where libraries from elsewhere lie in the cache. The name is as long as that of the folder for those made here, and so
# are the names within: a loaded library's path lies in the heap.
FOLDER = SHIPPING
NAME_LENGTH = 32
_NAME = re.compile(rf"[0-9a-f]{{{NAME_LENGTH}}}")

PackedLibraries = dict[Snippet, "PackedLibrary | Failure"]


def pack_libraries(built: Mapping[Snippet, Compiled | Failure]) -> tuple[PackedLibraries, dict[str, bytes]]:
    """What stands for each snippet, and the libraries, each once."""
    names: dict[tuple[int, int], str] = {}
    contents: dict[str, bytes] = {}
    packed: PackedLibraries = {}
    for snippet, one in built.items():
        if isinstance(one, Failure):
            # What a machine was short of is no matter of the snippet: others try themselves.
            if not may_pass_later(one):
                packed[snippet] = one
            continue
        # Links to one file are one library.
        status = os.stat(one.library)
        file = status.st_dev, status.st_ino
        if file not in names:
            content = Path(one.library).read_bytes()
            names[file] = hash_content(content)
            contents[names[file]] = content
        packed[snippet] = PackedLibrary(one.key, names[file])
    return packed, contents


def hash_content(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:NAME_LENGTH]


_DAMAGED = Failure(
    FailureKind.MISSING, "Its compiled library did not arrive as it was sent. Run it again: torchmark run --resume."
)


class LibraryFolder:
    """A folder of libraries from elsewhere, by their content. All processes of a node share it."""

    def __init__(self, folder: Path, fetch: Callable[[object], bytes]) -> None:
        """`fetch` gives what was shared."""
        self._cache = Cache(folder, holds=lambda path: hash_content(path.read_bytes()) == path.stem)
        self._fetch = fetch

    def unpack(
        self, snippets: Sequence[Snippet], target: Target, library_sets: Sequence[LibrarySet]
    ) -> dict[Snippet, Compiled | Failure]:
        """Those of the snippets that came compiled."""
        found: dict[Snippet, Compiled | Failure] = {}
        for library_set in library_sets:
            by_target = dict(library_set.by_target).get(target, {})
            for snippet in snippets:
                one = by_target.get(snippet)
                if isinstance(one, PackedLibrary):
                    path = self._place(one.content, library_set.contents)
                    found[snippet] = _DAMAGED if path is None else Compiled(str(path), one.key)
                elif one is not None:
                    found[snippet] = one
        return found

    def build(
        self,
        target: Target,
        library_sets: Sequence[LibrarySet],
        environ: Mapping[str, str],
        made: dict[Snippet, Compiled | Failure],
        snippets: Sequence[Snippet],
        sdk: Sdk,
        jobs: int,
    ) -> Mapping[Snippet, Compiled | Failure]:
        """Add all of these to `made`: what came compiled, and the rest compiled here.

        A text with a path in it may be another one on another node, so that its library did not come.
        """
        made |= self.unpack(snippets, target, library_sets)
        missing = [snippet for snippet in snippets if snippet not in made]
        if missing:
            made |= build_snippets(missing, sdk, environ, jobs=jobs)
        return made

    def _place(self, name: str, contents: Mapping[str, object]) -> Path | None:
        """The library's file; it appears complete, or not at all. Those that nobody needed for long make room.

        None if what came is not what its name says.
        """
        if not _NAME.fullmatch(name):
            return None
        if there := self._cache.find(name):
            return there
        path, content = self._cache.path(name), self._fetch(contents[name])
        if hash_content(content) != name:
            return None
        with self._cache.workshop() as folder:
            new = folder / path.name
            new.write_bytes(content)
            new.chmod(0o755)
            put_in_place(new, path)
        self._cache.evict([path])
        return path
