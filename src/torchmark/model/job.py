"""What a worker is asked to do: one statement measured in one way, or a pair timed in turns."""

from __future__ import annotations

import dataclasses
from typing import Union

from torchmark.model.task import Compiled

# Seeds of the memory layouts that a count is taken in. An odd number of them makes the median a count that was seen.
DEFAULT_LAYOUTS = (1, 2, 3, 4, 5)
# The heap as it happens to be.
BARE_LAYOUT = 0


@dataclasses.dataclass(frozen=True)
class Place:
    """The working folder, and where modules are found; None leaves that to the interpreter.

    The folder's name never reaches the process that measures: its length alone would change what is counted.
    """

    cwd: str
    sys_path: tuple[str, ...] | None = None


@dataclasses.dataclass(frozen=True)
class Given:
    """A global of the statement that travels along as bytes: in which form, how many, and code to run before."""

    name: str
    form: str
    size_bytes: int
    setup: str | None = None


@dataclasses.dataclass(frozen=True)
class PlacedStatement:
    """A statement as a process runs it."""

    stmt: str
    setup: str
    place: Place
    threads: int = 1
    givens: tuple[Given, ...] = ()
    compiled: Compiled | None = None
    """Where to find the statement if it is C++; `stmt` and `setup` are then not looked at."""


@dataclasses.dataclass(frozen=True)
class CountJob(PlacedStatement):
    """Count the instructions of `number` runs, once in each layout."""

    number: int = 100
    layouts: tuple[int, ...] = DEFAULT_LAYOUTS
    watch_compiler: bool = False
    """Fail if `torch.compile` compiles anything once the statement is warm."""


@dataclasses.dataclass(frozen=True)
class TimeJob(PlacedStatement):
    """Time blocks until they add up to `min_run_time_s`, for at most `max_run_time_s` in all.

    With a `threshold`, until the interquartile range is below that share of the median; with a `number`, a few blocks
    of so many runs, or exactly as many as `blocks` says, all after one setup.
    """

    min_run_time_s: float = 0.2
    max_run_time_s: float = 10.0
    threshold: float | None = None
    number: int | None = None
    blocks: int | None = None
    watch_compiler: bool = False
    """As for counting; the setup then runs once for the whole measurement."""


@dataclasses.dataclass(frozen=True)
class RaceJob:
    """Time several statements in turns, on the same variables: what `setup` makes, once, is global to all of them.

    `making` runs before it. It is not the user's own text, so lines of the setup are counted without it.

    In each round every statement runs one block, in an order that is drawn anew. Rounds go on until each statement has
    run for `min_run_time_s`, and for at most `max_run_time_s` in all, but there are never fewer than six. With a
    `threshold`, also until the interquartile range of each is below that share of its median; with a `number`, there
    are a few rounds of blocks of so many runs.
    """

    stmts: tuple[str, ...]
    setup: str
    place: Place
    threads: int = 1
    min_run_time_s: float = 0.02
    max_run_time_s: float = 10.0
    givens: tuple[Given, ...] = ()
    making: str = ""
    threshold: float | None = None
    number: int | None = None


@dataclasses.dataclass(frozen=True)
class GaugeJob(PlacedStatement):
    """Find out how long one run takes, at best, pinned to some cores; to choose the size of blocks by."""

    cores: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class PairJob(PlacedStatement):
    """Time blocks of a statement in turns with another process, or with a second statement in this one.

    There are as many pairs of blocks as `firsts`, which tells for each which side begins: 0 is base, 1 is head. Each
    block is `number` runs, after `warm` runs that are not timed. The other process has the other end of a socket that
    comes with the job, and the same `firsts`; what goes through it is the turn.
    """

    number: int = 1
    warm: int = 0
    firsts: tuple[int, ...] = ()
    side: int = 0
    partner: str | None = None
    """The other side's statement, where both run in this process, after one setup, on the same variables."""
    cores: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class ScriptJob:
    """Make TorchScript of a model and save it: `source` is Python that makes `jit_model`."""

    source: str
    path: str
    place: Place
    threads: int = 1
    givens: tuple[Given, ...] = ()


@dataclasses.dataclass(frozen=True)
class Way:
    """One way to compute something; it hands over its results itself."""

    stmt: str
    setup: str
    compiled: Compiled | None = None
    """Where to find it if it is C++."""


@dataclasses.dataclass(frozen=True)
class CheckJob:
    """See whether two ways compute the same."""

    first: Way
    second: Way
    place: Place
    threads: int = 1
    givens: tuple[Given, ...] = ()
    uses_compiler: bool = False


@dataclasses.dataclass(frozen=True)
class CompileJob:
    """Time the first execution of `stmt`, in which `compiled_model` is compiled.

    `setup` makes the inputs and `model`; `compiled_model` is made from it with this back end and mode.
    """

    stmt: str
    setup: str
    place: Place
    backend: str = "inductor"
    mode: str | None = None
    threads: int = 1
    givens: tuple[Given, ...] = ()


Job = Union[CountJob, TimeJob, RaceJob, GaugeJob, PairJob, ScriptJob, CheckJob, CompileJob]


@dataclasses.dataclass(frozen=True)
class PairedSide(PlacedStatement):
    """One side of a comparison."""


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
