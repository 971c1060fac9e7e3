"""How far comparing in turns has come. Each look has fewer cases than the one before, so no end is foretold."""

from __future__ import annotations

from collections.abc import Callable

from torchmark.report.advance import draw_bar
from torchmark.report.planning import format_duration

Told = tuple[str, int, int]
"""What is done, how much of it is, and of how much."""

_WORDS = {
    "layouts": "starting processes",
    "confirming": "seeing changes again on fresh layouts",
    "more layouts": "looking in more layouts",
    "trials": "trials",
    "waiting": "waiting for another run of torchmark here",
}


class DuelAdvance:
    """What is under way."""

    def __init__(self, cases: int, clock: Callable[[], float]) -> None:
        self.total = cases
        self.done = 0
        self._what = ""
        self._clock = clock
        self._start = clock()

    @property
    def elapsed_s(self) -> float:
        """Since the beginning."""
        return self._clock() - self._start

    def add(self, event: Told) -> str | None:
        """Note what is under way. What fails is told at the end."""
        self._what, self.done, self.total = event
        return None

    def describe(self) -> str:
        """One line for a log."""
        words = _WORDS.get(self._what, f"timing in turns, {self._what}" if self._what else "timing in turns")
        return f"{words}: {self.done} of {self.total}" if self.total else words

    def conclude(self) -> str:
        """The last line."""
        return f"timed in turns, in {format_duration(self.elapsed_s)}"

    def draw(self, width: int, *, fancy: bool) -> str:
        """A bar and words."""
        return draw_bar(self.done, self.total, width, fancy=fancy) + self.describe()

    def describe_current(self, width: int) -> str:
        """All is said above."""
        return ""
