"""Shards of a run that nobody measured: what becomes of an order depends on the order alone."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.fake_backend import FakeBackend
from tests.made_summaries import make_case
from tests.stored_runs import BASELINE, ENVIRONMENT, INFO, PROFILE, TALLY
from torchmark.analysis.estimate import pick_orders
from torchmark.model.outcome import Failure, FailureKind, Outcome, Result
from torchmark.model.plan import AutogradMode, Metric, Order, Plan, RuntimeMode, Sampling, Target
from torchmark.model.run import SHARD, Run, RunInfo, Shard
from torchmark.model.task import Language, Times
from torchmark.processes import StopRequest
from torchmark.store.documents import export_run
from torchmark.store.runs import Store, open_store

CASES = (
    make_case("add", suite="a.py"),
    make_case("add", suite="a.py", language=Language.CPP),
    make_case("add", suite="a.py", threads=2),
    make_case("add", suite="a.py", autograd=AutogradMode.FORWARD_BACKWARD),
    make_case("sub", "sub", suite="a.py", runtime=RuntimeMode.JIT),
    make_case("add", suite="b.py"),
)
# Cases that are not compared with each other: of another label, suite, or way to go backward.
GROUPS = 4
PLAN = Plan(CASES, (Target(), Target("other", "/opt/python")), Sampling(repeat=2))


def measure(order: Order) -> Result:
    """Times, counts with costs by function, or a failure."""
    text = f"{order.case.suite} {order.case.key} {order.target.name} {order.metric.value} {order.round}"
    number = zlib.crc32(text.encode())
    if number % 7 == 0:
        return Failure(FailureKind.RAISED, f"ValueError: {number}")
    if order.metric is Metric.WALL:
        return Times(10, (number * 1e-6, 0.5))
    profile = dataclasses.replace(PROFILE, trigger=str(number))
    return dataclasses.replace(TALLY, totals=(number,), seeds=(0,), profile=profile, baseline_profile=BASELINE)


def describe(shard: Shard | None, run_id: int, **changes: Any) -> RunInfo:
    """What a run says of itself."""
    options = (("names", ("a.py", "b.py")), *(((SHARD, (str(shard),)),) if shard else ()))
    return dataclasses.replace(INFO, id=f"{run_id:032x}", options=options, **changes)


def carry_out(
    store: Store, info: RunInfo, plan: Plan, orders: Iterable[Order], result: Callable[[Order], Result] = measure
) -> None:
    """A run in which only these orders are carried out."""
    backend = FakeBackend(result, ENVIRONMENT)
    backend.open(plan)
    with store.begin(plan, info) as recorder:
        for event in backend.execute(plan, list(orders), StopRequest()):
            if isinstance(event, Outcome):
                recorder.append(event)
        recorder.finish()


def run_shard(path: Path, shard: Shard, plan: Plan = PLAN, **changes: Any) -> Path:
    """A store with one shard."""
    with open_store(path, create=True) as store:
        info = describe(shard, changes.pop("run_id", shard.number), **changes)
        carry_out(store, info, plan, pick_orders(plan.orders, plan, shard))
    return path


def run_shards(folder: Path, of: int, plan: Plan = PLAN) -> list[Path]:
    """A store for each shard."""
    return [run_shard(folder / f"{n}_{of}.db", Shard(n, of), plan) for n in range(1, of + 1)]


def run_whole(path: Path, plan: Plan = PLAN) -> Run:
    """The same by one machine."""
    with open_store(path, create=True) as store:
        carry_out(store, describe(None, 0), plan, plan.orders)
    return load(path)


def load(path: Path) -> Run:
    """The only run of a store, with everything."""
    with open_store(path, read_only=True) as store:
        (info,) = store.list_runs()
        return store.load(info.id, profiles=True)


def without_moments(run: Run) -> Mapping[str, Any]:
    """All of a run but for its id and when it was."""
    plain = export_run(run)
    for name in ("id", "created", "finished"):
        del plain["run"][name]
    for outcome in plain["outcomes"]:
        del outcome["began"], outcome["ended"]
    return plain
