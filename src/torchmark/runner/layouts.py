"""Where the memory of a process lies: two processes can be laid out alike, and one build in several ways.

How fast the same code runs depends on addresses, by up to some per cent. Processes of two builds that lie alike differ
by a tenth of that, and what is left of it is seen by comparing in several layouts.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

MIB = 1 << 20
# The system puts libraries below the room that it leaves to the stack, which is as large as the stack may grow. The
# first is above the 128 MiB that it leaves at the least; a step is no multiple of the size of a large page.
FIRST_STACK_BYTES = 256 * MIB
STEP_BYTES = 921 * 4096
# What `personality` takes to lay every process out alike, and what the file in /proc shows then.
ADDR_NO_RANDOMIZE = 0x0040000

HASH_SEED = "PYTHONHASHSEED"
PADDING = "TORCHMARK_PADDING"
LAYOUT_VARIABLES = (HASH_SEED, PADDING)

# Runs in our own interpreter for a moment: what it sets stays when the program that it becomes is loaded. A system that
# does not allow it is found out afterwards.
_LAUNCH = """
import ctypes, os, resource, sys
try:
    ctypes.CDLL(None).personality(ctypes.c_ulong(int(sys.argv[1])))
except AttributeError:
    pass
try:
    resource.setrlimit(resource.RLIMIT_STACK, (int(sys.argv[2]), resource.getrlimit(resource.RLIMIT_STACK)[1]))
except (OSError, ValueError):
    pass
os.execv(sys.argv[3], sys.argv[3:])
"""


@dataclasses.dataclass(frozen=True)
class Layout:
    """One of many layouts, by its number; `padding_bytes` evens out what differs in length between two programs."""

    number: int
    padding_bytes: int = 0

    @property
    def stack_bytes(self) -> int:
        """How large the stack may grow."""
        return FIRST_STACK_BYTES + self.number * STEP_BYTES

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that belong to it."""
        return {HASH_SEED: str(self.number + 1), PADDING: "x" * self.padding_bytes}


def layout_command(layout: Layout, python: str) -> list[str]:
    """The command that becomes an interpreter in this layout."""
    numbers = (str(ADDR_NO_RANDOMIZE), str(layout.stack_bytes))
    return [sys.executable, "-I", "-S", "-c", _LAUNCH, *numbers, python]


def even_out(base: str, head: str) -> tuple[int, int]:
    """How many bytes of padding make the stacks of two programs begin alike.

    A program's path lies there twice: as its name and as its first argument.

    >>> even_out("/usr/bin/python3", "/venv/bin/python")
    (0, 0)
    >>> even_out("/a", "/abc")
    (4, 0)
    """
    lengths = [len(os.fsencode(path)) for path in (base, head)]
    longest = max(lengths)
    return 2 * (longest - lengths[0]), 2 * (longest - lengths[1])


class Mapped(NamedTuple):
    """A part of a file in memory that can be executed."""

    start: int
    size: int
    name: str


@dataclasses.dataclass(frozen=True)
class Map:
    """What lies where in a process, as far as it is code; and whether the system was kept from drawing addresses."""

    fixed: bool
    code: frozenset[Mapped]


def read_map(pid: int, root: Path = Path("/proc")) -> Map | None:
    """The map of a process; None where the system does not tell."""
    try:
        text = (root / str(pid) / "maps").read_text(errors="replace")
        persona = int((root / str(pid) / "personality").read_text(), 16)
    except (OSError, ValueError):
        return None
    return Map(bool(persona & ADDR_NO_RANDOMIZE), frozenset(_parse_maps(text)))


def _parse_maps(text: str) -> list[Mapped]:
    """The files that are mapped for execution, without their folders, which may differ.

    >>> _parse_maps("1000-3000 r-xp 00000000 08:01 7 /usr/lib/libc.so.6")
    [Mapped(start=4096, size=8192, name='libc.so.6')]
    """
    found = []
    for line in text.splitlines():
        parts = line.split(None, 5)
        if len(parts) == 6 and "x" in parts[1] and parts[5].startswith("/"):
            low, high = (int(end, 16) for end in parts[0].split("-"))
            found.append(Mapped(low, high - low, os.path.basename(parts[5])))
    return found


@dataclasses.dataclass(frozen=True)
class Match:
    """Whether two processes are laid out alike; if not, whether the system is to blame, or which files differ."""

    alike: bool
    refused: bool = False
    libraries: tuple[str, ...] = ()


def match_maps(base: Map | None, head: Map | None) -> Match:
    """Compare two maps. The interpreters themselves may have other names."""
    if base is None or head is None or not (base.fixed and head.fixed):
        return Match(alike=False, refused=True)
    if {(part.start, part.size) for part in base.code} == {(part.start, part.size) for part in head.code}:
        return Match(alike=True)
    sizes = [{part.name: part.size for part in side.code} for side in (base, head)]
    return Match(alike=False, libraries=_name_differing(*sizes))


def _name_differing(base: Mapping[str, int], head: Mapping[str, int]) -> tuple[str, ...]:
    """Those of another size, and those that only one has; the largest first."""
    names = [name for name in {**base, **head} if base.get(name) != head.get(name)]
    return tuple(sorted(names, key=lambda name: (-max(base.get(name, 0), head.get(name, 0)), name)))
