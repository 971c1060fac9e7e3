"""What overrides cost as plain values for JSON, with the unit in each name."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from torchmark.analysis.override_expectations import Expectation, Extreme, OverrideFinding
from torchmark.analysis.overrides import Overhead, OverrideRow
from torchmark.model.run import Run
from torchmark.report.explaining import plain_explanation
from torchmark.report.overrides import list_classic_lines, word_finding
from torchmark.report.plain import plain_case_summary, plain_run

SCHEMA = "torchmark.overrides"
SCHEMA_VERSION = 1

# As many functions as are looked at; the others are added up.
MOST_FUNCTIONS = 12

_COUNTED = (Expectation.PLAIN_IS_CHEAPEST, Expectation.NOTHING_FOR_PLAIN)


def plain_overrides(run: Run, rows: Sequence[OverrideRow], findings: Sequence[OverrideFinding]) -> dict[str, Any]:
    """All of it."""
    sampling = run.plan.sampling
    environments = dict.fromkeys(outcome.environment for outcome in run.outcomes if outcome.environment is not None)
    return {
        "schema": SCHEMA,
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
