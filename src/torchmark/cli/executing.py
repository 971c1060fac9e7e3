"""Carrying out a plan: signs of life, every result saved the moment it exists, and a stop that loses nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from collections.abc import Iterable

from torchmark.analysis.estimate import Estimator
from torchmark.analysis.sharding import pick_orders
from torchmark.cli.interrupts import Ended, interrupts_stop
from torchmark.cli.planning import Known, Wish, describe_run
from torchmark.model.outcome import Begun, Failure, Outcome
from torchmark.model.plan import Order, Plan
from torchmark.model.run import Run
from torchmark.report.advance import Advance
from torchmark.report.progress import make_progress
from torchmark.runner.backend import Backend, Stop
from torchmark.store.recorder import Recorder
from torchmark.store.runs import Store

CASE_FAILED = 1
INTERRUPTED = 130
# What shells add to the number of the signal that ended a program.
SIGNALLED = 128


@dataclasses.dataclass(frozen=True)
class Task:
    """What is to be done, and where it is kept."""

    store: Store
    plan: Plan
    wish: Wish
    known: Known | None
    name: str | None

    def open(self, backend: Backend) -> Recorder:
        """Begin, once it is certain that something can be done; or go on, if something is left to do."""
        if self.known is None:
            if self.pick(self.plan.orders):
                backend.open(self.plan)
            return self.store.begin(self.plan, describe_run(self.wish, self.plan, self.name, self.store.path))
        recorder = self.store.resume(self.known.info.id, self.plan)
        try:
            if self.pick(recorder.missing):
                backend.open(self.plan)
        except BaseException:
            recorder.__exit__(None, None, None)
            raise
        return recorder

    def pick(self, orders: Iterable[Order]) -> tuple[Order, ...]:
        """Those that are to be carried out here: a shard leaves the others to others."""
        return pick_orders(orders, self.plan, self.wish.shard)


def carry_out(task: Task, backend: Backend, *, quiet: bool, fail_fast: bool) -> tuple[int, Run]:
    """The run, saved outcome by outcome, and the exit code."""
    stop, code = Stop(), 0
    with interrupts_stop(stop), task.open(backend) as recorder:
        run_id = recorder.info.id
        try:
            _follow(recorder, task, backend, stop, quiet=quiet, fail_fast=fail_fast)
        except Ended as ended:
            code = SIGNALLED + ended.number
        except KeyboardInterrupt:
            code = INTERRUPTED
        recorder.finish()
        if stop.requested and not code and task.pick(recorder.missing):
            code = CASE_FAILED if fail_fast and recorder.info.failures else INTERRUPTED
    run = task.store.load(run_id)
    failed = any(isinstance(outcome.result, Failure) for outcome in run.outcomes)
    return code or (CASE_FAILED if failed else 0), run


def _follow(recorder: Recorder, task: Task, backend: Backend, stop: Stop, *, quiet: bool, fail_fast: bool) -> None:
    orders, plan = task.pick(recorder.missing), task.plan
    if not orders:
        return
    estimator = Estimator(orders, plan.sampling, task.store.durations(plan.sampling), backend.slots)
    total = len(task.pick(plan.orders))
    done = total - len(orders)
    # Failures that are tried again are not done.
    failed = max(recorder.info.failures - (recorder.info.outcomes - done), 0)
    with (
        make_progress(sys.stderr, quiet, Advance(total, estimator, done, failed, time.monotonic)) as progress,
        contextlib.closing(backend.execute(plan, orders, stop)) as events,
    ):
        for event in events:
            if not isinstance(event, Begun):
                event = recorder.append(event)
            progress.take(event)
            if fail_fast and isinstance(event, Outcome) and isinstance(event.result, Failure):
                stop.request()
