"""Histories for people: a block a case, with a line that shows its series, and what changed where."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator, Sequence

from torchmark.model.history import History, Point, Shift, Standing
from torchmark.model.plan import Metric
from torchmark.model.run import RunInfo
from torchmark.report.cells import wrap
from torchmark.report.history_words import Words, spell_command
from torchmark.report.printable import count, printable
from torchmark.report.sparkline import ASCII_BLOCKS, BLOCKS, draw
from torchmark.report.variants import name_case, name_target
from torchmark.stats.changes import LEAST_INSTRUCTIONS_SHARE, LEAST_SHIFT

LEAST_WIDTH = 40
# What is not called a change takes up at most a quarter of a line's height.
FLAT = 4
# More cases than this are not shown one by one unless something changed in them.
MANY = 12

MARKS = {
    Standing.CONFIRMED: "^",
    Standing.ENVIRONMENT: "~",
    Standing.REDEFINED: "|",
    Standing.UNCONFIRMED: "?",
}
_INDENT = "  "


def render_histories(
    histories: Sequence[History],
    width: int,
    *,
    metrics: Sequence[Metric] = tuple(Metric),
    pinned: RunInfo | None = None,
    interpreters: Collection[str] = (),
    plain: bool = False,
) -> str:
    """A block for each history, a legend of the marks, and a closing sentence.

    `pinned` is the anchor that was asked for. `interpreters` are those that are still there, so that commands can be
    proposed which use them. `plain` is for terminals that have only ASCII.
    """
    width = max(width, LEAST_WIDTH)
    shown = list(histories)
    if len(shown) > MANY:
        shown = [history for history in shown if choose_shifts(history, metrics)]
    renderer = _Renderer(histories, width, metrics, pinned, interpreters, plain)
    blocks = ["\n".join(renderer.render(history)) for history in shown]
    closing = [*_explain_marks(shown, metrics, width), *_close(histories, len(shown), metrics, width)]
    return "\n\n".join([*blocks, "\n".join(closing)])


def choose_shifts(history: History, metrics: Sequence[Metric]) -> list[Shift]:
    """Those that are about one of these metrics."""
    return [shift for shift in history.shifts if set(shift.metrics) & set(metrics)]


class _Renderer:
    """Renders one history after the other, all in the same manner."""

    def __init__(
        self,
        histories: Sequence[History],
        width: int,
        metrics: Sequence[Metric],
        pinned: RunInfo | None,
        interpreters: Collection[str],
        plain: bool,
    ) -> None:
        self._width, self._metrics, self._pinned = width, metrics, pinned
        self._interpreters, self._blocks = interpreters, ASCII_BLOCKS if plain else BLOCKS
        self._words = Words(plain=plain)
        self._several_targets = len({history.target.name for history in histories}) > 1
        self._several_suites = len({history.case.suite for history in histories}) > 1

    def render(self, history: History) -> Iterator[str]:
        suite = f"{printable(history.case.suite)}: " if self._several_suites else ""
        target = f" ({name_target(history.target)})" if self._several_targets else ""
        yield from wrap(suite + name_case(history.case) + target, self._width, 2)
        times = [point.log_ratio for point in history.points]
        counts = [None if point.instructions is None else point.instructions.value for point in history.points]
        for metric, values, span in (
            (Metric.WALL, times, LEAST_SHIFT * FLAT),
            (Metric.COUNT, counts, LEAST_INSTRUCTIONS_SHARE * FLAT * max(filter(None, counts), default=0.0)),
        ):
            if metric in self._metrics and any(value is not None for value in values):
                yield from self._draw(history, metric, values, span)
        if not any(value is not None for value in (*times, *counts)):
            yield f"{_INDENT}Nothing was measured in {count(len(history.points), 'run')}."
        for shift in choose_shifts(history, self._metrics):
            yield from self._list(history, shift)

    def _draw(
        self, history: History, metric: Metric, values: Sequence[float | None], least_span: float
    ) -> Iterator[str]:
        text = self._tell_time(history) if metric is Metric.WALL else _tell_count(history.points)
        yield from self._wrap(text)
        line = draw(values, self._width - len(_INDENT), least_span=least_span, blocks=self._blocks)
        yield (_INDENT + line.text).rstrip()
        marks = line.mark({s.position: MARKS[s.standing] for s in reversed(history.shifts) if metric in s.metrics})
        if marks:
            yield _INDENT + marks

    def _tell_time(self, history: History) -> str:
        newest, anchor = history.newest, history.anchor
        assert newest is not None
        assert newest.log_ratio is not None
        assert anchor is not None
        measured = sum(point.log_ratio is not None for point in history.points)
        if measured == 1:
            return "time: measured in one run only; a history takes two"
        text = f"time: {_percent(math.expm1(newest.log_ratio))} against {name_run(anchor)}, {count(measured, 'run')}"
        if self._pinned is not None and anchor.id != self._pinned.id:
            text += f"; {name_run(self._pinned)} has no time that it can be compared with"
        return text

    def _list(self, history: History, shift: Shift) -> Iterator[str]:
        run = history.points[shift.position].run
        head = f"{MARKS[shift.standing]} {tell_day(run.created)} {name_run(run)}: "
        yield from self._wrap(head + self._words.tell(shift), 2)
        command = spell_command(history, shift, self._interpreters)
        if command:
            yield from self._wrap(f"  Find out with:  {command}", 4)

    def _wrap(self, text: str, hanging: int = 0) -> list[str]:
        return [_INDENT + line for line in wrap(text, self._width - len(_INDENT), hanging)]


def _tell_count(points: Sequence[Point]) -> str:
    counted = [point.instructions.value for point in points if point.instructions is not None]
    newest = f"instructions: {counted[-1]:,.0f}"
    if len(counted) == 1:
        return f"{newest}; counted in one run only"
    delta = counted[-1] - counted[0]
    if not delta:
        return f"{newest}, as in the oldest of {len(counted)} runs"
    share = f" ({_percent(delta / counted[0])})" if counted[0] else ""
    return f"{newest}, {delta:+,.0f}{share} since the oldest of {len(counted)} runs"


def _percent(share: float) -> str:
    return f"{100 * share:+.1f} %"


def name_run(run: RunInfo) -> str:
    """What a run is called in a sentence."""
    return printable(run.name) or run.id[:8]


def tell_day(moment: float) -> str:
    """The day of a moment, where people are."""
    try:
        return time.strftime("%Y-%m-%d", time.localtime(moment))
    except (OverflowError, ValueError, OSError):  # no calendar has it
        return "?"


def _explain_marks(histories: Iterable[History], metrics: Sequence[Metric], width: int) -> list[str]:
    used = {shift.standing for history in histories for shift in choose_shifts(history, metrics)}
    return wrap(", ".join(f"{mark} {one.value}" for one, mark in MARKS.items() if one in used), width)


def _close(histories: Sequence[History], shown: int, metrics: Sequence[Metric], width: int) -> list[str]:
    text = tell_outcome(histories, metrics)
    if shown < len(histories):
        text += f" {'The others' if shown else 'They'} are not shown; name them, or choose fewer with -k."
    return wrap(text, width)


def tell_outcome(histories: Sequence[History], metrics: Sequence[Metric]) -> str:
    """What was looked at, and what came of it."""
    changed = sum(bool(choose_shifts(history, metrics)) for history in histories)
    runs = {point.run.id for history in histories for point in history.points}
    text = f"{count(len(histories), 'case')} in {count(len(runs), 'run')}: "
    if len(histories) > 1 and changed:
        text += f"something changed in {changed} of them."
    else:
        text += "something changed." if changed else "nothing changed."
    return text
