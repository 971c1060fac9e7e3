"""A run as it is kept: what was asked for, where it ran, all its outcomes; and shards of runs."""

from __future__ import annotations

import dataclasses
import re

from torchmark.errors import UsageError
from torchmark.model.caveats import Caveat
from torchmark.model.outcome import Activity, CompileCosts, Failure, Outcome
from torchmark.model.plan import Case, Metric, Node, Plan, Target
from torchmark.model.task import Interval, Summary


@dataclasses.dataclass(frozen=True)
class Host:
    """The machine a run ran on, as far as results depend on it."""

    system: str
    """Kernel and processor architecture."""
    cpu_model: str | None = None
    cores_online: int | None = None
    cores_allowed: int | None = None
    cpu_quota: float | None = None
    compiler: str | None = None
    """What the C++ compiler says of its version."""


@dataclasses.dataclass(frozen=True)
class Source:
    """Where cases come from: a suite's name or a file, and the commit of the folder it is in, if that is a repository.

    `dirty` tells of changes that are in no commit.
    """

    suite: str
    commit: str | None = None
    dirty: bool = False


@dataclasses.dataclass(frozen=True)
class RunInfo:
    """What is known of a run without looking at its results. Moments are seconds since 1970."""

    id: str
    """Thirty-two hexadecimal digits, drawn at random: the first few tell it from all others."""
    name: str
    created: float
    finished: float | None
    """When all orders had outcomes; None for a run that was stopped, or is under way."""
    torchmark: str
    """The version that made it."""
    host: Host
    sources: tuple[Source, ...] = ()
    seed: int = 0
    """The hash seed of the workers' interpreters. Seeds of memory layouts are part of the sampling."""
    options: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """How the cases were chosen: options of the command line by name, to choose the same again."""
    orders: int = 0
    outcomes: int = 0
    failures: int = 0
    seal: str = ""
    """Shows the user who began the run that it was begun on this machine, with these programs and files; empty where
    that cannot be shown."""


@dataclasses.dataclass(frozen=True)
class Run:
    """A run with its results. An order has at most one outcome."""

    info: RunInfo
    plan: Plan
    outcomes: tuple[Outcome, ...]
    activities: tuple[Activity, ...] = ()


@dataclasses.dataclass(frozen=True)
class RunEntry:
    """A run as a list of runs shows it."""

    info: RunInfo
    cases: int
    targets: tuple[str, ...]
    """Names of those that it measures in."""
    torch_versions: tuple[str, ...]
    """Those that results are there of."""
    writer: int | None
    """The number of the process that is at it."""


# What a run is of, if it is not of all: a shard; or, where not all are put together yet, those that are.
SHARD = "shard"
MERGED = "merged"

_SHARD = re.compile("([0-9]{1,6})/([0-9]{1,6})")


@dataclasses.dataclass(frozen=True, order=True)
class Shard:
    """Which of how many, counted from 1.

    >>> str(Shard(2, 5))
    '2/5'
    """

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@dataclasses.dataclass(frozen=True, order=True)
class ShardPart:
    """A shard, and the run that it was carried out as."""

    shard: Shard
    run_id: str


def parse_shard(text: str) -> Shard:
    """The shard that is meant by such a text as 2/5."""
    match = _SHARD.fullmatch(text)
    if match is None or int(match[2]) == 0:
        raise UsageError(f"{text!r} is no shard: say which of how many, such as 2/5.")
    shard = Shard(int(match[1]), int(match[2]))
    if not 1 <= shard.number <= shard.of:
        raise UsageError(f"There is no shard {shard}: they are numbered from 1/{shard.of} to {shard.of}/{shard.of}.")
    return shard


def read_shard(info: RunInfo) -> Shard | None:
    """The shard that a run is; None for one that is whole, or that shards were put together to."""
    texts = dict(info.options).get(SHARD, ())
    return parse_shard(texts[0]) if texts else None


def read_parts(info: RunInfo) -> tuple[ShardPart, ...]:
    """The shards that are in a run which is not of all; none where it is of all."""
    shard = read_shard(info)
    if shard is not None:
        return (ShardPart(shard, info.id),)
    # Who was gone on with until nothing was missing is whole.
    texts = dict(info.options).get(MERGED, ()) if info.finished is None else ()
    found = [text.split(" ") for text in texts]
    if any(len(words) != 2 for words in found):
        raise UsageError(f"The run {info.id} was put together of what means nothing here: {', '.join(texts):.80}.")
    return tuple(ShardPart(parse_shard(shard), run_id) for shard, run_id in found)


def write_parts(parts: tuple[ShardPart, ...]) -> tuple[str, tuple[str, ...]]:
    return MERGED, tuple(f"{part.shard} {part.run_id}" for part in parts)


@dataclasses.dataclass(frozen=True)
class WallSummary:
    """What the clock says of a case: all rounds together."""

    times: Summary
    interval: Interval | None
    """95 % interval of the median; None where there are too few samples. Reaches to the medians of several rounds."""
    samples_s: tuple[float, ...]
    """Seconds per run, one value a block, round after round."""
    compiling: CompileCosts | None = None
    """For `torch.compile`: of the first round."""


@dataclasses.dataclass(frozen=True)
class CountSummary:
    """What counting says of a case, per run; the median of all rounds."""

    instructions: float
    spread: float | None
    """How far the layouts of all rounds are apart, as a share of the median; None where there is only one."""
    allocations: float
    tensor_allocations: float
    baseline: float | None
    """What the empty loop costs of it."""
    number: int
    """How many runs were counted in each layout."""
    totals: tuple[int, ...]
    """Instructions of so many runs, in each layout of each round."""


@dataclasses.dataclass(frozen=True)
class CaseSummary:
    """All that a run says of one case in one target."""

    case: Case
    target: Target
    wall: WallSummary | None = None
    count: CountSummary | None = None
    failures: tuple[tuple[Metric, Failure], ...] = ()
    """Each failure once, however many rounds had it."""
    caveats: tuple[Caveat, ...] = ()
    unchecked: str | None = None
    missing: tuple[Metric, ...] = ()
    """What was asked for and has no outcome yet."""
    nodes: tuple[Node, ...] = ()
    """Those that its results are of; none where all are of the run's own machine."""
