from __future__ import annotations

import sys

import pytest

from torchmark.measure.snippet import SnippetTimer
from torchmark.measure.steps import carry_out
from torchmark.worker.count_job import (
    FEWEST_WARM_UP_RUNS,
    RUNS_BETWEEN_LOOKS,
    WARM_UP_RUNS,
    specialised_instructions,
    warm_up,
)


def count_runs(number: int) -> tuple[int, int]:
    """What warming up says it ran, and what it did."""
    runs: list[None] = []
    timer = SnippetTimer("runs.append(None)", globals={"runs": runs})
    return timer.follow(warm_up(timer.code, number)), len(runs)


@pytest.mark.parametrize("number", [1, 20, 100, 10_000])
def test_the_number_of_runs_is_bounded_and_repeats(number: int) -> None:
    told, ran = count_runs(number)
    assert told == ran
    assert count_runs(number) == (told, ran)
    assert told >= max(FEWEST_WARM_UP_RUNS, min(number, WARM_UP_RUNS)) + RUNS_BETWEEN_LOOKS


@pytest.mark.skipif(sys.version_info < (3, 11), reason="does not specialise")
def test_instructions_are_seen_to_specialise_and_counters_are_not() -> None:
    timer = SnippetTimer("y = x + 1", "x = 1")
    with timer.one_setup():
        timer.timeit(1)
        first = specialised_instructions(timer.code)
        carry_out(timer, warm_up(timer.code, 100))
        second = specialised_instructions(timer.code)
        timer.timeit(1)
        assert first != second == specialised_instructions(timer.code)
    assert len(first) == len(second)


def test_an_interpreter_that_does_not_specialise_has_settled() -> None:
    class Plain:
        co_code = b"\1\0\2\0"

    assert specialised_instructions(Plain) == b""  # type: ignore[arg-type]
