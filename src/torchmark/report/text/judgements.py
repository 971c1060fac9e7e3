"""Judgements as text: many in a table, or one with all its evidence."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Sequence

from torchmark.model.judgement import CaseJudgement, Side, TimeEvidence, Verdict
from torchmark.report.caveats import Face, describe_caveat, explain_doubts, find_comparison_marks, find_shared
from torchmark.report.text.failures import format_failure, join_reason
from torchmark.report.text.names import Variants, name_case
from torchmark.report.text.run_table import MISSING
from torchmark.report.text.table import TextColumn, TextRow, TextTable
from torchmark.report.text.terminal import (
    BOLD,
    DIM,
    GREEN,
    LEAST_WIDTH,
    RED,
    YELLOW,
    count,
    cut,
    group,
    measure,
    pad,
    printable,
    wrap,
)
from torchmark.report.text.units import (
    explain_level,
    find_bound,
    find_seconds,
    format_allocation_delta,
    format_change_cell,
    format_delta,
    format_interval_cell,
    format_level,
    format_magnitude_cell,
    format_seconds_change,
    has_interval,
    to_share,
)
from torchmark.report.text.verdict_reasons import (
    SHORT_CAUSES,
    describe_facts,
    describe_failed_sides,
    describe_verdict,
    format_verdict_change,
)

# The column of marks has no head.
MARKS = ""
WHY = "why"
# Reasons are shown, and cut, where there is so much room for them.
LEAST_WHY = 20
COLUMNS = ("time", "±", "per run", "instr.", "%", "mallocs", "tensors", MARKS, WHY)
# What changed comes first, then what asks for attention.
RANKS = {Verdict.SLOWER: 0, Verdict.FASTER: 0, Verdict.FAILED: 1, Verdict.UNDECIDED: 2, Verdict.SAME: 3}


@dataclasses.dataclass(frozen=True)
class JudgementRow:
    """A case in the table."""

    judgement: CaseJudgement
    name: str
    cells: dict[str, str]


def order_judgements(judgements: Iterable[CaseJudgement]) -> list[CaseJudgement]:
    """The largest change first; then what failed, what is undecided and what is the same."""
    return sorted(judgements, key=lambda judgement: (RANKS[judgement.verdict], -find_magnitude(judgement)))


def find_magnitude(judgement: CaseJudgement) -> float:
    """How large a change is, whatever its direction: of time, or of instructions where there is no time."""
    if judgement.time is not None:
        change = judgement.time.log_ratio
    elif judgement.count is not None:
        # All instructions may be gone.
        change = math.log1p(judgement.count.ratio) if judgement.count.ratio > -1 else -math.inf
    else:
        change = 0.0
    return 0.0 if math.isnan(change) else abs(change)


def make_rows(judgements: Sequence[CaseJudgement], among: Sequence[CaseJudgement]) -> list[JudgementRow]:
    """Rows in the order given, with names that tell them apart from all others they are `among`."""
    variants, shared = Variants(judgement.case for judgement in among), find_shared(among)
    return [
        JudgementRow(one, variants.name(one.case), fill_cells(one, find_comparison_marks(one, shared)))
        for one in judgements
    ]


def fill_cells(judgement: CaseJudgement, marks: str = "") -> dict[str, str]:
    cells = dict.fromkeys(COLUMNS, "") | {"time": MISSING, MARKS: marks, WHY: SHORT_CAUSES[judgement.cause]}
    if (time := judgement.time) is not None:
        cells |= {
            "time": format_change_cell(to_share(time.log_ratio)),
            "±": format_interval_cell(time) or MISSING,
            "per run": format_seconds_change(find_seconds(time)),
        }
    if (counted := judgement.count) is not None:
        mallocs = counted.head_allocations - counted.base_allocations
        tensors = counted.head_tensor_allocations - counted.base_tensor_allocations
        cells |= {
            "instr.": format_delta(counted.delta),
            "%": format_change_cell(counted.ratio) if counted.delta else "",
            "mallocs": format_allocation_delta(mallocs) if mallocs else "",
            "tensors": format_allocation_delta(tensors) if tensors else "",
        }
    return cells


def find_columns(rows: Sequence[JudgementRow]) -> list[str]:
    """Those in which there is something to say."""
    return [column for column in COLUMNS if any(row.cells[column] not in ("", MISSING) for row in rows)]


def describe_same(judgements: Sequence[CaseJudgement]) -> str:
    """What can be said of all of these together, where they are too many for lines of their own."""
    text = f"{len(judgements)} cases"
    bounds = [find_bound(judgement.time) for judgement in judgements if judgement.time is not None]
    if bounds:
        text += f", within {format_magnitude_cell(max(bounds))}"
    differing = sum(judgement.count is not None and judgement.count.delta != 0 for judgement in judgements)
    return text + (f"; {differing} with other instructions" if differing else "")


# Names have at least this much room, and this part of the width if they are that long; columns give way.
LEAST_NAME = 16
NAME_SHARE = 1 / 3
# In which order they do.
DISPENSABLE = ("tensors", "mallocs", "per run", "%", "±", "instr.")
# Columns that stand close to the one before, which they qualify.
QUALIFYING = ("±", "%", "tensors", MARKS)
VERDICT, CASE = "verdict", "case"
# More cases that are the same than this are told in one line: they are what nobody has to look at.
MOST_SAME = 20

STYLES = {
    Verdict.SLOWER: RED,
    Verdict.FASTER: GREEN,
    Verdict.SAME: DIM,
    Verdict.UNDECIDED: YELLOW,
    Verdict.FAILED: RED + BOLD,
}


def render_table(
    judgements: Sequence[CaseJudgement], width: int, *, colour: bool, all_cases: bool
) -> tuple[list[str], tuple[str, ...]]:
    """The lines, and the columns that there was no room for."""
    ordered = order_judgements(judgements)
    same = [judgement for judgement in ordered if judgement.verdict is Verdict.SAME]
    folded = same if len(same) > MOST_SAME and not all_cases else []
    room = width - max(len(judgement.verdict.value) for judgement in judgements) - 2
    made = make_rows(ordered[: len(ordered) - len(folded)], judgements)
    rows = [_make_text_row(row, room) for row in made]
    if folded:
        words = [cut(describe_same(folded), room)]
        rows.append(TextRow({VERDICT: Verdict.SAME.value}, instead=words, style=STYLES[Verdict.SAME]))
    keys = find_columns([row for row in made if row.judgement.verdict is not Verdict.FAILED])
    columns = [
        TextColumn(VERDICT, "", left=True),
        TextColumn(CASE, left=True, least=max(LEAST_NAME, int(width * NAME_SHARE))),
        *(TextColumn(key, gap=1 if key in QUALIFYING else 2, left=key == MARKS) for key in keys if key != WHY),
        *([TextColumn(WHY, left=True, least=LEAST_WHY, spare=True)] if WHY in keys else []),
    ]
    # Without times, instructions are what stays.
    gives_way = DISPENSABLE if "time" in keys else DISPENSABLE[:-1]
    table = TextTable(columns, rows, width, name=CASE, gives_way=gives_way, colour=colour)
    return table.lines(), table.left_out


def _make_text_row(row: JudgementRow, room: int) -> TextRow:
    """The reason of what failed takes the place of the numbers."""
    verdict = row.judgement.verdict
    if verdict is Verdict.FAILED:
        reason = join_reason(row.name, describe_failed_sides(row.judgement), room)
        return TextRow({VERDICT: verdict.value}, instead=reason, style=STYLES[verdict])
    return TextRow({VERDICT: verdict.value, CASE: row.name, **row.cells}, style=STYLES[verdict])


# In the order in which they are counted, with the word for the most extreme of them where there is one.
_EXTREMES = {Verdict.SLOWER: "worst", Verdict.FASTER: "best", Verdict.SAME: "", Verdict.UNDECIDED: ""}


def render_judgements(
    judgements: Sequence[CaseJudgement],
    width: int,
    *,
    colour: bool = False,
    base: str = "base",
    head: str = "head",
    all_cases: bool = False,
) -> str:
    """A line a case, the largest change first, then what the marks mean, and a closing sentence.

    `base` and `head` are what the sides are called. Many cases that are the same are one line unless `all_cases`.
    """
    width = max(width, LEAST_WIDTH)
    closing = "\n".join(wrap(close(judgements), width))
    if not judgements:
        return closing
    table, left_out = render_table(judgements, width, colour=colour, all_cases=all_cases)
    meaning = f"Changes are of {printable(head)} against {printable(base)}, for one run."
    if "±" not in left_out:
        meaning += _explain_interval([one.time for one in judgements if one.time is not None])
    legend = wrap(meaning, width)
    for mark, text in explain_doubts(judgements):
        legend += wrap(f"{mark}  {text}" if mark else f"Note: {text}", width, 3 if mark else 2)
    # There is a sentence on the cause wherever a case is told of by itself.
    if left_out:
        legend += wrap(f"A wider terminal shows {', '.join(reversed(left_out))} too.", width)
    return "\n\n".join(["\n".join(table), "\n".join(legend), closing])


def _explain_interval(times: Sequence[TimeEvidence]) -> str:
    """How sure the intervals are, and why that is not 95 %; empty where there are none."""
    found = [time for time in times if has_interval(time)]
    if not found:
        return ""
    least = min(found, key=lambda time: time.confidence)
    level, reason = format_level(least.confidence), explain_level(least)
    alike = len({one.confidence for one in found}) == 1
    which = f"the {level} interval" if alike else f"an interval of at least {level}"
    return f" ± is {which} of the change in time{f': {reason}' if reason else ''}."


def describe_judgement(judgement: CaseJudgement, width: int = 80, face: Face = "shell") -> str:
    """The verdict, what was measured, how and why, and what is to be doubted."""
    width = max(width, LEAST_WIDTH)
    lines = wrap(f"{name_case(judgement.case)}: {describe_verdict(judgement)}", width, 2)
    facts = describe_facts(judgement)
    room = max(measure(name) for name, _ in facts)
    for name, text in facts:
        lines += wrap(f"  {pad(name, room)}  {text}", width, room + 4)
    for caveat in judgement.caveats:
        lines += wrap(f"  Note: {describe_caveat(caveat, face)}", width, 4)
    return "\n".join(lines)


def close(judgements: Sequence[CaseJudgement]) -> str:
    """One sentence in which every case is counted once.

    >>> close([])
    'Nothing was compared.'
    """
    if not judgements:
        return "Nothing was compared."
    variants = Variants(judgement.case for judgement in judgements)
    parts = []
    for verdict, extreme in _EXTREMES.items():
        if found := [judgement for judgement in judgements if judgement.verdict is verdict]:
            worst, which = max(found, key=find_magnitude), f"{extreme}: " if len(found) > 1 else ""
            told = f" ({which}{format_verdict_change(worst)}, {variants.name(worst.case)})" if extreme else ""
            parts.append(f"{len(found)} {verdict.value}{told}")
    failed = Counter(describe_verdict(judgement) for judgement in judgements if judgement.verdict is Verdict.FAILED)
    parts += [f"{number} {where}" for where, number in failed.items()]
    return f"{count(len(judgements), 'case')}: {', '.join(parts)}."


def render_side_failures(judgements: Sequence[CaseJudgement], width: int = 80) -> str:
    """What failed on each side: each reason once, with the cases it hit; empty where nothing did."""
    variants = Variants(judgement.case for judgement in judgements)
    hit = group(
        ((side, format_failure(failed.failure)), variants.name(judgement.case))
        for side in Side
        for judgement in judgements
        for failed in judgement.failures
        if failed.side is side
    )
    lines: list[str] = []
    for (side, reason), names in hit.items():
        lines += wrap(f"Failed on {side.value}, {count(len(names), 'case')}: {reason}", width, 2)
        lines += wrap(f"  {'; '.join(names)}", width, 4)
    return "\n".join(lines)
