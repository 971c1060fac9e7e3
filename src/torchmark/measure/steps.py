"""What to time, step by step, without knowing what runs it.

A measurement is a generator: it yields how many runs the next block has, and is sent how many seconds they took. So the
same measurement can be driven from outside a statement's loop, as Python's, or from within one, as a compiled loop
needs it, whose variables live no longer than the call that runs it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple, Protocol, TypeVar, Union

R = TypeVar("R")


class Shared(NamedTuple):
    """Steps that ask for one setup for all their blocks; the one who yields this is sent what they return."""

    steps: Steps[Any]


# What is sent is a time after a number, and anything after `Shared`.
Steps = Generator[Union[int, Shared], Any, R]


class Engine(Protocol):
    """Runs the statement `number` times, after the setup, and says how many seconds that took.

    One that can also keep what the setup made has a second method, `follow(steps)`, which carries out all of the steps
    after one run of the setup and gives what they return.
    """

    def timeit(self, number: int) -> float:
        """Time one block."""
        ...


def carry_out(engine: Engine, steps: Steps[R]) -> R:
    """Time the blocks that the steps ask for, each after a setup of its own unless they share one."""
    reply: Any = None
    while True:
        try:
            request = steps.send(reply)
        except StopIteration as end:
            result: R = end.value
            return result
        reply = share_setup(engine, request.steps) if isinstance(request, Shared) else engine.timeit(request)


def share_setup(engine: Engine, steps: Steps[R]) -> R:
    """Carry out the steps with one run of the setup where the engine can do that; an engine of the user's may not."""
    follow = getattr(engine, "follow", None)
    if follow is None:
        return carry_out(engine, flatten(steps))
    result: R = follow(flatten(steps))
    return result


def flatten(steps: Steps[R]) -> Steps[R]:
    """The same steps for an engine that is within one setup already.

    >>> def inner(): return 2 * (yield 1)
    >>> def outer(): return (yield Shared(inner())) + (yield 3)
    >>> steps = flatten(outer())
    >>> [next(steps), steps.send(10)]
    [1, 3]
    """
    reply: Any = None
    while True:
        try:
            request = steps.send(reply)
        except StopIteration as end:
            result: R = end.value
            return result
        if isinstance(request, Shared):
            reply = yield from flatten(request.steps)
        else:
            reply = yield request
