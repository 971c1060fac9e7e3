"""A process that saves outcomes, and says of each that it is saved: `python -m tests.store_writer PATH ID N`."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from tests.stored_runs import ADD_CASE, BEGAN, INFO, TALLY
from torchmark.model.outcome import Outcome
from torchmark.model.plan import Metric, Plan, Sampling
from torchmark.model.times import Times
from torchmark.store.runs import open_store


def make_plan(rounds: int) -> Plan:
    """One case, many times."""
    return Plan((ADD_CASE,), sampling=Sampling(metrics=(Metric.WALL, Metric.COUNT), repeat=rounds // 2))


def main(path: str, run_id: str, rounds: str) -> None:
    """Save them one by one."""
    plan = make_plan(int(rounds))
    with (
        open_store(Path(path), create=True) as store,
        store.begin(plan, dataclasses.replace(INFO, id=run_id)) as recorder,
    ):
        for number, order in enumerate(plan.orders):
            # Each has something of its own that is kept apart from it.
            tally = dataclasses.replace(TALLY, text=f"{run_id} {number}")
            result = tally if order.metric is Metric.COUNT else Times(1, (0.5, float(number)))
            recorder.append(Outcome(order, result, BEGAN + number, BEGAN + number + 1))
            print(number, flush=True)
        recorder.finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
