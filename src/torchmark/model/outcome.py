"""How a job can fail. A failure is a value: it costs its own job and no other."""

from __future__ import annotations

import dataclasses
import enum


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
