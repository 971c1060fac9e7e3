"""What failed for no fault of its own is tried once more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torchmark.errors import WorkerError
from torchmark.model.outcome import Failure, FailureKind

T = TypeVar("T")

# Once is bad luck.
ATTEMPTS = 2
# The words that a process's end by a signal is described with.
FROM_OUTSIDE = ("SIGKILL", "SIGTERM")


def was_killed(failure: Failure) -> bool:
    """Whether somebody else may have ended it: the system for want of memory, an administrator, a time limit.

    >>> was_killed(Failure(FailureKind.CRASHED, "The process was ended by SIGSEGV."))
    False
    """
    if failure.kind is FailureKind.CRASHED:
        return any(name in failure.message for name in FROM_OUTSIDE)
    return failure.kind in (FailureKind.WORKER_DIED, FailureKind.NO_RESULT)


def persist(attempt: Callable[[], T | Failure]) -> T | Failure:
    """The result, or the failure of the last attempt. A worker that does not stay up is a failure too."""
    for number in range(ATTEMPTS):
        try:
            result = attempt()
        except WorkerError as error:
            if error.kind == "abandoned":
                raise
            result = Failure(FailureKind.WORKER_DIED, str(error))
        if not isinstance(result, Failure) or not was_killed(result) or number == ATTEMPTS - 1:
            return result
    raise AssertionError("unreachable")
