"""What became of an order. A failure is a value: it costs its own order and no other."""

from __future__ import annotations

import dataclasses
import enum
from typing import Union

from torchmark.model.compiling import CompileCosts
from torchmark.model.costs import Tally
from torchmark.model.environment import Environment
from torchmark.model.node import Node
from torchmark.model.plan import Order, Target
from torchmark.model.times import Times


class FailureKind(enum.Enum):
    """What ended the job."""

    NOT_COMPILED = "not_compiled"
    """C++ that the compiler or the linker refuses, or a model of which torch.compile compiles nothing."""
    MISSING = "missing"
    """The machine lacks what the job needs: a compiler, Valgrind, a folder that can be written."""
    RAISED = "raised"
    """An exception of the user's code."""
    EXITED = "exited"
    """The user's code ended its process."""
    CRASHED = "crashed"
    """A signal ended the process: a segmentation fault, an abort, a kill from outside."""
    DIFFERENT = "different"
    """It does not compute what the other variants of its benchmark do."""
    OUT_OF_MEMORY = "out_of_memory"
    TIMED_OUT = "timed_out"
    NO_RESULT = "no_result"
    """The process ended as if all was well, but what it sent is missing or garbled."""
    RECOMPILED = "recompiled"
    """`torch.compile` compiled something while the statement was measured, so that no number describes it."""
    WORKER_DIED = "worker_died"
    """The job took the worker itself down with it."""


@dataclasses.dataclass(frozen=True)
class Failure:
    """Why there is no result: `traceback` has the user's own lines, `stdout` and `stderr` are the ends of both."""

    kind: FailureKind
    message: str
    traceback: str | None = None
    stdout: str = ""
    stderr: str = ""


def was_killed(failure: Failure) -> bool:
    """Whether somebody else may have ended it, so that the same may pass at once.

    >>> was_killed(Failure(FailureKind.CRASHED, "The process was ended by SIGKILL."))
    True
    >>> was_killed(Failure(FailureKind.CRASHED, "The process was ended by SIGSEGV."))
    False
    """
    if failure.kind is FailureKind.CRASHED:
        # Nothing does this to itself: somebody wanted it gone, or its memory.
        return "SIGKILL" in failure.message or "SIGTERM" in failure.message
    return failure.kind in (FailureKind.WORKER_DIED, FailureKind.NO_RESULT)


def may_pass_later(failure: Failure, *, longer: bool = False) -> bool:
    """Whether a failure came from the surroundings, so that the same may pass another time.

    `longer` is whether it will be given more time than it had.
    """
    if failure.kind is FailureKind.TIMED_OUT:
        return longer
    return was_killed(failure) or failure.kind in (FailureKind.MISSING, FailureKind.OUT_OF_MEMORY)


Result = Union[Times, CompileCosts, Tally, Failure]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one order, where and when. Moments are seconds since 1970."""

    order: Order
    result: Result
    began: float
    ended: float
    environment: Environment | None = None
    """None for what failed before it reached a worker."""
    cores: tuple[int, ...] = ()
    """Those that it was given."""
    unchecked: str | None = None
    """Why its results could not be compared with those of the other variants, although they should be."""
    node: Node | None = None
    """The machine it was measured on, where that is not the run's own."""


class ActivityKind(enum.Enum):
    """What has to be done besides measuring."""

    START = "start"
    """Starting a worker."""
    SCRIPT = "script"
    """Making TorchScript."""
    COMPILE = "compile"
    """Compiling C++."""
    CHECK = "check"
    """Comparing variants."""
    WAIT = "wait"
    """For another run on the same machine, which is timing."""


@dataclasses.dataclass(frozen=True)
class Activity:
    """Something that had to be done besides measuring; `size` is of how many cases."""

    kind: ActivityKind
    target: Target
    began: float
    ended: float
    size: int = 0


@dataclasses.dataclass(frozen=True)
class Begun:
    """An order or an activity has begun; what becomes of it follows."""

    what: Order | ActivityKind
    target: Target


Event = Union[Begun, Activity, Outcome]
