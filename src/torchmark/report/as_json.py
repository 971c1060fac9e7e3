"""What was timed and counted, runs, judgements, comparisons, histories and overrides as values for JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from torchmark.analysis.overrides import Expectation, Extreme, Overhead, OverrideFinding, OverrideRow
from torchmark.analysis.summarise import StatementGroup, TimedStatement, find_caveats
from torchmark.analysis.verdict.sequential import SELF_TEST_FACTOR, Trust, floor_for
from torchmark.analysis.verdict.stored import Contrast
from torchmark.model.caveats import ComparisonCaveat, Incomparable
from torchmark.model.environment import Environment, Finding, Machine
from torchmark.model.gate import GateResult, Regression
from torchmark.model.history import History, Point, Shift
from torchmark.model.judgement import CaseJudgement, CountEvidence, TimeEvidence
from torchmark.model.outcome import CompileCosts, Failure
from torchmark.model.plain import to_plain
from torchmark.model.plan import Case, Fault, Metric, Target
from torchmark.model.run import CaseSummary, CountSummary, Run, RunEntry, RunInfo, WallSummary
from torchmark.model.schemas import begin_document
from torchmark.model.task import TaskSpec
from torchmark.report.caveats import describe_caveat
from torchmark.report.text.counts import Change, FunctionTable, to_json_explanation
from torchmark.report.text.failures import describe_failure
from torchmark.report.text.gate import format_limit
from torchmark.report.text.grid import to_json_caveat, to_json_summary
from torchmark.report.text.history import format_command
from torchmark.report.text.judgements import close, order_judgements
from torchmark.report.text.names import name_case
from torchmark.report.text.overrides import describe_finding, list_classic_lines
from torchmark.report.text.run_summary import describe_state
from torchmark.report.text.units import find_seconds, has_interval, to_share


def to_json_run(info: RunInfo) -> dict[str, Any]:
    """All that is known of a run without its results; moments are seconds since 1970."""
    plain = {**dataclasses.asdict(info), "options": {name: list(values) for name, values in info.options}}
    del plain["seal"]  # it means something to this program alone
    return plain


def to_json_case_summary(summary: CaseSummary) -> dict[str, Any]:
    """What is said of a case in one environment; null for what was not measured."""
    case = summary.case
    return {
        "key": case.key,
        **_name_variant(case),
        "suite": case.suite,
        "tags": list(case.tags),
        "target": summary.target.name,
        "wall": None if summary.wall is None else _to_json_wall(summary.wall),
        "count": None if summary.count is None else _to_json_count(summary.count),
        "failures": [{"metric": metric.value, **to_plain(failure)} for metric, failure in summary.failures],
        "caveats": [to_json_caveat(caveat) for caveat in summary.caveats],
        "unchecked": summary.unchecked,
        "missing": [metric.value for metric in summary.missing],
        "nodes": [dataclasses.asdict(node) for node in summary.nodes],
    }


def _name_variant(case: Case) -> dict[str, Any]:
    labels = case.autolabels.as_dict
    return {"label": list(case.label), "autolabels": labels, "num_threads": case.args.num_threads}


def _to_json_wall(wall: WallSummary) -> dict[str, Any]:
    interval = wall.interval
    return {
        **to_json_summary(wall.times),
        "interval": None
        if interval is None
        else {"low_s": interval.low, "high_s": interval.high, "confidence": interval.confidence},
        "compiling": None if wall.compiling is None else _to_json_compiling(wall.compiling),
    }


def _to_json_compiling(costs: CompileCosts) -> dict[str, Any]:
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


def _to_json_count(count: CountSummary) -> dict[str, Any]:
    return {
        "instructions_per_run": count.instructions,
        "spread": count.spread,
        "allocations_per_run": count.allocations,
        "tensor_allocations_per_run": count.tensor_allocations,
        "baseline_per_run": count.baseline,
        "number_per_run": count.number,
        "totals": list(count.totals),
    }


def to_json_judgement(judgement: CaseJudgement) -> dict[str, Any]:
    """What is said of a case, and on what evidence.

    - `case` is its name for people, `key` its identity within its `suite`; `base_stmt` is the statement that it is
      held against, where that is another.
    - `verdict` is "faster", "slower", "same", "undecided" or "failed"; `cause` says how counts and time agree.
    - `time`, `instructions`, `allocations` and `explanation` are null where there is no such evidence.
    - `caveats` have their own fields and a `text`; `failures` tell the `side`.
    """
    case, counted = judgement.case, judgement.count
    plain = {
        **to_json_identity(case),
        **_name_variant(case),
        "verdict": judgement.verdict.value,
        "cause": judgement.cause.value,
        "time": None if judgement.time is None else _to_json_time(judgement.time),
        "instructions": None if counted is None else _to_json_instructions(counted),
        "allocations": None if counted is None else _to_json_allocations(counted),
        "caveats": [_to_json_caveat(caveat) for caveat in judgement.caveats],
        "failures": [{"side": failed.side.value, **to_plain(failed.failure)} for failed in judgement.failures],
        "explanation": None if judgement.explanation is None else to_json_explanation(judgement.explanation),
        "stmt": case.args.stmt,
        "base_stmt": None if judgement.base_case is None else judgement.base_case.args.stmt,
    }
    finite: dict[str, Any] = _keep_finite(plain)
    return finite


def _to_json_time(time: TimeEvidence) -> dict[str, Any]:
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


def _to_json_instructions(counted: CountEvidence) -> dict[str, Any]:
    """Of one run, medians over layouts of memory; ranges are from the least to the greatest."""
    return {
        "base": counted.base.value,
        "head": counted.head.value,
        "delta": counted.delta,
        "change": counted.ratio,
        "base_range": [counted.base.low, counted.base.high],
        "head_range": [counted.head.low, counted.head.high],
    }


def _to_json_allocations(counted: CountEvidence) -> dict[str, Any]:
    """Calls into the malloc family in one run, and those of torch's own allocator."""
    return {
        "base": counted.base_allocations,
        "head": counted.head_allocations,
        "delta": counted.head_allocations - counted.base_allocations,
        "base_tensors": counted.base_tensor_allocations,
        "head_tensors": counted.head_tensor_allocations,
        "delta_tensors": counted.head_tensor_allocations - counted.base_tensor_allocations,
    }


def _to_json_caveat(caveat: ComparisonCaveat) -> dict[str, Any]:
    return {"kind": caveat.kind, **dataclasses.asdict(caveat), "text": describe_caveat(caveat)}


def _keep_finite(value: Any) -> Any:
    """The same with lists for tuples, and None for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {name: _keep_finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_keep_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_json_history(
    history: History, metrics: Sequence[Metric] = tuple(Metric), interpreters: Collection[str] = ()
) -> dict[str, Any]:
    """The series of a case, the oldest run first, and what changed; null for what was not measured."""
    case = history.case
    return {
        "key": case.key,
        **_name_variant(case),
        "suite": case.suite,
        "target": history.target.name,
        "anchors": [_to_json_run(run) for run in history.anchors],
        "points": [_to_json_point(point, metrics) for point in history.points],
        "changes": [
            _to_json_shift(history, shift, interpreters)
            for shift in history.shifts
            if set(shift.metrics) & set(metrics)
        ],
    }


def _to_json_run(run: RunInfo) -> dict[str, Any]:
    return {"id": run.id, "name": run.name, "created": run.created}


def _to_json_point(point: Point, metrics: Sequence[Metric]) -> dict[str, Any]:
    plain: dict[str, Any] = {"run": _to_json_run(point.run)}
    if Metric.WALL in metrics:
        plain |= {"log_ratio": point.log_ratio, "segment": point.segment}
    if Metric.COUNT in metrics:
        plain["instructions_per_run"] = point.instructions and dataclasses.asdict(point.instructions)
    return plain


def _to_json_shift(history: History, shift: Shift, interpreters: Collection[str]) -> dict[str, Any]:
    return {
        "run": _to_json_run(history.points[shift.position].run),
        "previous": _to_json_run(history.points[shift.previous].run),
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
        "command": format_command(history, shift, interpreters),
    }


def to_json_gate(result: GateResult) -> dict[str, Any]:
    """What stops, what asks to be accepted, and what was not compared."""
    return {
        "exit_code": result.exit_code,
        "regressions": [_to_json_regression(one) for one in result.regressions],
        "improvements": [
            {**to_json_identity(one.case), "accepted": one.accepted, "head": one.head} for one in result.improvements
        ],
        "accepted": [to_json_identity(case) for case in result.accepted],
        "stale": [
            {
                **to_json_identity(one.case),
                "differences": [{"what": what, "accepted": was, "now": now} for what, was, now in one.differences],
            }
            for one in result.stale
        ],
        "nothing_compared": result.nothing_compared,
        "lost": [to_json_identity(case) for case in result.lost],
        "idle_limits": [format_limit(limit) for limit in result.idle_limits],
    }


def to_json_identity(case: Case) -> dict[str, Any]:
    return {"case": name_case(case), "key": case.key, "suite": case.suite}


def _to_json_regression(regression: Regression) -> dict[str, Any]:
    return {
        **to_json_identity(regression.case),
        "reason": regression.reason.value,
        "witness": None if regression.quantity is None else regression.quantity.value,
        "base": regression.base,
        "head": regression.head,
        "limit": None if regression.limit is None else format_limit(regression.limit),
        "accepted": regression.accepted,
        "functions": [dataclasses.asdict(one) for one in regression.functions],
    }


def to_json_contrast(contrast: Contrast, *, forced: bool) -> dict[str, Any]:
    """Judgements of two stored runs, and what keeps others from being compared."""
    return {
        "forced": forced,
        "obstacles": [_to_json_obstacle(one) for one in contrast.obstacles],
        "case_obstacles": [
            {**to_json_identity(case), "obstacles": [_to_json_obstacle(one) for one in obstacles]}
            for case, obstacles in contrast.case_obstacles
        ],
        "judgements": [to_json_judgement(one) for one in contrast.judgements],
        "missing": [to_json_identity(case) for case in contrast.missing],
        "new": [to_json_identity(case) for case in contrast.new],
    }


def _to_json_obstacle(obstacle: Incomparable) -> dict[str, str]:
    return {**dataclasses.asdict(obstacle), "text": describe_caveat(obstacle)}


def to_json_compared(
    sides: tuple[tuple[RunInfo, Target], tuple[RunInfo, Target]],
    contrast: Contrast,
    result: GateResult,
    *,
    forced: bool,
    exit_code: int,
) -> dict[str, Any]:
    """Two stored runs, base and head, against each other."""
    base, head = ({"run": to_json_run(run), "target": target.name} for run, target in sides)
    return {
        **begin_document("compare"),
        "base": base,
        "head": head,
        **to_json_contrast(contrast, forced=forced),
        "gate": to_json_gate(result),
        "exit_code": exit_code,
    }


def to_json_comparison(
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
        **begin_document("ab"),
        "base": base,
        "head": head,
        "judgements": [to_json_judgement(one) for one in order_judgements(judgements)],
        "summary": close(judgements),
        "gate": to_json_gate(result),
        "exit_code": exit_code,
    }


def to_json_histories(
    histories: Sequence[History], metrics: Sequence[Metric], interpreters: Collection[str]
) -> dict[str, Any]:
    return {
        **begin_document("history"),
        "histories": [to_json_history(history, metrics, interpreters) for history in histories],
    }


def to_json_results(
    run: Run, summaries: Sequence[CaseSummary], breakdowns: Sequence[FunctionTable] = ()
) -> dict[str, Any]:
    """The run, what is said of each case in each environment, and costs by function if they were asked for."""
    return {
        **begin_document("show"),
        "run": to_json_run(run.info),
        "cases": [to_json_case_summary(summary) for summary in summaries],
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


def to_json_overrides(run: Run, rows: Sequence[OverrideRow], findings: Sequence[OverrideFinding]) -> dict[str, Any]:
    sampling = run.plan.sampling
    environments = dict.fromkeys(outcome.environment for outcome in run.outcomes if outcome.environment is not None)
    return {
        **begin_document("overrides"),
        "run": to_json_run(run.info),
        "environments": [dataclasses.asdict(environment) for environment in environments],
        "nreps": sampling.number,
        "nrepreps": sampling.blocks,
        "cases": [_to_json_row(row) for row in rows],
        "findings": [_to_json_finding(finding) for finding in findings],
        "lines": list_classic_lines(rows),
    }


def _to_json_row(row: OverrideRow) -> dict[str, Any]:
    return {
        "call": row.call,
        "operands": row.operands,
        "stmt": row.case.args.stmt,
        **to_json_case_summary(row.summary),
        "stages": dict(row.stages),
        "overhead": None if row.overhead is None else _to_json_overhead(row.overhead),
    }


def _to_json_overhead(overhead: Overhead) -> dict[str, Any]:
    explanation = overhead.explanation
    return {
        "against": list(overhead.plain.label),
        "min_s": overhead.seconds,
        "median_s": overhead.median_seconds,
        "instructions": overhead.instructions,
        "explanation": None if explanation is None else to_json_explanation(explanation, MOST_FUNCTIONS),
    }


def _to_json_finding(finding: OverrideFinding) -> dict[str, Any]:
    return {
        "expectation": finding.expectation.value,
        "is_met": finding.is_met,
        "met": finding.met,
        "of": finding.of,
        "unit": "instructions" if finding.expectation in _COUNTED else "s",
        "limit": finding.limit,
        "least": _to_json_extreme(finding.least),
        "most": _to_json_extreme(finding.most),
        "order": [_to_json_extreme(one) for one in finding.order],
        "text": describe_finding(finding),
    }


def _to_json_extreme(extreme: Extreme) -> dict[str, Any]:
    return {"label": list(extreme.row.case.label), "value": extreme.value}


def to_json_times(
    groups: Sequence[StatementGroup],
    measurements: Sequence[Mapping[str, Any]],
    failures: Mapping[str, Failure],
    language: str,
) -> dict[str, Any]:
    """Raw times (as `Measurement.to_dict` gives them) with statistics and caveats, how they compare, what failed."""
    results = [result for group in groups for result in group.results]
    return {
        **begin_document("time"),
        "language": language,
        "measurements": [
            {
                **measurement,
                "summary": to_json_summary(result.summary),
                "caveats": [to_json_caveat(caveat) for caveat in find_caveats(result.times)],
            }
            for result, measurement in zip(results, measurements, strict=True)
        ],
        "comparisons": [_to_json_standings(group) for group in groups if len(group.results) > 1],
        "failures": [
            {"stmt": stmt, "traceback": f"{describe_failure(one)}\n", "kind": one.kind.value, "message": one.message}
            for stmt, one in failures.items()
        ],
    }


def _to_json_standings(group: StatementGroup) -> dict[str, Any]:
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


def to_json_counts(
    counts: Sequence[Mapping[str, Any]],
    failures: Sequence[tuple[TaskSpec, Failure]],
    changes: Sequence[Change],
    language: str,
) -> dict[str, Any]:
    """Everything that was counted, by function, with caveats; what failed; and the difference if it was asked for."""
    return {
        **begin_document("count"),
        "language": language,
        "counts": list(counts),
        "failures": [
            {"stmt": task.stmt, "num_threads": task.num_threads, **to_plain(failure)} for task, failure in failures
        ],
        "difference": [
            {"instructions_per_run": change, "function": function, "noisy": noisy}
            for change, function, noisy in changes
        ],
    }


def to_json_list(cases: Sequence[Case], faults: Sequence[Fault]) -> dict[str, Any]:
    return {
        **begin_document("list"),
        "cases": [_to_json_definition(case) for case in cases],
        "faults": [dataclasses.asdict(fault) for fault in faults],
    }


def _to_json_definition(case: Case) -> dict[str, Any]:
    labels, args = case.autolabels.as_dict, case.args
    return {
        "key": case.key,
        **_name_variant(case),
        "tags": case.tags,
        "suite": case.suite,
        "language": labels["language"],
        "stmt": args.stmt,
        "setup": args.setup,
        "global_setup": args.global_setup,
    }


def to_json_runs(entries: Sequence[RunEntry]) -> dict[str, Any]:
    return {
        **begin_document("runs"),
        "runs": [
            {
                **dataclasses.asdict(entry.info),
                "cases": entry.cases,
                "targets": list(entry.targets),
                "torch_versions": list(entry.torch_versions),
                "state": describe_state(entry),
                "pid": entry.writer,
            }
            for entry in entries
        ],
    }


def to_json_findings(machine: Machine, findings: Sequence[Finding]) -> dict[str, Any]:
    return {
        **begin_document("doctor"),
        "findings": [{**dataclasses.asdict(f), "status": f.status.value} for f in findings],
        "machine": dataclasses.asdict(machine),
    }


def to_json_selftest(trust: Trust, run_s: float) -> dict[str, Any]:
    """How far comparisons can be trusted, and what that was derived from."""
    return {
        **begin_document("selftest"),
        "run_s": run_s,
        "trials": trust.trials,
        "false_alarms": trust.false_alarms,
        "false_alarms_below": trust.most_false,
        "same": trust.same,
        "sd": trust.sd,
        "floor": floor_for(run_s, trust.sd),
        "floor_factor": SELF_TEST_FACTOR,
        "seconds": trust.seconds,
        "smallest_seen_s": trust.smallest_seen_s,
        "powers": [dataclasses.asdict(power) for power in trust.powers],
    }
