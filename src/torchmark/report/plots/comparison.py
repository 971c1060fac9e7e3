"""Drawings of a comparison: the differences of each case, and instructions by stage."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

from torchmark.analysis.verdict.explain import STAGES
from torchmark.model.judgement import Explanation, LayoutVisits, Side, TimeEvidence, Verdict
from torchmark.report.plots.svg import (
    AXIS_HEIGHT,
    ENORMOUS,
    MARGIN,
    MARK,
    SMALL,
    WIDTH,
    Figure,
    Mark,
    Markup,
    Span,
    colour,
    draw_across,
    draw_axis,
    draw_upright,
    element,
    find_limits,
    fit,
    fix,
    join,
    label,
    label_ticks,
    scale_times,
    stage_colour,
    title,
    widen,
)
from torchmark.report.text.terminal import count
from torchmark.report.text.units import (
    find_seconds,
    format_delta,
    format_level,
    format_seconds_change,
    format_share,
    has_interval,
    to_share,
)
from torchmark.report.text.units import format_change as word_plainly

ROW, HEADING, TOTAL = 14.0, 18.0, 24.0
LEFT, RIGHT, TOP = 30.0, 10.0, 44.0
# The interval of few layouts is wide; no more of it is shown than so many times as far as visits are apart.
WIDEST = 4.0
# However many visits a layout has that is far from all others, they are far.
HALF = 0.5
# What is larger, as a share, is as good as endless. No count is as large.
ENDLESS = 1e100

VERDICT_WORDS = {**{verdict: verdict.value for verdict in Verdict}, Verdict.SAME: "the same"}


def draw_differences(time: TimeEvidence, *, name: str = "Difference in time by layout of memory") -> Markup:
    """How much longer head takes than base: visits as dots, layouts as marks, the estimate with its interval as a band.

    Times that were not taken in turns have only the latter. `name` is what those hear who do not see it.
    """
    return _DifferencesDrawing(time).draw(name)


class _DifferencesDrawing:
    def __init__(self, time: TimeEvidence) -> None:
        self._time = time
        self._ink = colour(time.verdict)
        self._estimate, self._low, self._high = (_bound(to_share(one)) for one in (time.log_ratio, time.low, time.high))
        self._layouts = [layout for layout in time.visits if layout.log_ratios]
        self._span = Span(*self._find_limits(), LEFT, WIDTH - RIGHT)

    def _find_limits(self) -> tuple[float, float]:
        """Most centres and visits, zero, and of the interval what does not dwarf them."""
        visits = [[_bound(to_share(one)) for one in layout.log_ratios] for layout in self._layouts]
        centres = [_bound(to_share(layout.centre)) for layout in self._layouts]
        usual = find_limits([[one for group in visits for one in group]], HALF) or (self._estimate, self._estimate)
        inner = [0.0, self._estimate, *usual, *(find_limits([centres], HALF) or ())]
        low, high = min(inner), max(inner)
        reach = WIDEST * ((high - low) or abs(self._time.equivalence))
        ends = [min(max(end, low - reach), high + reach) for end in (self._low, self._high)]
        return widen(min(low, *ends), max(high, *ends), air=0.05)

    def draw(self, name: str) -> Markup:
        rows, end = self._draw_rows()
        bottom, figure = end + TOTAL, Figure()
        figure.add(self._draw_regions(bottom), *rows, self._draw_total(end + TOTAL / 2), *self._draw_axes(bottom))
        heading = f"{VERDICT_WORDS[self._time.verdict]}, {format_change(self._estimate)}"
        figure.add_heading(heading, self._describe_interval(), 14, fill=self._ink)
        figure.height = bottom + AXIS_HEIGHT + 4
        figure.add_legend(self._explain())
        return figure.close(name, self._describe())

    def _draw_rows(self) -> tuple[list[Markup], float]:
        """Rows of layouts, those that were added later under a heading of their own."""
        parts: list[Markup] = []
        y, number = TOP, 0
        groups = [[one for one in self._layouts if one.fresh is fresh] for fresh in (False, True)]
        for text, group in zip(("first layouts", "fresh layouts"), groups, strict=True):
            if group and all(groups):
                parts.append(label(8, y + 13, text, size=SMALL, opacity=0.7))
                y += HEADING
            for layout in group:
                number += 1
                parts.append(self._draw_row(layout, number, y + ROW / 2))
                y += ROW
        return parts, y

    def _draw_row(self, layout: LayoutVisits, number: int, y: float) -> Markup:
        shares = [_bound(to_share(one)) for one in layout.log_ratios]
        centre = _bound(to_share(layout.centre))
        told = f"Layout {number}: {format_change(centre)} in {count(len(shares), 'visit')}"
        if len(shares) > 1:
            told += f" ({', '.join(map(format_change, shares))})"
        dots = "".join(f"M{fix(self._span.at(one))} {fix(y)}h0" for one in shares if self._span.has(one))
        rest = [self._draw_outside(one, y) for one in shares if not self._span.has(one)]
        return element(
            "g",
            title(told),
            draw_across(LEFT, self._span.right, y, stroke_opacity=0.1),
            label(LEFT - 8, y + 4, str(number), size=SMALL, anchor="end", opacity=0.7),
            *([draw_dots(dots, self._ink)] if dots else []),
            *rest,
            draw_centre(self._span.at(centre), y),
        )

    def _draw_outside(self, share: float, y: float) -> Markup:
        x, tip = self._span.at(share), 6.0 if share > self._span.high else -6.0
        return element("path", d=f"M{fix(x)} {fix(y)}l{fix(-tip)} -3.5v7z", fill=self._ink)

    def _draw_regions(self, bottom: float) -> Markup:
        """What is called the same, what is never called a change, the interval of all layouts, and no change."""
        time, height = self._time, bottom - TOP
        parts = [draw_region(self._span, time.equivalence, TOP, height)]
        if time.floor < time.equivalence:
            parts.append(draw_region(self._span, time.floor, TOP, height, "1 3"))
        left, right, estimate, zero = map(self._span.at, (self._low, self._high, self._estimate, 0.0))
        width = max(right - left, 1.0)
        return join(
            [
                *parts,
                element("rect", x=left, y=TOP, width=width, height=height, fill=self._ink, fill_opacity=0.2),
                draw_upright(zero, TOP, bottom),
                draw_upright(estimate, TOP, bottom, stroke=self._ink, stroke_width=1.5),
            ]
        )

    def _draw_total(self, y: float) -> Markup:
        left, right, middle = (self._span.at(one) for one in (self._low, self._high, self._estimate))
        return element(
            "g",
            title(self._describe_estimate()),
            label(LEFT - 8, y + 4, "all", size=SMALL, anchor="end", weight="600"),
            draw_across(left, right, y, stroke=self._ink, stroke_width=4),
            element("path", d=f"M{fix(middle)} {fix(y - 6)}l5 6l-5 6l-5 -6z", fill=self._ink),
        )

    def _draw_axes(self, bottom: float) -> list[Markup]:
        """Below in per cent, above in seconds."""
        span, base_s = self._span, _bound(self._time.base_s)
        parts = [draw_axis(span, bottom, label_ticks(span, 0.01, "%", signed=True))]
        if base_s > 0 and abs(base_s * span.low) < ENDLESS and abs(base_s * span.high) < ENDLESS:
            scale = scale_times(base_s * span.low, base_s * span.high)
            marks = label_ticks(span, scale.length_s / base_s, scale.unit, signed=True)
            parts.append(draw_axis(span, TOP, marks, above=True))
        return parts

    def _explain(self) -> Iterator[tuple[Mark, str]]:
        ink, time = self._ink, self._time
        if self._layouts:
            yield lambda x, y: draw_dots(f"M{fix(x + MARK / 2)} {fix(y)}h0", ink), "a visit"
            yield lambda x, y: draw_centre(x + MARK / 2, y), "centre of a layout"
        yield (
            lambda x, y: element("rect", x=x, y=y - 5, width=MARK, height=10, fill=ink, fill_opacity=0.3),
            f"{format_level(time.confidence)} interval",
        )
        yield (
            lambda x, y: draw_region(Span(-1.0, 1.0, x, x + MARK), 0.5, y - 6, 12),
            f"the same: up to {format_share(to_share(time.equivalence))}",
        )

    def _describe_interval(self) -> str:
        if not has_interval(self._time):
            return "no interval"
        return f"{format_change(self._low)} to {format_change(self._high)}"

    def _describe_estimate(self) -> str:
        level = f"{format_level(self._time.confidence)} interval " if has_interval(self._time) else ""
        about = f"about {format_seconds_change(find_seconds(self._time))} a run"
        return f"{format_change(self._estimate)}, {level}{self._describe_interval()}, {about}"

    def _describe(self) -> str:
        text = f"{VERDICT_WORDS[self._time.verdict].capitalize()}: {self._describe_estimate()}."
        if not self._layouts:
            return f"{text} Both sides did not run in turns."
        centres = sorted(_bound(to_share(layout.centre)) for layout in self._layouts)
        fresh = sum(layout.fresh for layout in self._layouts)
        added = f", {fresh} of them fresh" if fresh else ""
        return (
            f"{text} {count(len(centres), 'layout')}{added}, from {format_change(centres[0])} to "
            f"{format_change(centres[-1])}."
        )


def format_change(share: float) -> str:
    """A share with its sign, which is a true minus.

    >>> format_change(-0.0193)
    '−1.9 %'
    """
    return word_plainly(share).replace("-", "−")


def _bound(number: float) -> float:
    """The number, or one as large as can be drawn; 0 for what is none."""
    return 0.0 if math.isnan(number) else min(max(number, -ENDLESS), ENDLESS)


def draw_region(span: Span, limit: float, top: float, height: float, dashes: str = "4 3") -> Markup:
    """From minus a limit, as a log-ratio, to plus the same: shaded, and with lines where the axis has both ends."""
    ends = [_bound(to_share(one)) for one in (-limit, limit)]
    left, right = map(span.at, ends)
    lines = "".join(f"M{fix(span.at(end))} {fix(top)}v{fix(height)}" for end in ends if span.has(end))
    parts = [element("rect", x=left, y=top, width=right - left, height=height, fill_opacity=0.06)]
    if lines:
        parts.append(element("path", d=lines, stroke="currentColor", stroke_opacity=0.5, stroke_dasharray=dashes))
    return join(parts)


def draw_dots(strokes: str, ink: str) -> Markup:
    return element("path", d=strokes, stroke=ink, stroke_width=7, stroke_linecap="round", stroke_opacity=0.6)


def draw_centre(x: float, y: float) -> Markup:
    return element("path", d=f"M{fix(x)} {fix(y - 5)}v10", stroke="currentColor", stroke_width=2)


HEADER, BAR, GAP, LINE = 17.0, 20.0, 8.0, 17.0
SWATCH = 10.0
# Room for a number in the table.
COLUMN = 64.0
# What a bar is cut by, so that neighbours are told apart in print as well.
CUT = 1.0
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"))


@dataclasses.dataclass(frozen=True)
class StageBar:
    """The instructions of one run by stage, under a name."""

    name: str
    instructions: Mapping[str, float]

    @property
    def total(self) -> float:
        return sum(self.instructions.values())


def stack_sides(explanation: Explanation) -> tuple[StageBar, ...]:
    stages = explanation.stages
    return tuple(StageBar(side.value, {one.stage: getattr(one, side.value) for one in stages}) for side in Side)


def draw_stages(stacks: Sequence[StageBar], *, name: str = "Instructions by stage") -> Markup:
    """One bar or two, and a table of the stages that there are. `name` is what those hear who do not see it."""
    stacks = [_clean(stack) for stack in stacks]
    known = dict.fromkeys([*STAGES, *(stage for stack in stacks for stage in stack.instructions)])
    stages = [stage for stage in known if any(stack.instructions.get(stage) for stack in stacks)]
    longest = max((stack.total for stack in stacks), default=0.0)
    figure = Figure()
    for stack in stacks:
        figure.add_heading(stack.name, format_instructions(stack.total), figure.height + 12, apart=GAP)
        bar = _draw_bar(stack, stages, figure.height + HEADER, longest)
        figure.add(bar, height=HEADER + BAR + GAP)
    figure.add(_draw_table(stacks, stages, figure.height), height=LINE * (len(stages) + (len(stacks) > 1)) + 4)
    return figure.close(name, _describe(stacks, stages))


def _clean(stack: StageBar) -> StageBar:
    """The same without what is no count."""
    return StageBar(stack.name, {stage: n for stage, n in stack.instructions.items() if 0 <= n < ENDLESS})


def _draw_bar(stack: StageBar, stages: Sequence[str], top: float, longest: float) -> Markup:
    parts, x = [], MARGIN
    for stage in stages:
        number = stack.instructions.get(stage, 0.0)
        if not number or not longest:
            continue
        length = (WIDTH - 2 * MARGIN) * (number / longest)
        told = title(f"{stack.name}, {stage}: {format_instructions(number)} ({100 * number / stack.total:.1f} %)")
        shown = max(length - CUT, min(length, CUT / 2))
        parts.append(element("rect", told, x=x, y=top, width=shown, height=BAR, fill=stage_colour(stage)))
        x += length
    return join(parts)


def _draw_table(stacks: Sequence[StageBar], stages: Sequence[str], top: float) -> Markup:
    ends = [WIDTH - MARGIN - COLUMN * i for i in range(len(stacks) + (len(stacks) == 2))][::-1]
    room = (ends[0] if ends else WIDTH) - COLUMN - MARGIN - SWATCH - GAP
    parts, y = [], top + 12
    if len(stacks) > 1:
        names = [*(stack.name for stack in stacks), *(["change"] if len(stacks) == 2 else [])]
        parts += [_cell(end, y, fit(name, COLUMN, SMALL), 0.7) for end, name in zip(ends, names, strict=True)]
        y += LINE
    for stage in stages:
        numbers = [stack.instructions.get(stage, 0.0) for stack in stacks]
        texts = [format_instructions(number) for number in numbers]
        if len(numbers) == 2:
            texts.append(_format_count_change(*numbers))
        parts.append(element("rect", x=MARGIN, y=y - 9, width=SWATCH, height=SWATCH, rx=2, fill=stage_colour(stage)))
        parts.append(label(MARGIN + SWATCH + GAP, y, fit(stage, room, SMALL), size=SMALL))
        parts += [_cell(end, y, fit(text, COLUMN, SMALL), None) for end, text in zip(ends, texts, strict=True)]
        y += LINE
    return join(parts)


def _cell(end: float, y: float, text: str, opacity: float | None) -> Markup:
    return label(end, y, text, size=SMALL, anchor="end", opacity=opacity)


def format_instructions(number: float) -> str:
    """A count of instructions, in four figures where it has many.

    >>> format_instructions(2421.2), format_instructions(32_104_000), format_instructions(3.5e12)
    ('2,421', '32.1 M', '3.5 T')
    """
    if number < ENORMOUS:
        return f"{number:,.0f}"
    unit, letter = next((unit, letter) for unit, letter in UNITS if number >= unit)
    return f"{number / unit:.4g} {letter}"


def _format_count_change(base: float, head: float) -> str:
    delta = head - base
    rounded = f"{'+' if delta > 0 else '-'}{format_instructions(abs(delta))}"
    return (format_delta(delta) if abs(delta) < ENORMOUS else rounded).replace("-", "−")


def _describe(stacks: Sequence[StageBar], stages: Sequence[str]) -> str:
    told = []
    for stack in stacks:
        shares = ", ".join(f"{stage} {format_instructions(stack.instructions.get(stage, 0.0))}" for stage in stages)
        told.append(f"{stack.name}: {format_instructions(stack.total)} instructions{f'; {shares}' if shares else ''}.")
    return " ".join(told) or "Nothing to show."
