"""What failed for no fault of its own is tried once more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torchmark.errors import UsageError, WorkerError
from torchmark.model.outcome import Failure, FailureKind, was_killed

T = TypeVar("T")

# Once is bad luck.
ATTEMPTS = 2


def persist(attempt: Callable[[], T | Failure]) -> T | Failure:
    """The result, or the failure of the last attempt.

    A worker that does not stay up is a failure too, and so is a machine that lacks something: room for temporary files,
    say, or the working folder.
    """
    for number in range(ATTEMPTS):
        try:
            result = attempt()
        except WorkerError as error:
            if error.kind == "abandoned":
                raise
            result = Failure(FailureKind.WORKER_DIED, str(error))
        except (OSError, UsageError) as error:
            return Failure(FailureKind.MISSING, str(error))
        if not isinstance(result, Failure) or not was_killed(result) or number == ATTEMPTS - 1:
            return result
    raise AssertionError("unreachable")
