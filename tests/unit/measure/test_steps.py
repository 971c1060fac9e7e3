from __future__ import annotations

from typing import Any

import pytest

from torchmark.measure.steps import R, Shared, Steps, carry_out, flatten, share_setup


class Plain:
    """Says what it was asked for; a block of n runs takes n seconds."""

    def __init__(self) -> None:
        self.log: list[Any] = []

    def timeit(self, number: int) -> float:
        self.log.append(number)
        return float(number)


class Keeping(Plain):
    def follow(self, steps: Steps[R]) -> R:
        self.log.append("setup")
        return carry_out(self, steps)


def inner() -> Steps[Any]:
    first = yield 1
    second = yield Shared(innermost())
    return first + second


def innermost() -> Steps[Any]:
    return (yield 2) * 10


def outer() -> Steps[Any]:
    shared = yield Shared(inner())
    return shared + (yield 3)


@pytest.mark.parametrize(("engine", "log"), [(Plain(), [1, 2, 3]), (Keeping(), ["setup", 1, 2, 3])])
def test_steps_that_share_a_setup_are_given_to_an_engine_that_can_keep_one(engine: Plain, log: list[Any]) -> None:
    assert carry_out(engine, outer()) == 1 + 20 + 3
    assert engine.log == log


def test_within_one_setup_no_other_is_asked_for() -> None:
    engine = Keeping()
    assert share_setup(engine, outer()) == 24
    assert engine.log == ["setup", 1, 2, 3]


def test_flattened_steps_ask_for_numbers_only() -> None:
    steps = flatten(outer())
    assert [next(steps), steps.send(1.0), steps.send(1.0)] == [1, 2, 3]
    with pytest.raises(StopIteration) as end:
        steps.send(1.0)
    assert end.value.value == 1 + 10 + 1


def test_what_a_statement_raises_goes_to_the_caller() -> None:
    class Failing:
        def timeit(self, number: int) -> float:
            raise StopIteration("mine")

    with pytest.raises(StopIteration, match="mine"):
        carry_out(Failing(), outer())
