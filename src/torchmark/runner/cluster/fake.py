"""A station that measures nothing: its results are made of the orders. For trying out what surrounds it."""

from __future__ import annotations

import time
from collections.abc import Callable

from torchmark.model.environment import Environment
from torchmark.model.node import Node
from torchmark.model.outcome import Outcome
from torchmark.model.times import Times
from torchmark.runner.cluster.protocol import Body, Canary, Heard, Measure, Measured, Reply, RunSetup, Survey, Surveyed

ENVIRONMENT = Environment("python", "3", "2", valgrind="1")


class FakeStation:
    """Answers at once."""

    def __init__(self, outset: RunSetup, fetch: Callable[[object], object], name: str | None = None) -> None:
        self._outset = outset
        self.node = Node(name or "fake", "fake")

    def answer(self, body: Body) -> Reply:
        """What `Station` would answer, without the work."""
        environments = (ENVIRONMENT,) * len(self._outset.targets)
        if isinstance(body, Survey):
            return Surveyed(self.node, self._outset.torchmark, "libc", environments)
        if isinstance(body, Canary):
            return Heard((1,) * len(environments), environments)
        assert isinstance(body, Measure)
        now = time.time()
        return Measured(
            tuple(
                Outcome(
                    order=order, result=Times(1, (1.0,)), began=now, ended=now, environment=ENVIRONMENT, node=self.node
                )
                for order in body.orders
            )
        )
