"""Where instructions go, stage by stage: a bar for each side on one scale, and below them what each stage has."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from torchmark.analysis.stages import STAGES
from torchmark.model.judgement import Explanation, Side
from torchmark.report.changes import show_delta
from torchmark.report.plots.palette import stage_colour
from torchmark.report.plots.svg import (
    SMALL,
    WIDTH,
    Markup,
    draw_frame,
    element,
    fit,
    join,
    label,
    measure_text,
    title,
)
from torchmark.report.plots.ticks import ENORMOUS

HEADER, BAR, GAP, LINE = 17.0, 20.0, 8.0, 17.0
MARGIN, SWATCH = 8.0, 10.0
# Room for a number in the table.
COLUMN = 64.0
# What a bar is cut by, so that neighbours are told apart in print as well.
CUT = 1.0
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"))
# No count is as large.
ENDLESS = 1e100


@dataclasses.dataclass(frozen=True)
class Stack:
    """The instructions of one run by stage, under a name."""

    name: str
    instructions: Mapping[str, float]

    @property
    def total(self) -> float:
        """All of them."""
        return sum(self.instructions.values())


def stack_sides(explanation: Explanation) -> tuple[Stack, Stack]:
    """Both sides of an explained difference."""
    return (
        Stack(Side.BASE.value, {change.stage: change.base for change in explanation.stages}),
        Stack(Side.HEAD.value, {change.stage: change.head for change in explanation.stages}),
    )


def draw_stages(stacks: Sequence[Stack], *, name: str = "Instructions by stage", width: float = WIDTH) -> Markup:
    """One bar or two, and a table of the stages that there are. `name` is what those hear who do not see it."""
    stacks = [_clean(stack) for stack in stacks]
    known = dict.fromkeys([*STAGES, *(stage for stack in stacks for stage in stack.instructions)])
    stages = [stage for stage in known if any(stack.instructions.get(stage) for stack in stacks)]
    longest = max((stack.total for stack in stacks), default=0.0)
    parts, y = [], 0.0
    for stack in stacks:
        parts += [_draw_header(stack, y, width), _draw_bar(stack, stages, y + HEADER, (width - 2 * MARGIN), longest)]
        y += HEADER + BAR + GAP
    parts.append(_draw_table(stacks, stages, y, width))
    height = y + LINE * (len(stages) + (len(stacks) > 1)) + 4
    return draw_frame(width, height, name, _describe(stacks, stages), *parts)


def _clean(stack: Stack) -> Stack:
    """The same without what is no count."""
    return Stack(stack.name, {stage: n for stage, n in stack.instructions.items() if 0 <= n < ENDLESS})


def _draw_header(stack: Stack, top: float, width: float) -> Markup:
    total = show(stack.total)
    room = width - 2 * MARGIN - measure_text(total, SMALL) - GAP
    return join(
        [
            label(MARGIN, top + 12, fit(stack.name, room, bold=True), weight="600"),
            label(width - MARGIN, top + 12, total, size=SMALL, anchor="end", opacity=0.8),
        ]
    )


def _draw_bar(stack: Stack, stages: Sequence[str], top: float, width: float, longest: float) -> Markup:
    """Stages side by side; pointing at one tells its number."""
    parts, x = [], MARGIN
    for stage in stages:
        number = stack.instructions.get(stage, 0.0)
        if not number or not longest:
            continue
        length = width * (number / longest)
        told = title(f"{stack.name}, {stage}: {show(number)} ({100 * number / stack.total:.1f} %)")
        shown = max(length - CUT, min(length, CUT / 2))
        parts.append(element("rect", told, x=x, y=top, width=shown, height=BAR, fill=stage_colour(stage)))
        x += length
    return join(parts)


def _draw_table(stacks: Sequence[Stack], stages: Sequence[str], top: float, width: float) -> Markup:
    """A line a stage with the numbers of all sides, and the difference of two."""
    ends = [width - MARGIN - COLUMN * i for i in range(len(stacks) + (len(stacks) == 2))][::-1]
    room = (ends[0] if ends else width) - COLUMN - MARGIN - SWATCH - GAP
    parts, y = [], top + 12
    if len(stacks) > 1:
        names = [*(stack.name for stack in stacks), *(["change"] if len(stacks) == 2 else [])]
        parts += [_cell(end, y, fit(name, COLUMN, SMALL), 0.7) for end, name in zip(ends, names, strict=True)]
        y += LINE
    for stage in stages:
        numbers = [stack.instructions.get(stage, 0.0) for stack in stacks]
        texts = [show(number) for number in numbers]
        if len(numbers) == 2:
            texts.append(_show_change(*numbers))
        parts.append(element("rect", x=MARGIN, y=y - 9, width=SWATCH, height=SWATCH, rx=2, fill=stage_colour(stage)))
        parts.append(label(MARGIN + SWATCH + GAP, y, fit(stage, room, SMALL), size=SMALL))
        parts += [_cell(end, y, fit(text, COLUMN, SMALL), None) for end, text in zip(ends, texts, strict=True)]
        y += LINE
    return join(parts)


def _cell(end: float, y: float, text: str, opacity: float | None) -> Markup:
    return label(end, y, text, size=SMALL, anchor="end", opacity=opacity)


def show(number: float) -> str:
    """A count of instructions, in four figures where it has many.

    >>> show(2421.2), show(32_104_000), show(3.5e12)
    ('2,421', '32.1 M', '3.5 T')
    """
    if number < ENORMOUS:
        return f"{number:,.0f}"
    unit, letter = next((unit, letter) for unit, letter in UNITS if number >= unit)
    return f"{number / unit:.4g} {letter}"


def _show_change(base: float, head: float) -> str:
    delta = head - base
    text = show_delta(delta) if abs(delta) < ENORMOUS else f"{'+' if delta > 0 else '-'}{show(abs(delta))}"
    return text.replace("-", "−")


def _describe(stacks: Sequence[Stack], stages: Sequence[str]) -> str:
    told = []
    for stack in stacks:
        shares = ", ".join(f"{stage} {show(stack.instructions.get(stage, 0.0))}" for stage in stages)
        told.append(f"{stack.name}: {show(stack.total)} instructions{f'; {shares}' if shares else ''}.")
    return " ".join(told) or "Nothing to show."
