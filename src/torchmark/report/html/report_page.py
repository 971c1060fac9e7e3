"""The report page: its parts in their order, an overview, and the method."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from torchmark.model.judgement import CaseJudgement, Verdict
from torchmark.model.plan import Metric, Sampling
from torchmark.model.report_data import Command, Drawing, ReportData, ReportEntry, Section
from torchmark.report.flame.page import pack_flames
from torchmark.report.html.report_details import pack_page
from torchmark.report.html.report_rows import arrange, identify_row, make_table
from torchmark.report.html.report_story import (
    SIGNS,
    EntryStatus,
    add_up_changes,
    add_up_shares,
    describe_doubts,
    describe_explained,
    describe_story,
    find_change,
    find_common,
    find_status,
    hold_default_gate,
    is_compared,
    list_builds,
    list_doubts,
    list_facts,
    make_headline,
    name_sides,
)
from torchmark.report.html.templates import render_page, script_json
from torchmark.report.plots.svg import stage_colour
from torchmark.report.text.failures import format_failure
from torchmark.report.text.gate import list_sentences
from torchmark.report.text.names import Variants
from torchmark.report.text.terminal import count, format_lines, group, printable
from torchmark.report.text.units import format_delta, format_share_cell, format_time
from torchmark.report.text.verdict_reasons import format_verdict_change


def describe_method(samplings: Sequence[Sampling], *, in_turns: bool = False) -> tuple[str, ...]:
    """A sentence on times and one on counts; `samplings` are those of all sides, the last of which is told.

    >>> describe_method([Sampling((Metric.WALL,))])
    ('Times are medians of blocks of runs, in a process of its own for each case, for 200 ms or more.',)
    """
    sampling = samplings[-1]
    texts = []
    if Metric.WALL in sampling.metrics:
        text = "Times are medians of blocks of runs, in a process of its own for each case, "
        text += f"for {format_time(sampling.min_run_time_s)} or more"
        text += f", in {count(sampling.repeat, 'round')}" if sampling.repeat > 1 else ""
        if len(samplings) > 1:
            text += "; the sides were timed " + ("case by case" if in_turns else "one after the other")
        texts.append(f"{text}.")
    if Metric.COUNT in sampling.metrics:
        texts.append(
            "Instructions are counted by Valgrind's Callgrind, exactly, as the median of "
            f"{count(len(sampling.layouts), 'layout')} of memory; flame graphs are of the same counts, "
            "shared out among callers."
        )
    return tuple(texts)


# In either direction: as many as are taken in at a glance.
MOST_BARS = 8
MOST_NAMES = 12


class ChangeBar(NamedTuple):
    """A bar from the line at zero, and the interval around its end, in per cent of the width."""

    name: str
    row: str
    text: str
    tone: str
    left: float
    width: float
    zero: float = 0.0
    low: float = 0.0
    reach: float = 0.0
    colour: str = ""


def count_statuses(report: ReportData) -> list[tuple[str, str, str, int]]:
    """Those that occur, in their order: what they are called, their tone and sign, and how many cases have them."""
    found = Counter(find_status(entry) for entry in report.entries)
    return [(one.value, one.name.lower(), SIGNS[one], found[one]) for one in EntryStatus if found[one]]


def draw_changes(entries: Sequence[ReportEntry], variants: Variants) -> list[ChangeBar]:
    """The largest changes as bars on one scale: first all that became slower, then what became faster."""
    found = [(find_change(one.judgement), one.judgement) for one in entries if one.judgement is not None]
    found.sort(key=lambda pair: -abs(pair[0][0]))
    slower, faster = ([one for one in found if one[1].verdict is v] for v in (Verdict.SLOWER, Verdict.FASTER))
    largest = [*slower[:MOST_BARS], *faster[:MOST_BARS]]
    span = _PercentSpan([edge for change, _ in largest for edge in change])
    return [_draw_change(judgement, change, span, variants) for change, judgement in largest]


class _PercentSpan:
    """Puts values between 0 and 100 per cent of a width, which has zero in it."""

    def __init__(self, values: Sequence[float]) -> None:
        self.low, self.high = min((0.0, *values)), max((0.0, *values))

    def at(self, value: float) -> float:
        return round((value - self.low) / (self.high - self.low) * 100, 2) if self.high > self.low else 0.0

    def draw(self, value: float) -> tuple[float, float]:
        left = self.at(min(value, 0.0))
        return left, round(self.at(max(value, 0.0)) - left, 2)


def _draw_change(
    judgement: CaseJudgement, change: tuple[float, float, float], span: _PercentSpan, variants: Variants
) -> ChangeBar:
    share, low, high = change
    name, row = variants.name(judgement.case), identify_row(judgement.case)
    text, tone = format_verdict_change(judgement), judgement.verdict.value
    whisker = span.at(low), round(span.at(high) - span.at(low), 2)
    return ChangeBar(name, row, text, tone, *span.draw(share), span.at(0.0), *whisker)


def draw_stages(report: ReportData) -> list[ChangeBar]:
    """What stages have of all changes, or of a single side what part of a typical case they are."""
    if is_compared(report):
        changed = [one for one in report.entries if find_status(one) in (EntryStatus.SLOWER, EntryStatus.FASTER)]
        deltas = add_up_changes(changed)
        span = _PercentSpan(list(deltas.values()))
        return [
            ChangeBar(stage, "", format_delta(delta), "", *span.draw(delta), span.at(0.0), colour=stage_colour(stage))
            for stage, delta in deltas.items()
        ]
    bars, left = [], 0.0
    for stage, share in add_up_shares(report.entries).items():
        width = round(share * 100, 2)
        text, colour = format_share_cell(share), stage_colour(stage)
        bars.append(ChangeBar(stage, "", text, "", round(left, 2), width, colour=colour))
        left += share * 100
    return bars


def list_failed(report: ReportData, variants: Variants) -> list[tuple[str, str, list[tuple[str, str]], int]]:
    """The side, the reason, names and rows of the first cases that it hit, and how many more it did."""
    hit = group(
        (failed, (variants.name(entry.case), identify_row(entry.case)))
        for entry in report.entries
        for failed in list_entry_failures(entry, report)
    )
    return [(*failed, links[:MOST_NAMES], max(len(links) - MOST_NAMES, 0)) for failed, links in hit.items()]


def list_entry_failures(entry: ReportEntry, report: ReportData) -> list[tuple[str, str]]:
    """The side and the reason on a line, for each failure of a case; those of a judgement where sides tell none."""
    found = [
        (printable(side.name), format_failure(failure))
        for side, summary in zip(report.sides, entry.summaries, strict=True)
        for _, failure in (() if summary is None else summary.failures)
    ]
    if not found and entry.judgement is not None:
        found = [(one.side.value, format_failure(one.failure)) for one in entry.judgement.failures]
    return list(dict.fromkeys(found))


SCRIPTS = ("flame.js", "samples.js", "details.js", "report.js")
STYLES = ("flame.css", "report.css")
# Reasons of a gate that are told one by one.
MOST_REASONS = 5
# So many caveats are shown whole. More are folded to a line each.
MOST_WHOLE = 2


def render_report(report: ReportData) -> str:
    """The whole page. It loads nothing, and runs no script but its own."""
    report = arrange(report)
    common = find_common(report)
    doubts = [list_doubts(entry, report.sides, common) for entry in report.entries]
    columns, rows = make_table(report, doubts)
    values = _describe_counts(report) | {
        "columns": columns,
        "rows": rows,
        "page_json": script_json(pack_page(report, columns, rows, doubts)),
        "flames": pack_flames([flame for entry in report.entries for flame in entry.flames]),
    }
    return render_page("report.html", STYLES, SCRIPTS, values)


def _describe_counts(report: ReportData) -> dict[str, Any]:
    variants = Variants(entry.case for entry in report.entries)
    gate = hold_default_gate(report)
    reasons = [] if gate is None else list_sentences(gate)
    return {
        "title": printable(report.title),
        "headline": make_headline(report),
        "sides_told": name_sides(report),
        "story": [_hold_together(text) for text in describe_story(report)],
        "remarks": [format_lines(text) for text in report.remarks],
        "compared": is_compared(report),
        "tiles": count_statuses(report),
        "whole": MOST_WHOLE,
        "changes": draw_changes(report.entries, variants),
        "stages": draw_stages(report),
        "explained": describe_explained(report.entries),
        "judged": gate is not None,
        "reasons": [_hold_together(text) for text in reasons[:MOST_REASONS]],
        "more_reasons": max(len(reasons) - MOST_REASONS, 0),
        "failed": list_failed(report, variants),
        "doubts": [_hold_together(text) for text in describe_doubts(report)],
        "sections": [_clean_section(section) for section in report.sections],
        "sides": [printable(side.name) for side in report.sides],
        "facts": list_facts(report.sides),
        "builds": list_builds(report.sides),
        "method": [printable(text) for text in report.method],
        "commands": [Command(printable(one.about), format_lines(one.text)) for one in report.commands],
        "created": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(report.created)),
        "torchmark": printable(report.torchmark),
    }


def _hold_together(text: str) -> str:
    """A sentence in which no line begins with the sign of the number before."""
    return text.replace(" %", "\xa0%")


def _clean_section(section: Section) -> Section:
    """The same without what is not to be seen, or would turn a line around."""
    return Section(
        title=printable(section.title),
        paragraphs=tuple(map(format_lines, section.paragraphs)),
        columns=tuple(map(printable, section.columns)),
        rows=tuple(tuple(map(printable, row)) for row in section.rows),
        drawings=tuple(Drawing(printable(one.caption), one.svg) for one in section.drawings),
    )
