"""A back end that starts nothing: results come from a function. For tests, and for trying out what surrounds it."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence

from torchmark.model.environment import Environment
from torchmark.model.outcome import Begun, Event, Outcome, Result
from torchmark.model.plan import Order, Plan
from torchmark.processes import StopRequest


class FakeBackend:
    """Gives what `measure` gives for an order, one after the other."""

    def __init__(self, measure: Callable[[Order], Result], environment: Environment | None = None) -> None:
        self._measure = measure
        self._environment = environment
        self.is_open = False
        self.slots = 1

    def open(self, plan: Plan) -> None:
        """Nothing is missing."""
        self.is_open = True

    def execute(self, plan: Plan, orders: Sequence[Order], stop: StopRequest) -> Generator[Event, None, None]:
        """All of them, in their order."""
        assert self.is_open
        for order in orders:
            if stop.requested:
                return
            yield Begun(order, order.target)
            began = time.time()
            result = self._measure(order)
            yield Outcome(order=order, result=result, began=began, ended=time.time(), environment=self._environment)

    def close(self) -> None:
        """Nothing was started."""
        self.is_open = False
