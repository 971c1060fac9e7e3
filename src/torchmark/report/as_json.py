"""What was timed and counted, runs, judgements, comparisons, histories and overrides as values for JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from torchmark.analysis.overrides import Expectation, Extreme, Overhead, OverrideFinding, OverrideRow
from torchmark.analysis.summarise import StatementGroup, TimedStatement, find_caveats
from torchmark.analysis.verdict.stored import Contrast
from torchmark.model.case import Case
from torchmark.model.caveats import ComparisonCaveat, Incomparable
from torchmark.model.environment import Environment
from torchmark.model.gate import GateResult, Regression
from torchmark.model.history import History, Point, Shift
from torchmark.model.judgement import CaseJudgement, CountEvidence, Spread, TimeEvidence
from torchmark.model.outcome import CompileCosts, Failure
from torchmark.model.plan import Metric, Target
from torchmark.model.run import CaseSummary, CountSummary, Run, RunInfo, WallSummary
from torchmark.model.task import TaskSpec
from torchmark.report.caveats import word_doubt
from torchmark.report.text.counts import Change, FunctionTable, plain_explanation
from torchmark.report.text.failures import describe_failure
from torchmark.report.text.gate import spell_limit
from torchmark.report.text.grid import plain_caveat, plain_summary
from torchmark.report.text.history import spell_command
from torchmark.report.text.judgements import close, order_judgements
from torchmark.report.text.names import name_case
from torchmark.report.text.overrides import list_classic_lines, word_finding
from torchmark.report.text.units import find_seconds, has_interval, to_share

SCHEMA_VERSION = 1


def plain_run(info: RunInfo) -> dict[str, Any]:
    """All that is known of a run without its results; moments are seconds since 1970."""
    plain = {**dataclasses.asdict(info), "options": {name: list(values) for name, values in info.options}}
    del plain["seal"]  # it means something to this program alone
    return plain


def plain_case_summary(summary: CaseSummary) -> dict[str, Any]:
    """What is said of a case in one environment; null for what was not measured."""
    case = summary.case
    return {
        "key": case.key,
        "label": list(case.label),
        "autolabels": case.autolabels.as_dict,
        "num_threads": case.args.num_threads,
        "suite": case.suite,
        "tags": list(case.tags),
        "target": summary.target.name,
        "wall": None if summary.wall is None else _plain_wall(summary.wall),
        "count": None if summary.count is None else _plain_count(summary.count),
        "failures": [{"metric": metric.value, **plain_failure(failure)} for metric, failure in summary.failures],
        "caveats": [plain_caveat(caveat) for caveat in summary.caveats],
        "unchecked": summary.unchecked,
        "missing": [metric.value for metric in summary.missing],
        "nodes": [dataclasses.asdict(node) for node in summary.nodes],
    }


def _plain_wall(wall: WallSummary) -> dict[str, Any]:
    interval = wall.interval
    return {
        **plain_summary(wall.times),
        "interval": None
        if interval is None
        else {"low_s": interval.low, "high_s": interval.high, "confidence": interval.confidence},
        "compiling": None if wall.compiling is None else _plain_compiling(wall.compiling),
    }


def _plain_compiling(costs: CompileCosts) -> dict[str, Any]:
    return {
        "cold_s": costs.cold_s,
        "warm_s": costs.warm_s,
        "from_cache": costs.warm.cache_hits > 0,
        "call_s": list(costs.call.per_run),
        "graphs": costs.graphs,
        "graph_breaks": costs.graph_breaks,
        "breaks": list(costs.cold.breaks),
        "abandoned": costs.cold.abandoned,
    }


def _plain_count(count: CountSummary) -> dict[str, Any]:
    return {
        "instructions_per_run": count.instructions,
        "spread": count.spread,
        "allocations_per_run": count.allocations,
        "tensor_allocations_per_run": count.tensor_allocations,
        "baseline_per_run": count.baseline,
        "number_per_run": count.number,
        "totals": list(count.totals),
    }


def plain_failure(failure: Failure) -> dict[str, Any]:
    """All that is known of a failure."""
    return {**dataclasses.asdict(failure), "kind": failure.kind.value}


def plain_judgement(judgement: CaseJudgement) -> dict[str, Any]:
    """What is said of a case, and on what evidence.

    - `case` is its name for people, `key` its identity within its `suite`; `base_stmt` is the statement that it is
      held against, where that is another.
    - `verdict` is "faster", "slower", "same", "undecided" or "failed"; `cause` says how counts and time agree.
    - `time`, `instructions`, `allocations` and `explanation` are null where there is no such evidence.
    - `caveats` have their own fields and a `text`; `failures` tell the `side`.
    """
    case, counted = judgement.case, judgement.count
    plain = {
        "case": name_case(case),
        "key": case.key,
        "suite": case.suite,
        "label": list(case.label),
        "autolabels": case.autolabels.as_dict,
        "num_threads": case.args.num_threads,
        "verdict": judgement.verdict.value,
        "cause": judgement.cause.value,
        "time": None if judgement.time is None else _plain_time(judgement.time),
        "instructions": None if counted is None else _plain_instructions(counted),
        "allocations": None if counted is None else _plain_allocations(counted),
        "caveats": [_plain_caveat(caveat) for caveat in judgement.caveats],
        "failures": [{"side": failed.side.value, **plain_failure(failed.failure)} for failed in judgement.failures],
        "explanation": None if judgement.explanation is None else plain_explanation(judgement.explanation),
        "stmt": case.args.stmt,
        "base_stmt": None if judgement.base_case is None else judgement.base_case.args.stmt,
    }
    finite: dict[str, Any] = _keep_finite(plain)
    return finite


def _plain_time(time: TimeEvidence) -> dict[str, Any]:
    """`ratio` is head's time over base's; `change`, its interval `low` to `high` and limits are shares of base's.

    `by_layout` has the change that each layout shows, and those of its `visits` in their order, with the seconds of a
    run on both sides; `fresh` layouts were added to see a change again, or to decide.
    """
    return {
        "verdict": time.verdict.value,
        "ratio": to_share(time.log_ratio) + 1,
        "change": to_share(time.log_ratio),
        "low": to_share(time.low) if has_interval(time) else None,
        "high": to_share(time.high) if has_interval(time) else None,
        "confidence": time.confidence,
        "p_value": time.p_value,
        "base_s": time.base_s,
        "head_s": time.head_s,
        "delta_s": find_seconds(time),
        "floor": to_share(time.floor),
        "equivalence": to_share(time.equivalence),
        "smallest_visible": to_share(time.smallest_visible),
        "layouts": time.layouts,
        "visits": time.sweeps,
        "layout_sd": time.layout_sd,
        "visit_sd": time.fork_sd,
        "confirmed": time.confirmed,
        "measured_s": time.seconds,
        "needed_s": time.needed_s,
        "by_layout": [
            {
                "fresh": layout.fresh,
                "change": to_share(layout.centre),
                "visits": [to_share(ratio) for ratio in layout.log_ratios],
                "base_s": layout.base_s,
                "head_s": layout.head_s,
            }
            for layout in time.visits
        ],
    }


def _plain_instructions(counted: CountEvidence) -> dict[str, Any]:
    """Of one run, medians over layouts of memory; ranges are from the least to the greatest."""
    return {
        "base": counted.base.value,
        "head": counted.head.value,
        "delta": counted.delta,
        "change": counted.ratio,
        "base_range": _plain_range(counted.base),
        "head_range": _plain_range(counted.head),
    }


def _plain_range(spread: Spread) -> list[float]:
    return [spread.low, spread.high]


def _plain_allocations(counted: CountEvidence) -> dict[str, Any]:
    """Calls into the malloc family in one run, and those of torch's own allocator."""
    return {
        "base": counted.base_allocations,
        "head": counted.head_allocations,
        "delta": counted.head_allocations - counted.base_allocations,
        "base_tensors": counted.base_tensor_allocations,
        "head_tensors": counted.head_tensor_allocations,
        "delta_tensors": counted.head_tensor_allocations - counted.base_tensor_allocations,
    }


def _plain_caveat(caveat: ComparisonCaveat) -> dict[str, Any]:
    return {"kind": caveat.kind, **dataclasses.asdict(caveat), "text": word_doubt(caveat)}


def _keep_finite(value: Any) -> Any:
    """The same with lists for tuples, and None for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {name: _keep_finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_keep_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain_history(
    history: History, metrics: Sequence[Metric] = tuple(Metric), interpreters: Collection[str] = ()
) -> dict[str, Any]:
    """The series of a case, the oldest run first, and what changed; null for what was not measured."""
    case = history.case
    return {
        "key": case.key,
        "label": list(case.label),
        "autolabels": case.autolabels.as_dict,
        "num_threads": case.args.num_threads,
        "suite": case.suite,
        "target": history.target.name,
        "anchors": [_plain_run(run) for run in history.anchors],
        "points": [_plain_point(point, metrics) for point in history.points],
        "changes": [
            _plain_shift(history, shift, interpreters) for shift in history.shifts if set(shift.metrics) & set(metrics)
        ],
    }


def _plain_run(run: RunInfo) -> dict[str, Any]:
    return {"id": run.id, "name": run.name, "created": run.created}


def _plain_point(point: Point, metrics: Sequence[Metric]) -> dict[str, Any]:
    plain: dict[str, Any] = {"run": _plain_run(point.run)}
    if Metric.WALL in metrics:
        plain |= {"log_ratio": point.log_ratio, "segment": point.segment}
    if Metric.COUNT in metrics:
        spread = point.instructions
        plain["instructions_per_run"] = None if spread is None else dataclasses.asdict(spread)
    return plain


def _plain_shift(history: History, shift: Shift, interpreters: Collection[str]) -> dict[str, Any]:
    return {
        "run": _plain_run(history.points[shift.position].run),
        "previous": _plain_run(history.points[shift.previous].run),
        "position": shift.position,
        "metrics": [metric.value for metric in shift.metrics],
        "standing": shift.standing.value,
        "ground": shift.ground.value,
        "before": shift.before,
        "after": shift.after,
        "share": shift.share,
        "p_value": shift.p_value,
        "differences": [dataclasses.asdict(one) for one in shift.differences],
        "other_cases": shift.others,
        "common_log_ratio": shift.common,
        "command": spell_command(history, shift, interpreters),
    }


def plain_gate(result: GateResult) -> dict[str, Any]:
    """What stops, what asks to be accepted, and what was not compared."""
    return {
        "exit_code": result.exit_code,
        "regressions": [_plain_regression(one) for one in result.regressions],
        "improvements": [
            {**plain_identity(one.case), "accepted": one.accepted, "head": one.head} for one in result.improvements
        ],
        "accepted": [plain_identity(case) for case in result.accepted],
        "stale": [
            {
                **plain_identity(one.case),
                "differences": [
                    {"what": what, "accepted": accepted, "now": now} for what, accepted, now in one.differences
                ],
            }
            for one in result.stale
        ],
        "nothing_compared": result.nothing_compared,
        "lost": [plain_identity(case) for case in result.lost],
        "idle_limits": [spell_limit(limit) for limit in result.idle_limits],
    }


def plain_identity(case: Case) -> dict[str, Any]:
    """What a case is known by."""
    return {"case": name_case(case), "key": case.key, "suite": case.suite}


def _plain_regression(regression: Regression) -> dict[str, Any]:
    return {
        **plain_identity(regression.case),
        "reason": regression.reason.value,
        "witness": None if regression.witness is None else regression.witness.value,
        "base": regression.base,
        "head": regression.head,
        "limit": None if regression.limit is None else spell_limit(regression.limit),
        "accepted": regression.accepted,
        "functions": [dataclasses.asdict(one) for one in regression.functions],
    }


def plain_contrast(contrast: Contrast, *, forced: bool) -> dict[str, Any]:
    """Judgements of two stored runs, and what keeps others from being compared."""
    return {
        "forced": forced,
        "obstacles": [_plain_obstacle(one) for one in contrast.obstacles],
        "case_obstacles": [
            {**plain_identity(case), "obstacles": [_plain_obstacle(one) for one in obstacles]}
            for case, obstacles in contrast.case_obstacles
        ],
        "judgements": [plain_judgement(one) for one in contrast.judgements],
        "missing": [plain_identity(case) for case in contrast.missing],
        "new": [plain_identity(case) for case in contrast.new],
    }


def _plain_obstacle(obstacle: Incomparable) -> dict[str, str]:
    return {"what": obstacle.what, "base": obstacle.base, "head": obstacle.head, "text": word_doubt(obstacle)}


def plain_compared(
    sides: tuple[tuple[RunInfo, Target], tuple[RunInfo, Target]],
    contrast: Contrast,
    result: GateResult,
    *,
    forced: bool,
    exit_code: int,
) -> dict[str, Any]:
    """Two stored runs, base and head, against each other."""
    base, head = ({"run": plain_run(run), "target": target.name} for run, target in sides)
    return {
        "schema": "torchmark.compare",
        "schema_version": SCHEMA_VERSION,
        "base": base,
        "head": head,
        **plain_contrast(contrast, forced=forced),
        "gate": plain_gate(result),
        "exit_code": exit_code,
    }


def plain_comparison(
    sides: Sequence[tuple[Target, Environment | None]],
    judgements: Sequence[CaseJudgement],
    result: GateResult,
    exit_code: int,
) -> dict[str, Any]:
    """A comparison that was just made of base and head."""
    base, head = (
        {"python": target.python, "environment": None if where is None else dataclasses.asdict(where)}
        for target, where in sides
    )
    return {
        "schema": "torchmark.ab",
        "schema_version": SCHEMA_VERSION,
        "base": base,
        "head": head,
        "judgements": [plain_judgement(one) for one in order_judgements(judgements)],
        "summary": close(judgements),
        "gate": plain_gate(result),
        "exit_code": exit_code,
    }


def plain_histories(
    histories: Sequence[History], metrics: Sequence[Metric], interpreters: Collection[str]
) -> dict[str, Any]:
    """All series, with their changes."""
    return {
        "schema": "torchmark.history",
        "schema_version": SCHEMA_VERSION,
        "histories": [plain_history(history, metrics, interpreters) for history in histories],
    }


def plain_results(
    run: Run, summaries: Sequence[CaseSummary], breakdowns: Sequence[FunctionTable] = ()
) -> dict[str, Any]:
    """The run, what is said of each case in each environment, and costs by function if they were asked for."""
    return {
        "schema": "torchmark.show",
        "schema_version": SCHEMA_VERSION,
        "run": plain_run(run.info),
        "cases": [plain_case_summary(summary) for summary in summaries],
        "functions": [
            {
                "key": one.case.key,
                "suite": one.case.suite,
                "target": one.target.name,
                "functions": [dataclasses.asdict(row) for row in one.rows],
            }
            for one in breakdowns
        ],
    }


# As many functions as are looked at; the others are added up.
MOST_FUNCTIONS = 12

_COUNTED = (Expectation.PLAIN_IS_CHEAPEST, Expectation.NOTHING_FOR_PLAIN)


def plain_overrides(run: Run, rows: Sequence[OverrideRow], findings: Sequence[OverrideFinding]) -> dict[str, Any]:
    """All of it."""
    sampling = run.plan.sampling
    environments = dict.fromkeys(outcome.environment for outcome in run.outcomes if outcome.environment is not None)
    return {
        "schema": "torchmark.overrides",
        "schema_version": SCHEMA_VERSION,
        "run": plain_run(run.info),
        "environments": [dataclasses.asdict(environment) for environment in environments],
        "nreps": sampling.number,
        "nrepreps": sampling.blocks,
        "cases": [_plain_row(row) for row in rows],
        "findings": [_plain_finding(finding) for finding in findings],
        "lines": list_classic_lines(rows),
    }


def _plain_row(row: OverrideRow) -> dict[str, Any]:
    return {
        "call": row.call,
        "operands": row.operands,
        "stmt": row.case.args.stmt,
        **plain_case_summary(row.summary),
        "stages": dict(row.stages),
        "overhead": None if row.overhead is None else _plain_overhead(row.overhead),
    }


def _plain_overhead(overhead: Overhead) -> dict[str, Any]:
    explanation = overhead.explanation
    return {
        "against": list(overhead.plain.label),
        "min_s": overhead.seconds,
        "median_s": overhead.median_seconds,
        "instructions": overhead.instructions,
        "explanation": None if explanation is None else plain_explanation(explanation, MOST_FUNCTIONS),
    }


def _plain_finding(finding: OverrideFinding) -> dict[str, Any]:
    return {
        "expectation": finding.expectation.value,
        "is_met": finding.is_met,
        "met": finding.met,
        "of": finding.of,
        "unit": "instructions" if finding.expectation in _COUNTED else "s",
        "limit": finding.limit,
        "least": _plain_extreme(finding.least),
        "most": _plain_extreme(finding.most),
        "order": [_plain_extreme(one) for one in finding.order],
        "text": word_finding(finding),
    }


def _plain_extreme(extreme: Extreme) -> dict[str, Any]:
    return {"label": list(extreme.row.case.label), "value": extreme.value}


def plain_times(
    groups: Sequence[StatementGroup],
    measurements: Sequence[Mapping[str, Any]],
    failures: Mapping[str, Failure],
    language: str,
) -> dict[str, Any]:
    """Raw times (as `Measurement.to_dict` gives them) with statistics and caveats, how they compare, what failed."""
    results = [result for group in groups for result in group.results]
    return {
        "schema": "torchmark.time",
        "schema_version": 1,
        "language": language,
        "measurements": [
            {
                **measurement,
                "summary": plain_summary(result.summary),
                "caveats": [plain_caveat(caveat) for caveat in find_caveats(result.times)],
            }
            for result, measurement in zip(results, measurements, strict=True)
        ],
        "comparisons": [_plain_standings(group) for group in groups if len(group.results) > 1],
        "failures": [
            {
                "stmt": stmt,
                "traceback": f"{describe_failure(failure)}\n",
                "kind": failure.kind.value,
                "message": failure.message,
            }
            for stmt, failure in failures.items()
        ],
    }


def _plain_standings(group: StatementGroup) -> dict[str, Any]:
    standings = group.standings
    return {
        "in_turns": group.rounds is not None,
        "fastest": None if standings.rivals else _identify(group.results[standings.fastest]),
        "ratios": [
            {
                **_identify(result),
                "ratio": math.exp(ratio.log_ratio),
                "low": None if ratio.low is None else math.exp(ratio.low),
                "high": None if ratio.high is None else math.exp(ratio.high),
                "confidence": ratio.confidence,
            }
            for result, ratio in zip(group.results, standings.ratios, strict=True)
        ],
    }


def _identify(result: TimedStatement) -> dict[str, Any]:
    return {"stmt": result.spec.stmt, "num_threads": result.spec.num_threads}


def plain_counts(
    counts: Sequence[Mapping[str, Any]],
    failures: Sequence[tuple[TaskSpec, Failure]],
    changes: Sequence[Change],
    language: str,
) -> dict[str, Any]:
    """Everything that was counted, by function, with caveats; what failed; and the difference if it was asked for."""
    return {
        "schema": "torchmark.count",
        "schema_version": 1,
        "language": language,
        "counts": list(counts),
        "failures": [
            {"stmt": task.stmt, "num_threads": task.num_threads, **plain_failure(failure)} for task, failure in failures
        ],
        "difference": [
            {"instructions_per_run": change, "function": function, "noisy": noisy}
            for change, function, noisy in changes
        ],
    }
