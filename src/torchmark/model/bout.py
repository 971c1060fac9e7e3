"""What is compared by taking turns, and what one visit of a pair of processes gives."""

from __future__ import annotations

import dataclasses

from torchmark.model.job import Place
from torchmark.model.snippet import Compiled


@dataclasses.dataclass(frozen=True)
class PairedSide:
    """One side's statement as its process runs it."""

    stmt: str
    setup: str
    place: Place
    threads: int = 1
    compiled: Compiled | None = None
    """Where to find it if it is C++; the texts are then not looked at."""


@dataclasses.dataclass(frozen=True)
class PairedCase:
    """The two sides of a comparison."""

    base: PairedSide
    head: PairedSide


@dataclasses.dataclass(frozen=True)
class BlockPlan:
    """How blocks are cut, the same for both sides and in all layouts."""

    number: int
    """Runs of a timed block."""
    warm: int
    """Runs before it, which are not timed."""
    pairs: int
    """Blocks of each side in one visit."""


@dataclasses.dataclass(frozen=True)
class SideBlocks:
    """One side's blocks of a visit, in the order of the pairs: seconds, page faults, interruptions."""

    times: tuple[float, ...]
    faults: tuple[int, ...]
    switches: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Visit:
    """What both sides did in one layout, in turns; each block is `number` runs."""

    number: int
    base: SideBlocks
    head: SideBlocks


@dataclasses.dataclass(frozen=True)
class RunTime:
    """Seconds of one run on each side, at best."""

    base_s: float
    head_s: float
