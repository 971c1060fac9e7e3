"""The interface of back ends, which turn orders into events."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Protocol

from torchmark.model.outcome import Event
from torchmark.model.plan import Order, Plan
from torchmark.processes import StopRequest


class Backend(Protocol):
    """Whoever carries out orders."""

    @property
    def slots(self) -> int:
        """How many cases may be counted at once, once it is open."""

    def open(self, plan: Plan) -> None:
        """Find out whether that can be done at all. SetupError says what is missing."""

    def execute(self, plan: Plan, orders: Sequence[Order], stop: StopRequest) -> Generator[Event, None, None]:
        """Carry out some orders of a plan. Each has exactly one outcome, unless `stop` is requested meanwhile.

        Nothing is measured by the clock while the caller has an event in hand.
        """

    def close(self) -> None:
        """End all that was started, at once."""
