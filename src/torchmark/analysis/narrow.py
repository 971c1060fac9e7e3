"""A part of a run: some of its cases, targets and metrics, with what came of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from torchmark.model.case import Case
from torchmark.model.outcome import Failure
from torchmark.model.plan import Metric, Plan, Target
from torchmark.model.run import Run


def narrow_run(
    run: Run,
    *,
    cases: Collection[Case] | None = None,
    targets: Collection[Target] | None = None,
    metrics: Collection[Metric] | None = None,
) -> Run:
    """The same run with nothing but what is given, in its old order; None is all. Its numbers tell of what is left."""
    plan = _narrow_plan(run.plan, cases, targets, metrics)
    kept = set(plan.orders)
    outcomes = tuple(outcome for outcome in run.outcomes if outcome.order in kept)
    info = dataclasses.replace(
        run.info,
        orders=len(kept),
        outcomes=len(outcomes),
        failures=sum(isinstance(outcome.result, Failure) for outcome in outcomes),
    )
    activities = tuple(activity for activity in run.activities if activity.target in plan.targets)
    return Run(info, plan, outcomes, activities)


def _narrow_plan(
    plan: Plan,
    cases: Collection[Case] | None,
    targets: Collection[Target] | None,
    metrics: Collection[Metric] | None,
) -> Plan:
    sampling = plan.sampling
    left = sampling.metrics if metrics is None else tuple(m for m in sampling.metrics if m in metrics)
    return Plan(
        cases=plan.cases if cases is None else tuple(case for case in plan.cases if case in cases),
        targets=plan.targets if targets is None else tuple(target for target in plan.targets if target in targets),
        sampling=dataclasses.replace(sampling, metrics=left),
    )
