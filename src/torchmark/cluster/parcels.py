"""What goes to nodes and what comes back: plain values, whatever carries them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TypeAlias

from torchmark.model.bout import Bout, Gauge, Pace, Visit
from torchmark.model.case import Case
from torchmark.model.environment import Environment
from torchmark.model.inputs import FuzzedInput
from torchmark.model.job import RaceJob
from torchmark.model.judgement import SideFailure
from torchmark.model.node import Node
from torchmark.model.outcome import Failure, Outcome
from torchmark.model.plan import Order, Sampling, Target
from torchmark.model.snippet import Snippet
from torchmark.model.times import Times
from torchmark.runner.layouts import Match


@dataclasses.dataclass(frozen=True)
class Outset:
    """What whoever measures for a run has to know from the start. A node has its own programs and caches."""

    torchmark: str
    """The version, which has to be the same everywhere."""
    targets: tuple[Target, ...]
    sampling: Sampling
    folder: str
    """The working folder, if the node has one by this name."""
    path: tuple[str, ...]
    """Where modules are found, for an interpreter like the program's own."""
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables that change what torch does, or how long the environment is."""
    aligned: bool = False
    """Whether two targets are counted under names of one length."""


# --- what is asked for -------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Survey:
    """What is this node like?"""


@dataclasses.dataclass(frozen=True)
class Canary:
    """Start those that count, and have them count what is counted everywhere."""


@dataclasses.dataclass(frozen=True)
class Build:
    """Compile the C++ of these cases in every target."""

    cases: tuple[Case, ...]


@dataclasses.dataclass(frozen=True)
class Measure:
    """Carry out these orders. `cases` are theirs and those that they are held to; `outfits` have compiled C++."""

    orders: tuple[Order, ...]
    cases: tuple[Case, ...]
    outfits: tuple[object, ...] = ()
    """What the fleet has given for shared `Outfit` values."""


@dataclasses.dataclass(frozen=True)
class Race:
    """Time statements in turns on an input."""

    input: FuzzedInput
    job: RaceJob
    timeout_s: float


@dataclasses.dataclass(frozen=True)
class PrepareBouts:
    """Make what both sides of these pairs of cases run. Opens the arena where they are held against each other."""

    pairs: tuple[tuple[Case, Case], ...]
    base: Target
    head: Target
    together: bool
    timeout_s: float
    outfits: tuple[object, ...] = ()


@dataclasses.dataclass(frozen=True)
class StartLayouts:
    """Have more layouts of memory in the arena."""

    layouts: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class GaugeBout:
    """How long does a run take on each side?"""

    bout: Bout


@dataclasses.dataclass(frozen=True)
class VisitBout:
    """Have both sides run in turns in one layout."""

    layout: int
    bout: Bout
    pace: Pace


Body: TypeAlias = Survey | Canary | Build | Measure | Race | PrepareBouts | StartLayouts | GaugeBout | VisitBout


# --- what is answered --------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Surveyed:
    """What a node is like before anything is counted there."""

    node: Node
    torchmark: str
    libc: str
    """The system's C library and processor architecture, which compiled code depends on."""
    environments: tuple[Environment, ...]
    """Of those that time, in the order of the targets."""
    cache: str = ""
    """The folder of the cache. Libraries are loaded from there, and the lengths of their paths are counted."""
    compiles: bool = True
    """Whether it has a compiler."""


@dataclasses.dataclass(frozen=True)
class Heard:
    """What the canary takes here, and where it was counted, in the order of the targets."""

    counts: tuple[int, ...]
    environments: tuple[Environment, ...]


@dataclasses.dataclass(frozen=True)
class Ware:
    """A compiled snippet: the key that its symbols are named by, and the hash of the library that has it."""

    key: str
    content: str


@dataclasses.dataclass(frozen=True)
class Built:
    """What became of the C++ of some cases, by target; and the libraries by the hash of their content."""

    wares: tuple[tuple[Target, Mapping[Snippet, Ware | Failure]], ...]
    contents: Mapping[str, bytes]


@dataclasses.dataclass(frozen=True)
class Outfit:
    """The same as it is handed to those who measure: `contents` are what the fleet has given for shared libraries."""

    wares: tuple[tuple[Target, Mapping[Snippet, Ware | Failure]], ...]
    contents: Mapping[str, object]


@dataclasses.dataclass(frozen=True)
class Measured:
    """One outcome for each order."""

    outcomes: tuple[Outcome, ...]


@dataclasses.dataclass(frozen=True)
class Raced:
    """The times of each statement on an input, or why there are none."""

    result: tuple[Times, ...] | Failure
    environment: Environment | None
    node: Node | None


@dataclasses.dataclass(frozen=True)
class BoutsPrepared:
    """A bout for each pair, or which sides fail."""

    bouts: tuple[Bout | tuple[SideFailure, ...], ...]


@dataclasses.dataclass(frozen=True)
class LayoutsStarted:
    """Which layouts there are, and whether both sides are laid out alike."""

    layouts: tuple[int, ...]
    match: Match


@dataclasses.dataclass(frozen=True)
class Gauged:
    """How long a run takes, or which sides fail."""

    result: Gauge | tuple[SideFailure, ...]


@dataclasses.dataclass(frozen=True)
class Visited:
    """What a visit gave, or which sides failed."""

    result: Visit | tuple[SideFailure, ...]


@dataclasses.dataclass(frozen=True)
class Refused:
    """It cannot be done here, in the words of the error that says so."""

    message: str


Reply: TypeAlias = (
    Surveyed | Heard | Built | Measured | Raced | BoutsPrepared | LayoutsStarted | Gauged | Visited | Refused
)
