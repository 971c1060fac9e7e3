"""Progress of long runs on standard error: two lines on a terminal, occasional lines in a log."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Generic, TypeVar

from torchmark.analysis.estimate import Estimator
from torchmark.model.inputs import FuzzedInput
from torchmark.model.outcome import Activity, ActivityKind, Begun, Event, Failure
from torchmark.model.plan import Order, Target
from torchmark.report.text.failures import VERBS, format_failure
from torchmark.report.text.names import name_case, name_target
from torchmark.report.text.terminal import DEFAULT_WIDTH, RED, cut, measure, paint, printable, printable_lines
from torchmark.report.text.units import format_duration

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

E = TypeVar("E")
Told = TypeVar("Told", contravariant=True)


class Advancing(Generic[Told]):
    """How far things have come, in numbers and in words, by what it is told of."""

    def __init__(self, total: int, clock: Callable[[], float], done: int = 0, failed: int = 0) -> None:
        self.total, self.done, self.failed = total, done, failed
        self._clock, self._start = clock, clock()

    @property
    def elapsed_s(self) -> float:
        return self._clock() - self._start

    def add(self, event: Told) -> str | None:
        """Note an event; the words for a failure, if it is one."""
        raise NotImplementedError

    def describe(self) -> str:
        """One line for a log."""
        raise NotImplementedError

    def conclude(self) -> str:
        """The last line of a log."""
        raise NotImplementedError

    def draw(self, width: int, *, fancy: bool) -> str:
        """A line for a terminal, with a bar."""
        raise NotImplementedError

    def describe_current(self, width: int) -> str:
        """What is under way, unless each of it takes too short a time to be told."""
        return ""


class Advance(Advancing[Event]):
    """What is done, what failed, what is under way."""

    def __init__(self, total: int, estimator: Estimator, done: int, failed: int, clock: Callable[[], float]) -> None:
        super().__init__(total, clock, done, failed)
        self._before = done
        self._estimator = estimator
        self._current: Counter[tuple[Order | ActivityKind, Target]] = Counter()

    def add(self, event: Event) -> str | None:
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
        return f"Failed: {VERBS[order.metric]} {_name(order)}: {format_failure(event.result)}"

    def _end(self, what: Order | ActivityKind, target: Target) -> None:
        self._current[what, target] -= 1
        # Of what has never begun, nothing is under way.
        self._current += Counter()

    def _list_left(self) -> list[str]:
        return [f"about {format_duration(self._estimator.remaining_s())} left"] if self.done < self.total else []

    def describe(self) -> str:
        return ", ".join([f"{self.done} of {self.total} done", f"{self.failed} failed", *self._list_left()])

    def conclude(self) -> str:
        return f"{self.done} of {self.total} done, {self.failed} failed, in {format_duration(self.elapsed_s)}"

    def draw(self, width: int, *, fancy: bool) -> str:
        rate = format_rate(self.done - self._before, self.elapsed_s)
        parts = [f"{self.done}/{self.total}", f"{self.failed} failed", rate, *self._list_left()]
        return draw_bar(self.done, self.total, width, fancy=fancy) + "  ".join(filter(None, parts))

    def describe_current(self, width: int) -> str:
        """What is under way, as much of it as fits; the number of the others."""
        texts = [_format_counts(what, target) for what, target in self._current]
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


def format_rate(done: int, seconds: float) -> str:
    """How fast it goes; nothing where that cannot be told yet.

    >>> format_rate(30, 10), format_rate(1, 10)
    ('3.0/s', '6/min')
    """
    if done == 0 or seconds <= 0:
        return ""
    rate = done / seconds
    return f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.0f}/min"


def _format_counts(what: Order | ActivityKind, target: Target) -> str:
    if isinstance(what, Order):
        return f"{VERBS[what.metric]} {_name(what)}"
    return DOING[what] + (f" ({name_target(target)})" if target.name else "")


def _name(order: Order) -> str:
    return name_case(order.case) + (f" ({name_target(order.target)})" if order.target.name else "")


PairProgress = tuple[str, int, int]
"""What is done, how much of it is, and of how much."""

_WORDS = {
    "layouts": "starting processes",
    "confirming": "seeing changes again on fresh layouts",
    "more layouts": "looking in more layouts",
    "trials": "trials",
    "waiting": "waiting for another run of torchmark here",
}


class PairedAdvance(Advancing[PairProgress]):
    """What is under way; what fails is told at the end."""

    _what = ""

    def add(self, event: PairProgress) -> str | None:
        self._what, self.done, self.total = event
        return None

    def describe(self) -> str:
        words = _WORDS.get(self._what, f"timing in turns, {self._what}" if self._what else "timing in turns")
        return f"{words}: {self.done} of {self.total}" if self.total else words

    def conclude(self) -> str:
        return f"timed in turns, in {format_duration(self.elapsed_s)}"

    def draw(self, width: int, *, fancy: bool) -> str:
        return draw_bar(self.done, self.total, width, fancy=fancy) + self.describe()


Tried = tuple[FuzzedInput, "Failure | None"]

LEAST_WIDTH = 20
# In a log: at most a line in so many seconds, and one at each of so many steps or after so many seconds.
LOG_EVERY_S = 10.0
LOG_STEPS = 20
LOG_AT_LEAST_EVERY_S = 60.0
# Lines of a log that are longer than this nobody reads to their end.
LOG_WIDTH = 300

ERASE_BELOW = "\033[J"


class Progress(Generic[Told]):
    """Is told all that happens, between what is measured; by itself it says nothing of it."""

    def take(self, event: Told) -> None:
        """Something has begun, or has come to its end."""

    def __enter__(self) -> Progress[Told]:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def make_progress(
    stream: IO[str] | None, quiet: bool, advance: Advancing[E], variables: Mapping[str, str] = os.environ
) -> Progress[E]:
    """The display that fits the stream."""
    # A program may be started without standard error.
    if quiet or stream is None:
        return Progress()
    if not stream.isatty() or variables.get("TERM", "dumb") == "dumb":
        return LogProgress(stream, advance)
    return LiveProgress(stream, advance, colour=not variables.get("NO_COLOR"))


class LogProgress(Progress[E]):
    """Plain lines for logs: few, and every failure at once."""

    def __init__(self, stream: IO[str], advance: Advancing[E]) -> None:
        self._stream = stream
        self._advance = advance
        self._told_s = 0.0
        self._told_done = 0

    def __enter__(self) -> LogProgress[E]:
        self._tell()
        return self

    def take(self, event: E) -> None:
        """A line if it is a failure, and one if it is time for that."""
        advance = self._advance
        if (failure := advance.add(event)) is not None:
            self._write(failure)
        waited = advance.elapsed_s - self._told_s
        far = (advance.done - self._told_done) * LOG_STEPS >= advance.total
        if waited >= LOG_AT_LEAST_EVERY_S or (waited >= LOG_EVERY_S and far):
            self._tell()

    def __exit__(self, *_: object) -> None:
        self._write(self._advance.conclude())

    def _tell(self) -> None:
        self._told_s, self._told_done = self._advance.elapsed_s, self._advance.done
        self._write(self._advance.describe())

    def _write(self, line: str) -> None:
        _write(self._stream, printable_lines(cut(printable(line), LOG_WIDTH)) + "\n")


class LiveProgress(Progress[E]):
    """Two lines at the bottom of a terminal, drawn anew with each event; failures scroll by above them."""

    def __init__(self, stream: IO[str], advance: Advancing[E], *, colour: bool = False) -> None:
        self._stream = stream
        self._advance = advance
        self._colour = colour
        self._drawn: list[str] = []

    def __enter__(self) -> LiveProgress[E]:
        self._draw()
        return self

    def take(self, event: E) -> None:
        failure = self._advance.add(event)
        self._draw(None if failure is None else paint(cut(printable(failure), self._width), RED, self._colour))

    def __exit__(self, *_: object) -> None:
        _write(self._stream, self._erase())
        self._drawn = []

    @property
    def _width(self) -> int:
        """One less than there are, for the cursor."""
        columns = 0
        with suppress(OSError, ValueError):
            columns = os.get_terminal_size(self._stream.fileno()).columns
        return max(columns or shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns, LEAST_WIDTH) - 1

    def _draw(self, above: str | None = None) -> None:
        erase, width = self._erase(), self._width
        encoding = getattr(self._stream, "encoding", None) or ""
        is_fancy = encoding.lower().replace("-", "") == "utf8"
        lines = [self._advance.draw(width, fancy=is_fancy), self._advance.describe_current(width)]
        self._drawn = [cut(printable(line), width) for line in lines if line]
        _write(self._stream, erase + (f"{above}\n" if above is not None else "") + "\n".join(self._drawn))

    def _erase(self) -> str:
        if not self._drawn:
            return ""
        # A window that has become narrower has broken the lines.
        width = self._width + 1
        rows = sum(max(-(-measure(line) // width), 1) for line in self._drawn)
        return "\r" + (f"\033[{rows - 1}A" if rows > 1 else "") + ERASE_BELOW


def _write(stream: IO[str], text: str) -> None:
    """Results matter more than a display that nobody can see any more."""
    with suppress(OSError, ValueError):
        stream.write(text)
        stream.flush()
