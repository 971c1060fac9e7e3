"""Histories on a terminal: a line that shows the series, what changed and where, and what to run next."""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from torchmark.analysis.verdict.judge import SMALLEST_RATIO
from torchmark.model.history import Difference, Ground, History, Point, Shift, ShiftStanding
from torchmark.model.plan import Metric
from torchmark.model.run import RunInfo
from torchmark.report.text.names import name_case, name_target
from torchmark.report.text.run_summary import format_moment
from torchmark.report.text.terminal import LEAST_WIDTH, count, cut, printable, wrap
from torchmark.stats.changes import LEAST_SHIFT
from torchmark.stats.distribution import quantile

BLOCKS = "▁▂▃▄▅▆▇█"
# For terminals without them, from low to high.
ASCII_BLOCKS = "_.-=+*%#"
GAP = " "


@dataclasses.dataclass(frozen=True)
class Sparkline:
    """The line, and in which of its columns each value is."""

    text: str
    columns: tuple[int, ...]

    def mark(self, marks: Mapping[int, str]) -> str:
        """A line below it, with marks at positions of the series; of two marks in one column the first is shown.

        >>> draw([1.0, 1.0, 2.0], 10).mark({2: "^"})
        '  ^'
        """
        line = [" "] * len(self.text)
        for position, mark in sorted(marks.items(), reverse=True):
            line[self.columns[position]] = mark
        return "".join(line).rstrip()


def draw(values: Sequence[float | None], width: int, *, least_span: float = 0.0, blocks: str = BLOCKS) -> Sparkline:
    """A series in at most so many columns; of values that share one it is the median, and what is missing is blank.

    Less than `least_span` from the lowest to the highest does not fill the height: noise looks as small as it is.

    >>> draw([1.0, None, 8.0, 4.5], 10).text
    '▁ █▅'
    >>> draw([1.0, 1.1, 3.0, 3.1], 2, blocks=ASCII_BLOCKS).text
    '_#'
    """
    size = min(len(values), width)
    columns = tuple(i * size // len(values) for i in range(len(values)))
    bins: list[list[float]] = [[] for _ in range(size)]
    for value, column in zip(values, columns, strict=True):
        if value is not None:
            bins[column].append(value)
    levels = [quantile(sorted(found), 0.5) if found else None for found in bins]
    return Sparkline(_draw_levels(levels, least_span, blocks), columns)


def _draw_levels(levels: Sequence[float | None], least_span: float, blocks: str) -> str:
    known = [level for level in levels if level is not None]
    if not known:
        return GAP * len(levels)
    low, span = min(known), max(max(known) - min(known), least_span)
    if not span:
        # A series that is all alike has nothing to be high or low against.
        return "".join(GAP if level is None else blocks[0] for level in levels)
    # The division comes first: the steps of the tiniest span are too many for a float.
    top = len(blocks) - 1
    return "".join(GAP if level is None else blocks[round((level - low) / span * top)] for level in levels)


# Of a commit, so much is told; and of texts of unknown length.
SHORT_COMMIT = 10
LONGEST = 60

_REASONS = {
    Ground.EXACT: "counts are exact",
    Ground.INSTRUCTIONS: "its instructions changed with it",
    Ground.SOFTWARE: "later runs keep it",
    Ground.SETTINGS: "measured with other settings",
    Ground.MACHINE: "nothing is compared across it",
    Ground.DEFINITION: "nothing is compared across it",
    Ground.NONE: "nothing else that was measured explains it",
}
# Another version is another commit too.
_IMPLIED = {"torch commit": "torch"}


def describe_shift(shift: Shift, *, plain: bool = False) -> str:
    """What became different, by how much, what is held of it and why, and what else differs; `plain` is all ASCII."""
    size = f"{_describe_size(shift)}, " if shift.before is not None else ""
    whats = {one.what for one in shift.differences}
    told = [_contrast(one, "->" if plain else "→") for one in shift.differences if _IMPLIED.get(one.what) not in whats]
    differences = f" {', '.join(told)}." if told else ""
    return f"{size}{shift.standing.value}: {_reason(shift)}.{differences}"


def _contrast(difference: Difference, arrow: str) -> str:
    before, after = (_shorten(difference.what, side) for side in (difference.before, difference.after))
    return f"{printable(difference.what)} {before} {arrow} {after}"


def _describe_size(shift: Shift) -> str:
    share = "" if shift.share is None else f"{100 * shift.share:+.1f} %"
    if shift.metrics == (Metric.WALL,):
        return f"time {share}"
    assert shift.before is not None
    assert shift.after is not None
    return f"instructions {shift.after - shift.before:+,.0f}" + (f" ({share})" if share else "")


def _reason(shift: Shift) -> str:
    if shift.ground is Ground.OTHER_CASES and shift.common is not None:
        return f"{count(shift.others, 'other case')} shifted by {100 * math.expm1(shift.common):+.1f} % in the median"
    if shift.ground is Ground.NONE and shift.common is not None:
        return f"{count(shift.others, 'other case')} did not shift with it"
    return _REASONS[shift.ground]


def _shorten(what: str, text: str | None) -> str:
    shown = "none" if text is None else text[:SHORT_COMMIT] if what.endswith("commit") else cut(text, LONGEST)
    return printable(shown)


def format_command(history: History, shift: Shift, interpreters: Collection[str]) -> str | None:
    """The comparison that would settle an open change; None where both runs used one interpreter, or one is gone."""
    if shift.standing is not ShiftStanding.UNCONFIRMED or shift.pythons is None:
        return None
    base, head = shift.pythons
    if base == head or not {base, head} <= set(interpreters):
        return None
    label = " / ".join(history.case.label).replace('"', '""')
    expression = f'"{label}" and {history.case.autolabels.as_dict["language"].lower()}'
    words = ["torchmark", "ab", history.case.suite, "--base", base, "--head", head, "-k", expression]
    return shlex.join(filter(None, words))


# What is not called a change takes up at most a quarter of a line's height.
FLAT = 4
# More cases than this are not shown one by one unless something changed in them.
MANY = 12

MARKS = {
    ShiftStanding.CONFIRMED: "^",
    ShiftStanding.ENVIRONMENT: "~",
    ShiftStanding.REDEFINED: "|",
    ShiftStanding.UNCONFIRMED: "?",
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
    shown = [one for one in histories if len(histories) <= MANY or choose_shifts(one, metrics)]
    renderer = _Renderer(
        width=width,
        metrics=metrics,
        pinned=pinned,
        interpreters=interpreters,
        plain=plain,
        several_targets=len({history.target.name for history in histories}) > 1,
        several_suites=len({history.case.suite for history in histories}) > 1,
    )
    blocks = ["\n".join(renderer.render(history)) for history in shown]
    closing = [*_explain_marks(shown, metrics, width), *_close(histories, len(shown), metrics, width)]
    return "\n\n".join([*blocks, "\n".join(closing)])


def choose_shifts(history: History, metrics: Sequence[Metric]) -> list[Shift]:
    return [shift for shift in history.shifts if set(shift.metrics) & set(metrics)]


@dataclasses.dataclass(frozen=True)
class _Renderer:
    """Renders one history after the other, all in the same manner."""

    width: int
    metrics: Sequence[Metric]
    pinned: RunInfo | None
    interpreters: Collection[str]
    plain: bool
    several_targets: bool
    several_suites: bool

    def render(self, history: History) -> Iterator[str]:
        suite = f"{printable(history.case.suite)}: " if self.several_suites else ""
        target = f" ({name_target(history.target)})" if self.several_targets else ""
        yield from wrap(suite + name_case(history.case) + target, self.width, 2)
        times = [point.log_ratio for point in history.points]
        counts = [None if point.instructions is None else point.instructions.value for point in history.points]
        for metric, values, span in (
            (Metric.WALL, times, LEAST_SHIFT * FLAT),
            (Metric.COUNT, counts, SMALLEST_RATIO * FLAT * max(filter(None, counts), default=0.0)),
        ):
            if metric in self.metrics and any(value is not None for value in values):
                yield from self._draw(history, metric, values, span)
        if not any(value is not None for value in (*times, *counts)):
            yield f"{_INDENT}Nothing was measured in {count(len(history.points), 'run')}."
        for shift in choose_shifts(history, self.metrics):
            yield from self._list(history, shift)

    def _draw(
        self, history: History, metric: Metric, values: Sequence[float | None], least_span: float
    ) -> Iterator[str]:
        text = self._describe_time(history) if metric is Metric.WALL else _describe_count(history.points)
        yield from wrap(_INDENT + text, self.width, 2)
        blocks = ASCII_BLOCKS if self.plain else BLOCKS
        line = draw(values, self.width - len(_INDENT), least_span=least_span, blocks=blocks)
        yield (_INDENT + line.text).rstrip()
        marks = line.mark({s.position: MARKS[s.standing] for s in reversed(history.shifts) if metric in s.metrics})
        if marks:
            yield _INDENT + marks

    def _describe_time(self, history: History) -> str:
        newest, anchor = history.newest, history.anchor
        assert newest is not None
        assert newest.log_ratio is not None
        assert anchor is not None
        measured = sum(point.log_ratio is not None for point in history.points)
        if measured == 1:
            return "time: measured in one run only; a history takes two"
        text = f"time: {_percent(math.expm1(newest.log_ratio))} against {name_run(anchor)}, {count(measured, 'run')}"
        if self.pinned is None or anchor.id == self.pinned.id:
            return text
        return f"{text}; {name_run(self.pinned)} has no time that it can be compared with"

    def _list(self, history: History, shift: Shift) -> Iterator[str]:
        run = history.points[shift.position].run
        head = f"{MARKS[shift.standing]} {format_day(run.created)} {name_run(run)}: "
        yield from wrap(_INDENT + head + describe_shift(shift, plain=self.plain), self.width, 4)
        if command := format_command(history, shift, self.interpreters):
            yield from wrap(f"    Find out with:  {command}", self.width, 6)


def _describe_count(points: Sequence[Point]) -> str:
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
    return printable(run.name) or run.id[:8]


def format_day(moment: float) -> str:
    return format_moment(moment)[: len("2020-12-31")]


def _explain_marks(histories: Iterable[History], metrics: Sequence[Metric], width: int) -> list[str]:
    used = {shift.standing for history in histories for shift in choose_shifts(history, metrics)}
    return wrap(", ".join(f"{mark} {one.value}" for one, mark in MARKS.items() if one in used), width)


def _close(histories: Sequence[History], shown: int, metrics: Sequence[Metric], width: int) -> list[str]:
    text = describe_outcome(histories, metrics)
    if shown < len(histories):
        text += f" {'The others' if shown else 'They'} are not shown; name them, or choose fewer with -k."
    return wrap(text, width)


def describe_outcome(histories: Sequence[History], metrics: Sequence[Metric]) -> str:
    changed = sum(bool(choose_shifts(history, metrics)) for history in histories)
    runs = {point.run.id for history in histories for point in history.points}
    what = "something changed" if changed else "nothing changed"
    where = f" in {changed} of them" if changed and len(histories) > 1 else ""
    return f"{count(len(histories), 'case')} in {count(len(runs), 'run')}: {what}{where}."
