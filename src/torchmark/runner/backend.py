"""The seam between what is wanted and who gets it done: a back end turns orders into events, in any order."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from typing import Protocol

from torchmark.model.outcome import Event
from torchmark.model.plan import Order, Plan


class Stop:
    """Whether what has not begun yet shall not begin any more. Can be said from anywhere, also from a signal."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def request(self) -> None:
        """Begin nothing more."""
        self._event.set()

    @property
    def requested(self) -> bool:
        """Whether that was said."""
        return self._event.is_set()


class Backend(Protocol):
    """Whoever carries out orders."""

    @property
    def slots(self) -> int:
        """How many cases may be counted at once, once it is open."""

    def open(self, plan: Plan) -> None:
        """Find out whether that can be done at all. SetupError says what is missing."""

    def execute(self, plan: Plan, orders: Sequence[Order], stop: Stop) -> Generator[Event, None, None]:
        """Carry out some orders of a plan. Each has exactly one outcome, unless `stop` is requested meanwhile.

        Nothing is measured by the clock while the caller has an event in hand.
        """

    def close(self) -> None:
        """End all that was started, at once."""
