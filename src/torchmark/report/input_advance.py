"""How far a study of inputs has come: every input takes about as long as those before it."""

from __future__ import annotations

from collections.abc import Callable

from torchmark.model.inputs import FuzzedInput
from torchmark.model.outcome import Failure
from torchmark.report.advance import draw_bar, word_rate
from torchmark.report.failures import sum_up_failure
from torchmark.report.input_failures import sort_of
from torchmark.report.inputs import word_input
from torchmark.report.planning import format_duration
from torchmark.report.printable import count

Tried = tuple[FuzzedInput, "Failure | None"]


class InputAdvance:
    """How many inputs are done, and how many of these failed."""

    def __init__(self, total: int, clock: Callable[[], float]) -> None:
        self.total = total
        self.done = 0
        self.failed = 0
        self._clock = clock
        self._start = clock()
        self._told: set[tuple[str, str, str]] = set()

    @property
    def elapsed_s(self) -> float:
        """Since the beginning."""
        return self._clock() - self._start

    def add(self, event: Tried) -> str | None:
        """Note that an input is done; the words for a failure, if it is the first of its sort."""
        one, failure = event
        self.done += 1
        if failure is None:
            return None
        self.failed += 1
        sort = sort_of(failure)
        if sort in self._told:
            return None
        self._told.add(sort)
        return f"Failed: input {one.index} ({word_input(one)}): {sum_up_failure(failure)}"

    def describe(self) -> str:
        """One line for a log."""
        text = f"{self.done} of {count(self.total, 'input')} measured"
        return f"{text}, {self.failed} failed" if self.failed else text

    def conclude(self) -> str:
        """The last line."""
        return f"{self.describe()}, in {format_duration(self.elapsed_s)}"

    def draw(self, width: int, *, fancy: bool) -> str:
        """A bar, numbers, the rate, and what remains."""
        parts = [f"{self.done}/{self.total} inputs", f"{self.failed} failed" if self.failed else ""]
        parts.append(word_rate(self.done, self.elapsed_s))
        if 0 < self.done < self.total:
            remaining = self.elapsed_s / self.done * (self.total - self.done)
            parts.append(f"about {format_duration(remaining)} left")
        return draw_bar(self.done, self.total, width, fancy=fancy) + "  ".join(filter(None, parts))

    def describe_current(self, width: int) -> str:
        """Each takes too short a time to be told."""
        return ""
