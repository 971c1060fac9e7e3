"""The table of judgements: a line a case, in the columns that there is room for."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

from torchmark.model.judgement import Judgement, Verdict
from torchmark.report.causes import say_failures
from torchmark.report.cells import cut, cut_middle, measure, pad, wrap
from torchmark.report.failed import join_reason, shorten_name
from torchmark.report.judgement_rows import MARKS, JudgementRow, find_columns, make_rows, order_judgements, sum_up_same

# Names have at least this much room, and this part of the width if they are that long; columns give way.
LEAST_NAME = 16
NAME_SHARE = 1 / 3
# In which order they do.
DISPENSABLE = ("why", "tensors", "mallocs", "per run", "%", "±", "instr.")
# Columns that stand close to the one before, which they qualify.
QUALIFYING = ("±", "%", "tensors", MARKS)
GAP = "  "
# More cases that are the same than this are told in one line: they are what nobody has to look at.
MOST_SAME = 20

BOLD, DIM, RED, GREEN, YELLOW, END = "\033[1m", "\033[2m", "\033[31m", "\033[32m", "\033[33m", "\033[0m"
STYLES = {
    Verdict.SLOWER: RED,
    Verdict.FASTER: GREEN,
    Verdict.SAME: DIM,
    Verdict.UNDECIDED: YELLOW,
    Verdict.FAILED: RED + BOLD,
}


@dataclasses.dataclass(frozen=True)
class _Layout:
    verdict: int
    name: int
    columns: dict[str, int]
    left_out: tuple[str, ...]


def _lay_out(rows: Sequence[JudgementRow], verdicts: int, width: int) -> _Layout:
    """How wide columns are. What nobody has anything to say in is left out, and what there is no room for."""
    sizes = {column: max(len(column), *(measure(row.cells[column]) for row in rows)) for column in find_columns(rows)}
    longest = max((measure(row.name) for row in rows), default=LEAST_NAME)
    taken = verdicts + len(GAP)
    least = min(max(LEAST_NAME, int(width * NAME_SHARE)), longest)
    left_out = []
    for column in DISPENSABLE:
        if column in sizes and len(sizes.keys() - {MARKS}) > 1 and width - taken - _add_up(sizes) < least:
            del sizes[column]
            left_out.append(column)
    room = max(min(longest, width - taken - _add_up(sizes)), len("case"))
    return _Layout(verdicts, room, sizes, tuple(left_out))


def _add_up(sizes: dict[str, int]) -> int:
    return sum(len(_gap(column)) + size for column, size in sizes.items())


def _gap(column: str) -> str:
    return " " if column in QUALIFYING else GAP


def render_table(
    judgements: Sequence[Judgement], width: int, *, colour: bool, all_cases: bool
) -> tuple[list[str], tuple[str, ...]]:
    """The lines, and the columns that there was no room for."""
    ordered = order_judgements(judgements)
    same = [judgement for judgement in ordered if judgement.verdict is Verdict.SAME]
    folded = same if len(same) > MOST_SAME and not all_cases else []
    shown = ordered[: len(ordered) - len(folded)]
    verdicts = max(len(judgement.verdict.value) for judgement in judgements)
    rows = make_rows(shown, judgements)
    layout = _lay_out([row for row in rows if row.judgement.verdict is not Verdict.FAILED], verdicts, width)
    heads = _join("", "case", {column: column for column in layout.columns}, layout)
    lines = [_paint(cut(heads, width), BOLD, colour)]
    names = [_cut_name(row, layout, width) for row in rows]
    shared = Counter(names)
    for row, name in zip(rows, names, strict=True):
        # What is left of it, is left of another one, too.
        apart = shared[name] > 1 and name != row.name
        first, *below = _render_apart(row, layout, width) if apart else [_render_row(row, layout, width)]
        lines += [_paint_verdict(first, row.judgement.verdict, colour), *below]
    if folded:
        line = cut(pad(Verdict.SAME.value, verdicts) + GAP + sum_up_same(folded), width)
        lines.append(_paint_verdict(line, Verdict.SAME, colour))
    return lines, layout.left_out


def _cut_name(row: JudgementRow, layout: _Layout, width: int) -> str:
    """What there is room for."""
    if row.judgement.verdict is Verdict.FAILED:
        return shorten_name(row.name, say_failures(row.judgement), width - layout.verdict)
    return cut_middle(row.name, layout.name)


def _render_row(row: JudgementRow, layout: _Layout, width: int) -> str:
    verdict = row.judgement.verdict
    if verdict is not Verdict.FAILED:
        return cut(_join(verdict.value, row.name, row.cells, layout), width)
    # The reason takes the place of the numbers; the name begins where other names do.
    reason = join_reason(row.name, say_failures(row.judgement), width - layout.verdict)
    return pad(verdict.value, layout.verdict) + reason


def _render_apart(row: JudgementRow, layout: _Layout, width: int) -> list[str]:
    """The whole name, and below it the rest, if there is any."""
    verdict, indent = row.judgement.verdict, " " * layout.verdict + GAP
    lines = [indent + text for text in wrap(row.name, width - len(indent)) or [""]]
    lines[0] = verdict.value + lines[0][len(verdict.value) :]
    rest = indent + say_failures(row.judgement) if verdict is Verdict.FAILED else _join("", "", row.cells, layout)
    return [*lines, cut(rest, width)] if rest else lines


def _join(verdict: str, name: str, cells: dict[str, str], layout: _Layout) -> str:
    texts = [pad(verdict, layout.verdict), GAP, pad(cut_middle(name, layout.name), layout.name)]
    for column, size in layout.columns.items():
        texts.append(_gap(column) + pad(cells[column], size, right=column not in (MARKS, "why")))
    return "".join(texts).rstrip()


def _paint(text: str, style: str, colour: bool) -> str:
    return f"{style}{text}{END}" if colour else text


def _paint_verdict(line: str, verdict: Verdict, colour: bool) -> str:
    return _paint(verdict.value, STYLES[verdict], colour) + line[len(verdict.value) :]
