"""Every number that reports show is that of the side it stands for, whatever was measured on either side.

A side is timed with 1, 3 or 60 samples, not timed, or failed to be; counted with or without costs by function, not
counted, or failed to be; or it does not have the case. All pairs of these are rendered as the commands do it.
"""

from __future__ import annotations

import dataclasses
import html
import itertools
import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import pytest

from tests.made_contrasts import COUNTED, EVAL
from tests.made_flames import read_flames
from tests.sample_runs import ADD, COUNT, MISSING, WALL, make_run, times
from tests.shown_numbers import Allowed, RawChange, RawCounts, RawSide, RawTimes, expect, find_numbers
from torchmark.analysis.results import narrow_run, summarise_run
from torchmark.analysis.verdict.judge import expected_seconds
from torchmark.analysis.verdict.stored import (
    Contrast,
    choose_counts,
    compare_runs,
    explain_changes,
    leave_out_incomparable,
)
from torchmark.api.ab import from_judgement
from torchmark.api.report_data import ReportOptions, load_report_data
from torchmark.api.stored_results import StoredSide
from torchmark.callgrind.profiles import standardise
from torchmark.model.costs import Flame, Function, Profile, Tally
from torchmark.model.judgement import CaseJudgement
from torchmark.model.outcome import Failure, FailureKind, Result
from torchmark.model.plan import Case, Metric, TimerArgs
from torchmark.model.run import Run
from torchmark.model.task import TaskSpec
from torchmark.report.as_json import to_json_case_summary, to_json_contrast
from torchmark.report.html.report_page import render_report
from torchmark.report.html.templates import render_measurement
from torchmark.report.text.gate import describe_unpaired, explain_judgements, summarise_markdown
from torchmark.report.text.judgements import describe_judgement, render_judgements
from torchmark.report.text.run_table import render_results

WIDTH = 400
KERNEL = Function("add.cpp", "at::native::add_kernel", "/lib/libtorch_cpu.so")
FAILED = Failure(FailureKind.RAISED, "It does not work.")
TIMES: tuple[int | None, ...] = (None, 0, 1, 3, 60)
"""Samples; 0 where timing failed."""
COUNTS = (None, "failed", "bare", "full")
Kind = tuple[int | None, str | None] | None
KINDS: tuple[Kind, ...] = (None, *itertools.product(TIMES, COUNTS))
FULL = [kind for kind in KINDS if kind is not None and kind[0] and kind[1] in ("bare", "full")]


def make_times(samples: int, median: float) -> RawTimes:
    """Times without a trend, closer to each other below their median than above it, and one far out."""
    spread = [(((i * 37) % samples) / samples) ** 3 * 0.0371 for i in range(samples)]
    found = [median * (1 + one) for one in spread]
    if samples > 1:
        found[samples // 3] *= 5.317
    return RawTimes(tuple(found))


def make_side(kind: Kind, median: float, costs: tuple[int, int], allocations: int) -> RawSide:
    """What is stored of a side of this kind."""
    samples, counted = kind if kind is not None else (None, None)
    total = sum(costs)
    names = tuple(zip(("_PyEval_EvalFrameDefault", "at::native::add_kernel"), costs, strict=True))
    raw = RawCounts(100, (total - 311, total, total + 907), names, 100 * allocations, 50 * allocations)
    return RawSide(make_times(samples, median) if samples else None, raw if counted in ("bare", "full") else None)


def make_results(kind: Kind, side: RawSide, case: Case) -> Iterator[tuple[tuple[Case, Metric, int], Result]]:
    samples, counted = kind if kind is not None else (None, None)
    if side.times is not None:
        yield (case, WALL, 0), times(1000, *side.times.samples)
    elif samples == 0:
        yield (case, WALL, 0), FAILED
    if (raw := side.counts) is not None:
        costs: dict[Function, tuple[int, ...]] = {
            function: (cost,) for function, (_, cost) in zip((EVAL, KERNEL), raw.functions, strict=True)
        }
        profile = Profile(("Ir",), costs, costs, {}) if counted == "full" else None
        events = (("Ir", raw.totals[1]),)
        yield (
            (case, COUNT, 0),
            Tally(
                number=raw.number,
                seeds=(1, 2, 3),
                totals=raw.totals,
                events=events,
                allocations=raw.allocations,
                tensor_allocations=raw.tensors,
                baseline=None,
                profile=profile,
            ),
        )
    elif counted == "failed":
        yield (case, COUNT, 0), FAILED


class FakeStore:
    """The part of a store that reports need."""

    def __init__(self, *runs: Run) -> None:
        self._runs = {run.info.id: run for run in runs}

    def load(
        self,
        run: str,
        *,
        profiles: bool = False,
        select: Callable[[Case], bool] | None = None,
        names: Collection[tuple[str, str]] | None = None,
    ) -> Run:
        found = self._runs[run]
        cases = [
            case
            for case in found.plan.cases
            if (select is None or select(case)) and (names is None or (case.suite, case.key) in names)
        ]
        return narrow_run(found, cases=cases)


def store_side(name: str, number: int, kind: Kind, side: RawSide, case: Case) -> Run:
    run = make_run(dict(make_results(kind, side, case)), [case if kind is not None else MISSING])
    plan = dataclasses.replace(run.plan, sampling=dataclasses.replace(run.plan.sampling, repeat=1, layouts=(1, 2, 3)))
    outcomes = tuple(dataclasses.replace(one, environment=COUNTED) for one in run.outcomes)
    info = dataclasses.replace(run.info, id=f"{number:032x}", name=name)
    return dataclasses.replace(run, info=info, plan=plan, outcomes=outcomes)


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two sides, as they are stored and as they were made."""

    kinds: tuple[Kind, Kind]
    raw: tuple[RawSide, RawSide]
    runs: tuple[Run, Run]
    comparable: bool

    @property
    def allowed(self) -> Allowed:
        found = Allowed(*self.raw)
        if not self.comparable:
            return found
        found.compare(*self.raw, expected_seconds(1.0))
        if self.counts is not None and all(kind is not None and kind[1] == "full" for kind in self.kinds):
            found.exact["plain"] += [cost for one in self.counts for cost in one.costs.values()]
        return found

    @property
    def judged(self) -> bool:
        return self.comparable and not {None, (None, None)} & {*self.kinds}

    @property
    def change(self) -> RawChange | None:
        base, head = (side.times for side in self.raw)
        return RawChange(base, head) if self.judged and base is not None and head is not None else None

    @property
    def counts(self) -> tuple[RawCounts, RawCounts] | None:
        base, head = (side.counts for side in self.raw)
        return (base, head) if self.judged and base is not None and head is not None else None


def make_pair(base: Kind, head: Kind, *, changed: bool = False) -> Pair:
    raw = make_side(base, 1.2347e-6, (123_457, 1_179_643), 3), make_side(head, 3.7193e-6, (223_411, 2_501_633), 7)
    other = dataclasses.replace(ADD, args=TimerArgs("x + y + x")) if changed else ADD
    runs = store_side("alpha", 1, base, raw[0], ADD), store_side("omega", 2, head, raw[1], other)
    return Pair((base, head), raw, runs, not changed)


def compare(pair: Pair) -> Contrast:
    """As `torchmark compare` does it."""
    target = pair.runs[0].plan.targets[0]
    base, head = pair.runs
    contrast = leave_out_incomparable(compare_runs(base, target, head, target, standardise))
    tallies = [{key: one.tally for key, one in choose_counts(run, target).items()} for run in pair.runs]
    return explain_changes(contrast, tallies[0], tallies[1], standardise)


# --- the page ------------------------------------------------------------------------------------------


def check_page(pair: Pair) -> int:
    """The page of `torchmark report`: what is read, what its script gets, and what drawings are labelled with."""
    target = pair.runs[0].plan.targets[0]
    sides = [StoredSide(run.info, target, alone=True) for run in pair.runs]
    report = load_report_data(FakeStore(*pair.runs), sides, ReportOptions(), lambda case: case.label == ADD.label)  # type: ignore[arg-type]
    if not report.entries:
        assert pair.kinds == (None, None)
        return 0
    text = render_report(report)
    found = _check_first_screen(text, pair) + _check_row(text, pair)
    (data,) = re.findall(r'id="torchmark-page">(.*?)</script>', text, re.DOTALL)
    page = json.loads(data)
    (details,) = page["details"]
    texts: list[str] = page["texts"]
    found += _check_numbers(
        {texts[row[0]]: [texts[one] for one in row[1:]] for row in details.get("numbers", [])}, pair
    )
    found += _check_costs(details, texts, pair) + _check_samples(details, pair)
    assert details.get("apart") == (None if pair.comparable else 1)
    assert any("shown alone" in texts[one] for one in details.get("notes", [])) != pair.comparable
    for name, value in details.get("facts", []):
        found += pair.allowed.check(texts[value], f"page, fact {texts[name]}")
    found += _check_order("\n".join(texts[value] for _, value in details.get("facts", [])), pair, "page, facts")
    for one in details.get("doubts", []):
        found += pair.allowed.check(texts[one], "page, doubt")
    for caption, drawing in details.get("drawings", []):
        found += pair.allowed.check(_read_labels(texts[drawing]), f"page, drawing {texts[caption]}")
    return found + _check_flames(text, page, report.entries[0].flames, pair)


def _strip_tags(text: str) -> str:
    text = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", text, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", text))


def _read_labels(svg: str) -> str:
    """What those hear who do not see a drawing: axes have round numbers of their own."""
    return " ".join(html.unescape(one) for one in re.findall(r'aria-label="([^"]*)"', svg))


def _check_first_screen(text: str, pair: Pair) -> int:
    above = text.partition("<main")[2].partition('<section id="cases"')[0] or text.partition("<tbody>")[0]
    seen = _strip_tags(above).partition("torch 2.13.0")
    rest = re.sub(r"(torch|Python) \d[\w.]*|\d{4}-\d\d-\d\d \d\d:\d\d UTC", "", seen[0] + seen[2])
    return pair.allowed.check(rest, "page, above the table")


def _check_row(text: str, pair: Pair) -> int:
    (row,) = re.findall(r'<tr id="case-.*?</tr>', text, re.DOTALL)
    cells = {}
    for classes, cell in re.findall(r'<td class="([^"]*)">(.*?)</td>', row, re.DOTALL):
        cells[classes.split()[1]] = html.unescape(re.sub(r"<[^>]*>", " ", cell))
    base, head = pair.raw
    found = expect(cells.pop("verdict"), (), "row, verdict")
    cells.pop("doubts", None)
    sides = (head, base) if pair.comparable else (head,)
    medians = [side.times.median for side in sides if side.times is not None]
    found += expect(cells.pop("time", ""), medians, "row, per run")
    counted = [] if head.counts is None else [head.counts.instructions]
    found += expect(cells.pop("instructions", ""), counted, "row, instructions")
    found += _check_change_cells(cells, pair)
    assert not cells, f"nobody checks {cells}"
    return found


def _check_change_cells(cells: dict[str, str], pair: Pair) -> int:
    change, counts = pair.change, pair.counts
    found = _check_interval(cells.pop("change", ""), change, "row, change")
    deltas: list[float] = []
    stages: list[float] = []
    mallocs: list[float] = []
    if counts is not None:
        base, head = counts
        deltas = [head.instructions - base.instructions, head.instructions / base.instructions - 1]
        mallocs = [(head.allocations - base.allocations) / 100]
        if all(kind is not None and kind[1] == "full" for kind in pair.kinds):
            stages = [max((head.costs[name] - base.costs[name] for name in base.costs), key=abs)]
    found += expect(cells.pop("delta", ""), deltas, "row, instructions more")
    found += expect(cells.pop("mallocs", ""), mallocs, "row, mallocs")
    return found + expect(cells.pop("stage", ""), stages, "row, stage")


def _check_interval(text: str, change: RawChange | None, where: str) -> int:
    """A change, and the ends of its interval or how far they are from it, where it is the same distance."""
    if change is None:
        return expect(text, (), where)
    if change.ends is None:
        return expect(text, (change.share,), where)
    if "±" in text:
        margins = [change.ends[1] - change.share, change.share - change.ends[0]]
        return expect(text, (change.share, max(margins)), where) + expect(text, (change.share, min(margins)), where)
    return expect(text, (change.share, *change.ends), where)


def _check_numbers(rows: dict[str, list[str]], pair: Pair) -> int:
    found = 0
    for i, side in enumerate(pair.raw):
        facts = side.facts
        assert facts.keys() <= rows.keys(), f"missing are {facts.keys() - rows.keys()}"
        for name, texts in rows.items():
            text = texts[i]
            assert (text == "–") == (name not in facts), f"{name} of side {i}: {text}"
            found += expect(text, facts.get(name, ()), f"page, {name} of side {i}")
    return found


def _check_costs(details: dict[str, Any], texts: Sequence[str], pair: Pair) -> int:
    full = [kind is not None and kind[1] == "full" for kind in pair.kinds]
    assert ("functions" in details) == ("stages" in details) == any(full)
    found = 0
    for i, side in enumerate(pair.raw):
        shown = {texts[row[0]]: row[2 + i] for row in details.get("functions", [])}
        stages = [row[1 + i] for row in details.get("stages", [])]
        if not full[i]:
            assert {*shown.values(), *stages} <= {None}, f"side {i} has no costs, but {shown}, {stages}"
            continue
        assert side.counts is not None
        assert shown == {name: round(cost, 2) for name, cost in side.counts.costs.items()}
        assert sum(stages) == pytest.approx(side.counts.instructions)
        assert texts[details["totals"][i]] == f"{side.counts.instructions:,.0f}"
        found += len(shown) + len(stages) + 1
    assert "rest" not in details
    return found


def _check_samples(details: dict[str, Any], pair: Pair) -> int:
    sides = [side.times for side in pair.raw]
    if not any(sides):
        assert "samples" not in details
        assert "extremes" not in details
        return 0
    found = 0
    for times_, packed, extremes in zip(sides, details["samples"], details["extremes"], strict=True):
        assert (packed is None) == (extremes is None) == (times_ is None)
        if times_ is None:
            continue
        number, step, *steps = packed
        assert number == len(times_.samples)
        values = [total * step for total in itertools.accumulate(steps)]
        assert min(times_.samples) - step <= values[0] <= values[-1] <= max(times_.samples) + step
        assert values[len(values) // 2] == pytest.approx(times_.median, rel=0.02)
        median, most, seconds = extremes
        assert seconds == max(times_.samples)
        found += expect(median, (times_.median,), "samples, median") + expect(most, (seconds,), "samples, maximum")
    return found


def _check_flames(text: str, page: dict[str, Any], flames: Sequence[Flame], pair: Pair) -> int:
    """A difference has the totals of both sides. A single side, or each of two that are not compared, is named."""
    full = [i for i, kind in enumerate(pair.kinds) if kind is not None and kind[1] == "full"]
    names = [("alpha", "omega")[i] for i in full]
    totals = [sum(cost for _, cost in raw.functions) for i in full if (raw := pair.raw[i].counts) is not None]
    titles = names if len(full) == 2 else [f"{one}, the only side that was counted" for one in names]
    drawn: list[tuple[int | None, int]] = [(None, one) for one in totals]
    if len(full) == 2 and pair.comparable:
        titles, drawn = [""], [(totals[0], totals[1])]
    assert page["flames"] == [titles]
    assert [(flame.root.base_value, flame.root.value) for flame in flames] == drawn
    assert ["styles" in one for one in read_flames(text)["graphs"]] == [base is not None for base, _ in drawn]
    return len(drawn)


# --- texts and JSON ------------------------------------------------------------------------------------


def check_comparison(pair: Pair) -> int:
    """`torchmark compare` as a table, as Markdown, one by one, in a notebook, and as JSON."""
    contrast = compare(pair)
    allowed = pair.allowed
    found = 0
    texts = {
        "table": render_judgements(contrast.judgements, WIDTH, base="alpha", head="omega"),
        "Markdown": summarise_markdown(contrast.judgements, title="omega against alpha", base="alpha", head="omega"),
        "unpaired": describe_unpaired(contrast, "alpha", "omega", WIDTH),
    }
    for judgement in contrast.judgements:
        texts["description"] = describe_judgement(judgement, WIDTH)
        texts["notebook"] = _strip_tags(from_judgement(judgement)._repr_html_())
        texts["drawing"] = _read_labels(from_judgement(judgement)._repr_html_())
        texts["repr"] = repr(from_judgement(judgement))
    for where, text in texts.items():
        found += allowed.check(text, f"compare, {where}")
    for where in texts.keys() & {"description", "notebook"}:
        found += _check_order(texts[where], pair, f"compare, {where}")
    assert bool(contrast.judgements) == pair.judged
    found += _check_explanation(explain_judgements(contrast.judgements, WIDTH), pair)
    (plain,) = to_json_contrast(contrast, forced=False)["judgements"] or [None]
    return found + (_check_json(plain, pair) + _check_columns(contrast.judgements[0], pair) if plain else 0)


def _check_order(text: str, pair: Pair, where: str) -> int:
    """Sentences on both sides tell base first."""
    numbers: list[float] = []
    layouts: list[float] = []
    if pair.counts is not None:
        for name in ("Instructions", "Allocations", "Tensors allocated"):
            numbers += [one.facts[name][0] for one in pair.counts]
        layouts = [end / one.number for one in pair.counts for end in (min(one.totals), max(one.totals))]
    found = expect(" ".join(re.findall(r"from [\d,.]+ to [\d,.]+\b", text)), numbers, f"{where}, both sides")
    found += expect(" ".join(re.findall(r"over layouts .* and [\d,]+ to [\d,]+", text)), layouts, f"{where}, layouts")
    base = [] if pair.change is None else [pair.change.base.median]
    return found + expect(" ".join(re.findall(r"about .* on ([\d.]+ [num]?s)\b", text)), base, f"{where}, base")


def _check_explanation(text: str, pair: Pair) -> int:
    """Stages with both sides and their difference, then functions; nothing unless both sides have costs by function."""
    if pair.counts is None or any(kind is None or kind[1] != "full" for kind in pair.kinds):
        assert not text
        return 0
    base, head = (one.costs for one in pair.counts)
    found = 0
    for stage, name in (("interpreter", "_PyEval_EvalFrameDefault"), ("kernel", "at::native::add_kernel")):
        (line,) = re.findall(rf"^{stage} .*$", text, re.MULTILINE)
        found += expect(line, (base[name], head[name], head[name] - base[name]), f"compare, stage {stage}")
        (line,) = re.findall(rf"^(.*) {re.escape(name)}", text, re.MULTILINE)
        found += expect(line, (head[name] - base[name],), f"compare, function {name}")
    (line,) = re.findall(r"^in all .*$", text, re.MULTILINE)
    totals = sum(base.values()), sum(head.values())
    return found + expect(line, (*totals, totals[1] - totals[0]), "compare, all stages")


def _check_columns(judgement: CaseJudgement, pair: Pair) -> int:
    if judgement.verdict.value == "failed":
        return 0
    row = render_judgements([judgement], WIDTH).split("\n")[1]
    told = row.partition("Pointwise / add")[2] or row
    changes = [one for one in find_numbers(told) if one.kind == "share"]
    if pair.change is not None:
        assert changes[0].is_one_of([pair.change.share])
        ends = pair.change.ends
        if ends is not None and "±" not in told:
            assert changes[1].is_one_of([ends[0]])
            assert changes[2].is_one_of([ends[1]])
    return len(changes)


def _check_json(plain: dict[str, Any], pair: Pair) -> int:
    change, counts = pair.change, pair.counts
    assert (plain["time"] is None) == (change is None)
    assert (plain["instructions"] is None) == (plain["allocations"] is None) == (counts is None)
    found: list[tuple[float | None, float | None]] = []
    if change is not None:
        low, high = change.ends or (None, None)
        names = ("change", "low", "high", "confidence", "base_s", "head_s")
        values = change.share, low, high, change.confidence, change.base.median, change.head.median
        found += zip((plain["time"][name] for name in names), values, strict=True)
    if counts is not None:
        base, head = counts
        delta = head.instructions - base.instructions
        columns = ("base", "head", "delta", "change")
        numbers = base.instructions, head.instructions, delta, delta / base.instructions
        found += zip((plain["instructions"][name] for name in columns), numbers, strict=True)
        for one, name in ((base, "base"), (head, "head")):
            found += zip(
                plain["instructions"][f"{name}_range"], (min(one.totals) / 100, max(one.totals) / 100), strict=True
            )
            found.append((plain["allocations"][name], one.allocations / 100))
            found.append((plain["allocations"][f"{name}_tensors"], one.tensors / 100))
    for shown, value in found:
        assert shown == (None if value is None else pytest.approx(value))
    return len(found)


def check_show(pair: Pair) -> int:
    """`torchmark show` of each side as a table and as JSON, and its times in a notebook: nothing of the other side."""
    found = 0
    for run, side, kind in zip(pair.runs, pair.raw, pair.kinds, strict=True):
        if kind is None:
            continue
        allowed = Allowed(side)
        # A table says in how many layouts was counted.
        allowed.exact["plain"] += [3]
        summaries = summarise_run(run)
        table = render_results(summaries, run.plan, WIDTH)
        found += allowed.check(table, "show")
        margin = None if side.times is None else side.times.margin
        found += expect(" ".join(re.findall(r"±\S*%", table)), [] if margin is None else [margin], "show, ±")
        plain = to_json_case_summary(summaries[0])
        assert (plain["wall"] is None) == (side.times is None)
        assert (plain["count"] is None) == (side.counts is None)
        if side.times is not None:
            assert plain["wall"]["median_s"] == pytest.approx(side.times.median)
            assert (plain["wall"]["min_s"], plain["wall"]["max_s"]) == (
                min(side.times.samples),
                max(side.times.samples),
            )
            page = render_measurement(TaskSpec("x + y", "pass"), times(1000, *side.times.samples))
            found += allowed.check(_strip_tags(page), "notebook")
        if side.counts is not None:
            assert plain["count"]["instructions_per_run"] == pytest.approx(side.counts.instructions)
            assert plain["count"]["spread"] == pytest.approx(side.counts.spread)
    return found


CHECKS = (check_page, check_comparison, check_show)
PAIRS = [(base, head, False) for base, head in itertools.product(KINDS, KINDS)]
PAIRS += [(base, head, True) for base, head in itertools.product(FULL, FULL)]


def test_there_are_all_combinations() -> None:
    assert len(set(PAIRS)) == len(PAIRS) == len(KINDS) ** 2 + len(FULL) ** 2
    assert len(PAIRS) >= 400


@pytest.mark.parametrize("base", KINDS, ids=str)
def test_every_number_is_of_the_side_it_stands_for(base: Kind) -> None:
    shown = 0
    for pair in [make_pair(one, head, changed=changed) for one, head, changed in PAIRS if one == base]:
        for check in CHECKS:
            try:
                shown += check(pair)
            except AssertionError as error:
                raise AssertionError(f"{check.__name__} of base {pair.kinds[0]}, head {pair.kinds[1]}") from error
    # A walk that finds no numbers shows nothing.
    assert shown > 500
