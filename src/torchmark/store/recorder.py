"""Saving a run while it runs: each outcome by itself, as soon as it is there."""

from __future__ import annotations

import time
from types import TracebackType

from torchmark.errors import StoreError, UsageError
from torchmark.model.case import Case
from torchmark.model.outcome import Activity, Failure, FailureKind, Outcome, may_pass_later
from torchmark.model.owner import this_process
from torchmark.model.plan import Order, Plan
from torchmark.model.run import RunInfo
from torchmark.store.database import Database, StoreLost
from torchmark.store.fields import plain_environment, read_environment
from torchmark.store.plain import dump, parse, to_plain
from torchmark.store.reading import read_info, read_number, read_sampling, read_writer
from torchmark.store.results import join_result, read_outcome, read_part, split_outcome
from torchmark.store.writing import drop_unused, put_activity, put_plan, put_planned_outcome, put_run, write_owner


class Recorder:
    """A run that this process is at. Whatever `append` has returned from is safe.

    Another process cannot be at the same run meanwhile. Should this one be taken for dead, because it is in another
    container, and the run be taken from it, then it is told at its next outcome, and nothing is mixed.
    """

    def __init__(
        self, database: Database, run_id: str, plan: Plan, subjects: dict[Case, int], missing: tuple[Order, ...]
    ) -> None:
        self._database = database
        self._id = run_id
        self._plan = plan
        self._subjects = subjects
        self._owner = this_process()
        self._missing = dict.fromkeys(missing)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            with self._database.transaction():
                self._database.change(
                    "UPDATE runs SET writer = NULL WHERE id = ? AND writer = ?", self._id, write_owner(self._owner)
                )
        except StoreLost:
            raise
        except StoreError:
            # The run counts as left when this process has ended.
            pass

    @property
    def info(self) -> RunInfo:
        """What is known of the run by now."""
        return read_info(self._database, self._id)

    @property
    def missing(self) -> tuple[Order, ...]:
        """The orders that are to be carried out, in the order of the plan."""
        return tuple(self._missing)

    def append(self, event: Outcome | Activity) -> Outcome | Activity:
        """Save this; an outcome takes the place of an earlier one of its order. Gives what was saved: a failure in
        place of an outcome that could not be read again."""
        if isinstance(event, Outcome):
            event = _make_readable(event)
        with self._database.transaction():
            run = self._find_own_run()
            if isinstance(event, Activity):
                put_activity(self._database, run, event)
            else:
                put_planned_outcome(self._database, run, self._plan, self._subjects, event)
        if isinstance(event, Outcome):
            self._missing.pop(event.order, None)
        return event

    def finish(self) -> None:
        """Note that the run is complete, if it is."""
        if self._missing:
            return
        with self._database.transaction():
            run = self._find_own_run()
            self._database.change("UPDATE runs SET finished = ? WHERE number = ?", time.time(), run)

    def _find_own_run(self) -> int:
        for number, writer in self._database.rows("SELECT number, writer FROM runs WHERE id = ?", self._id):
            if writer == write_owner(self._owner):
                return int(number)
            raise StoreError(f"The run {self._id} has been taken over by another process.")
        raise StoreError(f"The run {self._id} has been removed from the store.")


def _make_readable(outcome: Outcome) -> Outcome:
    """The outcome, if what is written of it can be read again; else one that says why not.

    One that cannot be read would take all others of its run with it.
    """
    try:
        body, parts = split_outcome(outcome)
        environment = outcome.environment and read_environment(plain_environment(outcome.environment))
        rest = {"began": outcome.began, "ended": outcome.ended, "environment": environment}
        read_outcome(body, outcome.order, {role: read_part(role, part) for role, part in parts.items()}, rest)
    except Exception as error:
        # Of any kind: results come from other processes and other machines.
        message = f"The result cannot be kept: {type(error).__name__}: {error}"
        now = time.time()
        return Outcome(outcome.order, Failure(FailureKind.NO_RESULT, message), now, now)
    return outcome


def begin(database: Database, plan: Plan, info: RunInfo) -> Recorder:
    """Start a run."""
    with database.transaction():
        _, subjects = put_run(database, info, plan, this_process())
    return Recorder(database, info.id, plan, subjects, plan.orders)


def resume(database: Database, run_id: str, plan: Plan) -> Recorder:
    """Go on with a run, by a plan that may have changed."""
    with database.transaction():
        refuse_running(database, run_id)
        run = read_number(database, run_id)
        if plan.sampling.timeout_s > read_sampling(database, run).timeout_s:
            _drop_timed_out(database, run)
        subjects = put_plan(database, run, plan)
        drop_unused(database)
        missing = _find_missing(database, run, plan, subjects)
        database.change(
            "UPDATE runs SET writer = ?, finished = CASE WHEN ? THEN NULL ELSE finished END WHERE number = ?",
            write_owner(this_process()),
            bool(missing),
            run,
        )
    return Recorder(database, run_id, plan, subjects, missing)


def _drop_timed_out(database: Database, run: int) -> None:
    """Forget what took too long: it is given more time now."""
    for number, body in database.rows("SELECT number, body FROM outcomes WHERE run = ? AND failed = 1", run):
        result = join_result(parse(body, "outcome"), {})
        if isinstance(result, Failure) and result.kind is FailureKind.TIMED_OUT:
            database.change("DELETE FROM outcomes WHERE number = ?", number)


def refuse_running(database: Database, run_id: str) -> None:
    """Leave a run alone that a living process is at."""
    writer = read_writer(database, run_id)
    if writer is not None:
        raise UsageError(f"The run {run_id} is being run by process {writer.pid}. Wait until it ends, or stop it.")


def _find_missing(database: Database, run: int, plan: Plan, subjects: dict[Case, int]) -> tuple[Order, ...]:
    rows = database.rows(
        "SELECT subject, target, metric, round, CASE WHEN failed THEN body END FROM outcomes "
        "WHERE run = ? AND planned = 1",
        run,
    )
    done = {tuple(place) for *place, body in rows if body is None or not _is_worth_another_try(body)}
    targets = {target: dump(to_plain(target)) for target in plan.targets}
    return tuple(
        order
        for order in plan.orders
        if (subjects[order.case], targets[order.target], order.metric.value, order.round) not in done
    )


def _is_worth_another_try(body: str) -> bool:
    result = join_result(parse(body, "outcome"), {})
    return isinstance(result, Failure) and may_pass_later(result)
