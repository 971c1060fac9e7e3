"""What a result was measured in: versions, the machine, and what compiling against its torch needs."""

from __future__ import annotations

import dataclasses
import enum

from torchmark.model.plain import AS_MAPPING


@dataclasses.dataclass(frozen=True)
class Environment:
    """An interpreter, its torch, and what was around them."""

    python: str
    """Path of the interpreter."""
    python_version: str
    torch_version: str
    cpu_capability: str | None = None
    """The instruction set that torch's kernels used where they were measured."""
    native_capability: str | None = None
    """The instruction set that they use outside Valgrind."""
    debug_symbols: bool = False
    """Whether torch was built with them, so that functions have source files."""
    valgrind: str | None = None
    hash_seed: str | None = None
    variables: tuple[tuple[str, str], ...] = dataclasses.field(default=(), metadata=AS_MAPPING)
    """Environment variables that may change how torch behaves, in alphabetical order."""
    torch_commit: str | None = None
    torch_build: str | None = None
    """How torch was built, in its own words."""


@dataclasses.dataclass(frozen=True)
class Sdk:
    """Facts about one installed torch; `folder` is the package's own, where its headers and libraries are."""

    python: str
    folder: str
    version: str
    git_version: str
    cxx11_abi: bool
    cxx_flags: str
    """What torch itself was compiled with, warnings and all."""
    cxx_standard: int
    python_include: str | None


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
