"""Judgements for people: many in a table, one with all that is known of it, and sentences on all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from torchmark.model.judgement import Judgement, Side, TimeEvidence, Verdict
from torchmark.report.cells import measure, pad, wrap
from torchmark.report.changes import explain_level, has_interval, word_level
from torchmark.report.comparison_marks import explain_doubts
from torchmark.report.failed import sum_up
from torchmark.report.judgement_facts import say_change, say_verdict, tell_facts, tell_notes
from torchmark.report.judgement_rows import find_magnitude
from torchmark.report.judgement_table import render_table
from torchmark.report.printable import count, printable
from torchmark.report.variants import Variants, name_case
from torchmark.report.wording import Face

LEAST_WIDTH = 40
# In the order in which they are counted, with the word for the most extreme of them where there is one.
_EXTREMES = {Verdict.SLOWER: "worst", Verdict.FASTER: "best", Verdict.SAME: "", Verdict.UNDECIDED: ""}


def render_judgements(
    judgements: Sequence[Judgement],
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
    closing = "\n".join(_wrap(close(judgements), width))
    if not judgements:
        return closing
    table, left_out = render_table(judgements, width, colour=colour, all_cases=all_cases)
    meaning = f"Changes are of {printable(head)} against {printable(base)}, for one run."
    if "±" not in left_out:
        meaning += _explain_interval([one.time for one in judgements if one.time is not None])
    legend = _wrap(meaning, width)
    for mark, text in explain_doubts(judgements):
        legend += _wrap(f"{mark}  {text}" if mark else f"Note: {text}", width, 3 if mark else 2)
    # There is a sentence on the cause wherever a case is told of by itself.
    missed = [column for column in reversed(left_out) if column != "why"]
    if missed:
        legend += _wrap(f"A wider terminal shows {', '.join(missed)} too.", width)
    return "\n\n".join(["\n".join(table), "\n".join(legend), closing])


def _explain_interval(times: Sequence[TimeEvidence]) -> str:
    """How sure the intervals are, and why that is not 95 %; empty where there are none."""
    found = [time for time in times if has_interval(time)]
    if not found:
        return ""
    least = min(found, key=lambda time: time.confidence)
    level = word_level(least.confidence)
    which = (
        f"the {level} interval" if len({one.confidence for one in found}) == 1 else f"an interval of at least {level}"
    )
    reason = explain_level(least)
    return f" ± is {which} of the change in time{f': {reason}' if reason else ''}."


def _wrap(text: str, width: int, hanging: int = 0) -> list[str]:
    """A text on several lines, none of which begins with the sign of the number before."""
    return [line.replace("\xa0", " ") for line in wrap(text.replace(" %", "\xa0%"), width, hanging)]


def describe_judgement(judgement: Judgement, width: int = 80, face: Face = "shell") -> str:
    """The verdict, what was measured, how and why, and what is to be doubted."""
    width = max(width, LEAST_WIDTH)
    lines = _wrap(f"{name_case(judgement.case)}: {say_verdict(judgement)}", width, 2)
    facts = tell_facts(judgement)
    room = max(measure(name) for name, _ in facts)
    for name, text in facts:
        lines += _wrap(f"  {pad(name, room)}  {text}", width, room + 4)
    for note in tell_notes(judgement, face):
        lines += _wrap(f"  Note: {note}", width, 4)
    return "\n".join(lines)


def close(judgements: Sequence[Judgement]) -> str:
    """One sentence in which every case is counted once.

    >>> close([])
    'Nothing was compared.'
    """
    if not judgements:
        return "Nothing was compared."
    variants = Variants(judgement.case for judgement in judgements)
    parts = []
    for verdict, extreme in _EXTREMES.items():
        found = [judgement for judgement in judgements if judgement.verdict is verdict]
        if found and extreme:
            worst = max(found, key=find_magnitude)
            which = f"{extreme}: " if len(found) > 1 else ""
            parts.append(f"{len(found)} {verdict.value} ({which}{say_change(worst)}, {variants.name(worst.case)})")
        elif found:
            parts.append(f"{len(found)} {verdict.value}")
    failed = Counter(say_verdict(judgement) for judgement in judgements if judgement.verdict is Verdict.FAILED)
    parts += [f"{number} {where}" for where, number in failed.items()]
    return f"{count(len(judgements), 'case')}: {', '.join(parts)}."


def tell_side_failures(judgements: Sequence[Judgement], width: int = 80) -> str:
    """What failed on each side: each reason once, with the cases it hit; empty where nothing did."""
    variants = Variants(judgement.case for judgement in judgements)
    hit: dict[Side, dict[str, dict[str, None]]] = {side: {} for side in Side}
    for judgement in judgements:
        for failed in judgement.failures:
            hit[failed.side].setdefault(sum_up(failed.failure), {})[variants.name(judgement.case)] = None
    lines: list[str] = []
    for side, reasons in hit.items():
        for reason, names in reasons.items():
            lines += _wrap(f"Failed on {side.value}, {count(len(names), 'case')}: {reason}", width, 2)
            lines += _wrap(f"  {'; '.join(names)}", width, 4)
    return "\n".join(lines)
