"""What a machine has, as far as it matters for measuring. None stands for what could not be found out."""

from __future__ import annotations

import dataclasses
import enum


@dataclasses.dataclass(frozen=True)
class Tool:
    """A program that was found, and what it says of its version."""

    path: str
    version: str | None


@dataclasses.dataclass(frozen=True)
class TorchBuild:
    """The torch of an interpreter, as it describes itself there."""

    version: str
    debug: bool
    cpu_capability: str | None
    num_threads: int
    accelerator: str | None
    commit: str | None = None
    build: str | None = None
    """Compiler, flags and libraries, in its own words."""


@dataclasses.dataclass(frozen=True)
class Machine:
    """Facts about a machine, without judgement."""

    system: str
    python: str
    cpu_model: str | None = None
    cores_online: int | None = None
    cores_allowed: int | None = None
    cpu_quota: float | None = None
    """How many cores' worth of time a container may use; None where it is not limited."""
    governor: str | None = None
    turbo: bool | None = None
    load: float | None = None
    """Runnable processes, averaged over the last minute."""
    virtual: bool | None = None
    steal_share: float | None = None
    """Share of CPU time since boot that the hypervisor gave to others while we wanted it."""
    aslr: bool | None = None
    aslr_can_be_disabled: bool | None = None
    valgrind: Tool | None = None
    compiler: Tool | None = None
    py_spy: Tool | None = None
    ptrace_allowed: bool | None = None
    torch: TorchBuild | None = None
    torch_problem: str | None = None
    """Why there is no `torch`: the last line of what importing it said."""


class FindingStatus(enum.Enum):
    """What a finding means for measurements."""

    GOOD = "good"
    NOTE = "note"
    PROBLEM = "problem"


@dataclasses.dataclass(frozen=True)
class Finding:
    """One judged fact: what was found, and what to do about it where something can be done."""

    topic: str
    status: FindingStatus
    fact: str
    advice: str | None = None
