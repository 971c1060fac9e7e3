"""What became of an order, as a value: results, failures, and the costs of `torch.compile`."""

from __future__ import annotations

import dataclasses
import enum
from typing import Union

from torchmark.model.costs import Tally
from torchmark.model.environment import Environment
from torchmark.model.plan import Node, Order, Target
from torchmark.model.task import Times


@dataclasses.dataclass(frozen=True)
class FirstCall:
    """The first execution of a statement whose model is to be compiled, and what the compiler did in it.

    >>> FirstCall(2.5, 0.5, graphs=1, graph_breaks=0).compile_s
    2.0
    """

    first_s: float
    steady_s: float
    """One execution later on, in the same process."""
    graphs: int
    graph_breaks: int
    abandoned: int = 0
    """Functions that were left to the interpreter, because they could not be compiled or were so too often."""
    cache_hits: int = 0
    """Graphs whose code Inductor found on the disk. Other back ends keep none there."""
    cache_misses: int = 0
    breaks: tuple[str, ...] = ()
    """What broke the graph, and where."""

    @property
    def compile_s(self) -> float:
        """How long compiling took: the first execution without what a later one takes."""
        return max(0.0, self.first_s - self.steady_s)


@dataclasses.dataclass(frozen=True)
class CompileCosts:
    """All that compiling a case costs. Neither of the first calls has to load or initialise the compiler itself."""

    cold: FirstCall
    """With an empty cache."""
    warm: FirstCall
    """In another process, with the cache that the cold one has filled."""
    steady: Times
    """The statement, compiled."""
    call: Times
    """The forward call alone with the results of its graphs at hand: checking guards, the way in and out, and what
    runs between graphs."""

    @property
    def cold_s(self) -> float:
        return self.cold.compile_s

    @property
    def warm_s(self) -> float:
        """Seconds to compile from the cache on the disk."""
        return self.warm.compile_s

    @property
    def graphs(self) -> int:
        return self.cold.graphs

    @property
    def graph_breaks(self) -> int:
        """How often a graph had to end early."""
        return self.cold.graph_breaks


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
