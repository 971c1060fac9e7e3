"""One result, with where it was measured; and why there is none where a machine is too small."""

from __future__ import annotations

from collections.abc import Callable

from torchmark.model.environment import Environment
from torchmark.model.outcome import Failure, FailureKind, Result
from torchmark.runner.persisting import persist


def measure(attempt: Callable[[], tuple[Result, Environment | None]]) -> tuple[Result, Environment | None]:
    """The result of the last attempt, and where that was."""
    environment: Environment | None = None

    def run() -> Result:
        nonlocal environment
        result, environment = attempt()
        return result

    return persist(run), environment


def refuse_threads(threads: int, cores: int) -> Failure:
    """There are fewer cores than threads, whose time would be that of waiting for each other."""
    there = "is 1 core" if cores == 1 else f"are {cores} cores"
    return Failure(
        FailureKind.MISSING, f"It runs with {threads} threads, and there {there} to time it on. Counting it would work."
    )
