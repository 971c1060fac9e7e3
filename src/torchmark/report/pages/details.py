"""All that is known of a case as plain values for the script of the page, which builds it when somebody looks.

Texts are numbers in a table that all cases share. What the keys mean is between this file and `assets/details.js`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from torchmark.model.case import Case
from torchmark.model.dossier import Breakdown, Dossier, Drawing, Entry
from torchmark.model.judgement import FunctionChange, StageChange
from torchmark.report.changes import show_delta
from torchmark.report.comparison_wording import word_doubt
from torchmark.report.failed import VERBS
from torchmark.report.failures import describe_failure
from torchmark.report.judgement_facts import say_verdict, tell_facts
from torchmark.report.pages.figures import NOTHING, list_numbers
from torchmark.report.pages.packing import Texts, pack_samples, shorten_number
from torchmark.report.plots.differences import draw_differences
from torchmark.report.printable import printable, show_lines
from torchmark.report.units import format_edges, format_time
from torchmark.stats.order import quantile


def pack_details(entry: Entry, dossier: Dossier, doubts: list[str], texts: Texts) -> dict[str, Any]:
    """What a row opens to; what there is nothing to say of is left out."""
    number = texts.number
    found: dict[str, Any] = {
        "numbers": [[number(name), *map(number, values)] for name, values in list_numbers(entry)],
        "doubts": [number(text) for text in doubts],
        "notes": [number(show_lines(text)) for text in (*entry.notes, *_say_apart(entry))],
        "labels": [[number(name), number(text)] for name, text in _list_labels(entry.case)],
        "code": [[number(name), number(text)] for name, text in _list_code(entry)],
        "commands": [[number(printable(one.about)), number(show_lines(one.text))] for one in entry.commands],
        "failures": [[number(title), number(text)] for title, text in _list_failures(entry, dossier)],
        "drawings": [[number(printable(one.caption)), number(one.svg)] for one in _list_drawings(entry)],
        "samples": _pack_all_samples(entry),
        "extremes": _list_extremes(entry),
    }
    if entry.judgement is not None:
        found["verdict"] = number(say_verdict(entry.judgement))
        found["facts"] = [[number(name), number(text)] for name, text in tell_facts(entry.judgement)]
    if entry.breakdown is not None:
        found |= _pack_breakdown(entry.breakdown, texts)
    if entry.obstacles:
        found["apart"] = 1
    return {key: value for key, value in found.items() if value != []}


def _say_apart(entry: Entry) -> Iterator[str]:
    """Why no difference is shown of a case that both sides have."""
    if entry.obstacles:
        yield " ".join(["Each side is shown alone, without a difference.", *map(word_doubt, entry.obstacles)])


def _pack_all_samples(entry: Entry) -> list[list[float] | None]:
    packed = [pack_samples(samples) for samples in _list_samples(entry)]
    return packed if any(packed) else []


def _list_extremes(entry: Entry) -> list[tuple[str, str, float] | None]:
    """The median and the maximum as texts, and the maximum in seconds: samples may be reduced to quantiles."""
    ordered = [sorted(t for t in samples if math.isfinite(t)) for samples in _list_samples(entry)]
    found = [
        (format_time(quantile(times, 0.5)), format_edges(times[0], times[-1])[1], times[-1]) if times else None
        for times in ordered
    ]
    return found if any(found) else []


def _list_samples(entry: Entry) -> list[tuple[float, ...]]:
    """Seconds of a run for each party; of times in turns, a value for each visit of a layout."""
    samples = [() if one is None or one.wall is None else one.wall.samples_s for one in entry.exhibits]
    time = None if entry.judgement is None else entry.judgement.time
    if any(samples) or time is None:
        return samples
    base, head = (tuple(t for visit in time.visits for t in getattr(visit, side)) for side in ("base_s", "head_s"))
    return [base, head]


def _list_drawings(entry: Entry) -> Iterator[Drawing]:
    """Those that the entry brings, or else what taking turns showed."""
    time = None if entry.judgement is None else entry.judgement.time
    if not entry.drawings and time is not None and any(visit.log_ratios for visit in time.visits):
        yield Drawing("How much longer head takes than base, layout by layout.", draw_differences(time))
    yield from entry.drawings


def _pack_breakdown(breakdown: Breakdown, texts: Texts) -> dict[str, Any]:
    """Functions and stages with base's and head's instructions; null for a side that was not counted."""

    def pack(change: FunctionChange | StageChange) -> list[float | int | None]:
        return [None if cost is None else shorten_number(cost) for cost in breakdown.list_costs(change)]

    functions = [
        [texts.number(printable(one.function)), texts.number(one.stage), *pack(one)] for one in breakdown.functions
    ]
    stages = [[texts.number(one.stage), *pack(one)] for one in breakdown.stages if one.base or one.head]
    totals = [texts.number(text) for text in _list_totals(breakdown)]
    packed: dict[str, Any] = {"functions": functions, "stages": stages, "totals": totals}
    if breakdown.rest is not None:
        packed["rest"] = [breakdown.others, *pack(breakdown.rest)]
    return packed


def _list_totals(breakdown: Breakdown) -> list[str]:
    """The instructions of base, of head, and their difference, as they are shown elsewhere."""
    costs = [[breakdown.list_costs(stage)[i] for stage in breakdown.stages] for i in range(2)]
    # Adding leaves errors in the last digits: without them a half is rounded as it is elsewhere.
    base, head = (None if None in side else round(math.fsum(filter(None, side)), 6) for side in costs)
    change = NOTHING if base is None or head is None else show_delta(round(head - base, 6))
    return [*(NOTHING if total is None else f"{total:,.0f}" for total in (base, head)), change]


def _list_labels(case: Case) -> Iterator[tuple[str, str]]:
    labels = case.autolabels.as_dict
    yield "Label", printable(" / ".join(case.label))
    for name, text in (
        ("Suite", case.suite),
        ("Language", labels["language"]),
        ("Runtime", labels["runtime"]),
        ("Autograd", labels["autograd"]),
        ("Threads", str(case.args.num_threads)),
        ("Tags", ", ".join(case.tags)),
    ):
        if text:
            yield name, printable(text)


def _list_code(entry: Entry) -> Iterator[tuple[str, str]]:
    yield from _list_parts(entry.case, "")
    base = _find_base_case(entry)
    if base is not None:
        yield from _list_parts(base, "Base: ")


def _find_base_case(entry: Entry) -> Case | None:
    """What base measured, where that is something else."""
    if entry.judgement is not None:
        return entry.judgement.base_case
    base = entry.exhibits[0]
    differs = any(obstacle.what == "definition" for obstacle in entry.obstacles)
    return base.case if base is not None and differs else None


def _list_parts(case: Case, prefix: str) -> Iterator[tuple[str, str]]:
    args = case.args
    yield f"{prefix}Statement", show_lines(args.stmt)
    if args.setup.strip() not in ("", "pass"):
        yield f"{prefix}Setup", show_lines(args.setup)
    if args.global_setup.strip():
        yield f"{prefix}Global setup", show_lines(args.global_setup)
    if case.artefact is not None:
        yield f"{prefix}TorchScript model", show_lines(case.artefact.source)


def _list_failures(entry: Entry, dossier: Dossier) -> Iterator[tuple[str, str]]:
    """A title and all that is known; those of a judgement where the parties' own results tell none."""
    told = False
    for party, summary in zip(dossier.parties, entry.exhibits, strict=True):
        where = f" in {printable(party.name)}" if len(dossier.parties) > 1 else ""
        for metric, failure in summary.failures if summary is not None else ():
            told = True
            yield f"Failed{where}: {VERBS[metric]}", show_lines(describe_failure(failure))
    if not told and entry.judgement is not None:
        for one in entry.judgement.failures:
            yield f"Failed on {one.side.value}", show_lines(describe_failure(one.failure))
