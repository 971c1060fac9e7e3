"""A run as it is kept: what was asked for, where it ran, and all that came of it."""

from __future__ import annotations

import dataclasses

from torchmark.model.outcome import Activity, Outcome
from torchmark.model.plan import Plan


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
