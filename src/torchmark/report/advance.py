"""How far a run has come, in numbers and in words; whoever shows it decides when and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from torchmark.analysis.estimate import Estimator
from torchmark.model.outcome import Activity, ActivityKind, Begun, Event, Failure
from torchmark.model.plan import Order, Target
from torchmark.report.cells import cut, measure
from torchmark.report.failed import VERBS, sum_up
from torchmark.report.planning import format_duration
from torchmark.report.variants import name_case, name_target

LARGEST_BAR = 30
# Columns of a terminal that the numbers beside the bar may take.
NUMBERS = 50
DOING = {
    ActivityKind.START: "starting a worker",
    ActivityKind.SCRIPT: "making TorchScript",
    ActivityKind.COMPILE: "compiling C++",
    ActivityKind.CHECK: "comparing variants",
    ActivityKind.WAIT: "waiting for another run of torchmark here",
}


class Advance:
    """What is done, what failed, what is under way."""

    def __init__(self, total: int, estimator: Estimator, done: int, failed: int, clock: Callable[[], float]) -> None:
        self.total = total
        self.done = done
        self.failed = failed
        self._before = done
        self._estimator = estimator
        self._clock = clock
        self._start = clock()
        self._current: Counter[tuple[Order | ActivityKind, Target]] = Counter()

    @property
    def elapsed_s(self) -> float:
        """Since the beginning."""
        return self._clock() - self._start

    def add(self, event: Event) -> str | None:
        """Note an event; the words for a failure, if it is one."""
        if isinstance(event, Begun):
            self._current[event.what, event.target] += 1
            return None
        self._estimator.add(event)
        if isinstance(event, Activity):
            self._end(event.kind, event.target)
            return None
        order = event.order
        self._end(order, order.target)
        self.done += 1
        if not isinstance(event.result, Failure):
            return None
        self.failed += 1
        return f"Failed: {VERBS[order.metric]} {_name(order)}: {sum_up(event.result)}"

    def _end(self, what: Order | ActivityKind, target: Target) -> None:
        self._current[what, target] -= 1
        # Of what has never begun, nothing is under way.
        self._current += Counter()

    def describe(self) -> str:
        """One line for a log."""
        text = f"{self.done} of {self.total} done, {self.failed} failed"
        if self.done < self.total:
            text += f", about {format_duration(self._estimator.remaining_s())} left"
        return text

    def conclude(self) -> str:
        """The last line."""
        return f"{self.done} of {self.total} done, {self.failed} failed, in {format_duration(self.elapsed_s)}"

    def draw(self, width: int, *, fancy: bool) -> str:
        """A bar, numbers, the rate, and what remains."""
        parts = [
            f"{self.done}/{self.total}",
            f"{self.failed} failed",
            word_rate(self.done - self._before, self.elapsed_s),
        ]
        if self.done < self.total:
            parts.append(f"about {format_duration(self._estimator.remaining_s())} left")
        return draw_bar(self.done, self.total, width, fancy=fancy) + "  ".join(filter(None, parts))

    def describe_current(self, width: int) -> str:
        """What is under way, as much of it as fits; the number of the others."""
        texts = [_word(what, target) for what, target in self._current]
        if not texts:
            return ""
        line, shown = texts[0], 1
        for text in texts[1:]:
            rest = len(texts) - shown - 1
            if measure(f"{line} · {text}") + len(f" +{rest}") > width:
                break
            line, shown = f"{line} · {text}", shown + 1
        more = f" +{len(texts) - shown}" if shown < len(texts) else ""
        return cut(line, width - len(more)) + more


def draw_bar(done: int, total: int, width: int, *, fancy: bool) -> str:
    """A bar that leaves room for numbers beside it; none where it would say nothing.

    >>> draw_bar(1, 4, 58, fancy=False)
    '##------ '
    """
    size = min(max(width - NUMBERS, 0), LARGEST_BAR)
    full = size * min(done, total) // max(total, 1)
    marks = ("█", "░") if fancy else ("#", "-")
    return f"{marks[0] * full}{marks[1] * (size - full)} " if size >= 5 else ""


def word_rate(done: int, seconds: float) -> str:
    """How fast it goes; nothing where that cannot be told yet.

    >>> word_rate(30, 10), word_rate(1, 10)
    ('3.0/s', '6/min')
    """
    if done == 0 or seconds <= 0:
        return ""
    rate = done / seconds
    return f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.0f}/min"


def _word(what: Order | ActivityKind, target: Target) -> str:
    if isinstance(what, Order):
        return f"{VERBS[what.metric]} {_name(what)}"
    return DOING[what] + (f" ({name_target(target)})" if target.name else "")


def _name(order: Order) -> str:
    return name_case(order.case) + (f" ({name_target(order.target)})" if order.target.name else "")
