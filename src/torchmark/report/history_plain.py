"""Histories as plain values for JSON, with the unit in each name."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import Any

from torchmark.model.history import History, Point, Shift
from torchmark.model.plan import Metric
from torchmark.model.run import RunInfo
from torchmark.report.history_words import spell_command


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
