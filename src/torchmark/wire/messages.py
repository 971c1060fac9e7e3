"""The messages between a parent and its worker, and how they become JSON and back.

    parent → zygote   Hello, then Go for each job, and Stop while one runs
    zygote → parent   Ready or Refused, then Started and Ended for each job
    parent → child    CountJob, TimeJob, RaceJob, GaugeJob, DuelJob, CompileJob, ScriptJob or CheckJob
    child  → parent   Counted, Separate, Timed, Raced, Gauged, Dueled, FirstCall, Scripted, Checked or Failed

The zygote never sees the job itself, which lies in a file that comes with the order to go.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, Union

from torchmark.errors import WorkerError
from torchmark.model.compiling import FirstCall
from torchmark.model.job import (
    CheckJob,
    CompileJob,
    CountJob,
    DuelJob,
    GaugeJob,
    Given,
    Job,
    Place,
    RaceJob,
    ScriptJob,
    TimeJob,
    Way,
)
from torchmark.model.sdk import Sdk
from torchmark.model.snippet import Compiled
from torchmark.wire.frames import Plain

# Raised whenever a message changes its meaning. Both sides refuse to talk to another number.
PROTOCOL = 6


@dataclasses.dataclass(frozen=True)
class Hello:
    """The first message: how to prepare. `library` is the one with the client requests; None without Valgrind."""

    protocol: int
    scratch: str
    library: str | None = None
    sys_path: tuple[str, ...] | None = None
    checking: bool = False
    compiling: bool = False
    """Whether to get `torch.compile` ready as well."""
    scripting: bool = False
    """Whether to get the loading of TorchScript ready as well."""
    frames: str | None = None
    """The library that makes Python functions visible to Callgrind, where they are to be."""


@dataclasses.dataclass(frozen=True)
class Ready:
    """The worker can take jobs; what it is made of."""

    protocol: int
    pid: int
    python_version: str
    torch_version: str
    torch_file: str
    cpu_capability: str | None
    debug_symbols: bool
    sdk: Sdk


@dataclasses.dataclass(frozen=True)
class Refused:
    """The worker cannot work, or cannot take this job; one word of why, and a sentence."""

    reason: str
    message: str
    traceback: str | None = None


@dataclasses.dataclass(frozen=True)
class Go:
    """Fork a child for the job that lies in the file that comes with this."""


@dataclasses.dataclass(frozen=True)
class Started:
    """A child was forked for the job."""

    pid: int


@dataclasses.dataclass(frozen=True)
class Ended:
    """The child and all it started are gone; `status` is as from `os.waitpid`."""

    status: int


@dataclasses.dataclass(frozen=True)
class Stop:
    """End the child that runs now."""


@dataclasses.dataclass(frozen=True)
class Counted:
    """The profiles of all layouts are written. `optimised_away`: of an empty loop, for the compiler left nothing.

    `functions` are the Python functions that were told apart, by their numbers: name, file, line.
    """

    optimised_away: bool = False
    functions: tuple[tuple[str, str, int], ...] = ()


@dataclasses.dataclass(frozen=True)
class Separate:
    """The setup started threads, so that the process cannot be forked: ask for one layout at a time."""

    threads: int


@dataclasses.dataclass(frozen=True)
class Timed:
    """Times of blocks, in seconds."""

    number: int
    raw_times: tuple[float, ...]
    overhead_s: float | None
    optimised_away: bool = False


@dataclasses.dataclass(frozen=True)
class Raced:
    """For each statement the runs in a block of it, and the times of its blocks in seconds, one for each round."""

    numbers: tuple[int, ...]
    raw_times: tuple[tuple[float, ...], ...]


@dataclasses.dataclass(frozen=True)
class Gauged:
    """Seconds of one run, at best, and what it took until the first."""

    run_s: float
    setup_s: float


@dataclasses.dataclass(frozen=True)
class Dueled:
    """Of each side that ran here, in the order base, head: for each of its blocks seconds, page faults, and how often
    another program took the core away."""

    times: tuple[tuple[float, ...], ...]
    faults: tuple[tuple[int, ...], ...]
    switches: tuple[tuple[int, ...], ...]


@dataclasses.dataclass(frozen=True)
class Scripted:
    """The TorchScript model is in its file."""


@dataclasses.dataclass(frozen=True)
class Checked:
    """How two ways differ, or None; where one of them failed, which of the two, and how."""

    problem: str | None
    failed: int | None = None


@dataclasses.dataclass(frozen=True)
class Failed:
    """The user's code failed: a kind of failure, what happened, and the user's own traceback."""

    failure: str
    message: str
    traceback: str | None


Answer = Union[Counted, Separate, Timed, Raced, Gauged, Dueled, FirstCall, Scripted, Checked, Failed]
Message = Union[Hello, Ready, Refused, Go, Started, Ended, Stop, Answer, Job]
M = TypeVar("M")

_KINDS: dict[str, type[Any]] = {
    "hello": Hello,
    "ready": Ready,
    "refused": Refused,
    "go": Go,
    "started": Started,
    "ended": Ended,
    "stop": Stop,
    "counted": Counted,
    "separate": Separate,
    "timed": Timed,
    "raced": Raced,
    "gauged": Gauged,
    "dueled": Dueled,
    "first_call": FirstCall,
    "scripted": Scripted,
    "checked": Checked,
    "failed": Failed,
    "count": CountJob,
    "time": TimeJob,
    "race": RaceJob,
    "gauge": GaugeJob,
    "duel": DuelJob,
    "compile": CompileJob,
    "script": ScriptJob,
    "check": CheckJob,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def encode(message: Message) -> Plain:
    """The message as JSON's types.

    >>> encode(Started(7))
    {'kind': 'started', 'pid': 7}
    """
    return {"kind": _NAMES[type(message)], **dataclasses.asdict(message)}


def decode(plain: Plain) -> Message:
    """The message that `encode` gave this for; anything else is refused.

    >>> decode(encode(Started(7)))
    Started(pid=7)
    """
    fields = dict(plain)
    kind = _KINDS.get(fields.pop("kind", ""))
    if kind is None:
        raise WorkerError(f"A message of an unknown kind arrived: {plain!r:.80}", kind="garbled")
    try:
        return kind(**{name: _revive(name, value) for name, value in fields.items()})  # type: ignore[no-any-return]
    except (TypeError, KeyError) as error:
        raise WorkerError(f"A message does not have the promised form: {error}.", kind="garbled") from None


def _revive(name: str, value: Any) -> Any:
    """JSON knows neither tuples nor our own types."""
    if name == "place":
        return Place(value["cwd"], _revive("sys_path", value["sys_path"]))
    if name == "givens":
        return tuple(Given(**given) for given in value)
    if name in ("first", "second"):
        return Way(**{field: _revive(field, part) for field, part in value.items()})
    if name == "compiled" and value is not None:
        return Compiled(**value)
    if name == "sdk":
        return Sdk(**value)
    return _to_tuples(value)


def _to_tuples(value: Any) -> Any:
    """Lists as tuples, also those within lists."""
    return tuple(map(_to_tuples, value)) if isinstance(value, list) else value
