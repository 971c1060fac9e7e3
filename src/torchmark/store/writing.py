"""Values into rows. All of this happens within a transaction of the caller's."""

from __future__ import annotations

from collections.abc import Mapping

from torchmark.errors import UsageError
from torchmark.model.case import Case
from torchmark.model.outcome import Activity, Failure, Outcome
from torchmark.model.owner import Owner
from torchmark.model.plan import Plan
from torchmark.model.run import RunInfo
from torchmark.store.database import Database
from torchmark.store.definitions import hash_text, write_definition
from torchmark.store.plain import dump, to_plain
from torchmark.store.profiles import pack
from torchmark.store.results import check_order, check_plan, count_orders, split_outcome

# What of a run's information has a column, or is counted.
ELSEWHERE = ("id", "created", "finished", "orders", "outcomes", "failures")


def put_run(database: Database, info: RunInfo, plan: Plan, writer: Owner | None) -> tuple[int, dict[Case, int]]:
    """Add a run with its plan; gives its number and those of its cases."""
    if database.rows("SELECT 1 FROM runs WHERE id = ?", info.id):
        raise UsageError(f"The run {info.id} is in the store already.")
    plain = {name: value for name, value in to_plain(info).items() if name not in ELSEWHERE}
    run = database.insert(
        "INSERT INTO runs (id, created, finished, info, targets, sampling, orders, writer) "
        "VALUES (?, ?, ?, ?, '', '', 0, ?)",
        info.id,
        info.created,
        info.finished,
        dump(plain),
        write_owner(writer),
    )
    return run, put_plan(database, run, plan)


def put_plan(database: Database, run: int, plan: Plan) -> dict[Case, int]:
    """Make this the plan of a run; gives the numbers of its cases.

    Outcomes of cases whose definitions have changed go; those of cases that are no longer part of it are set aside.
    """
    check_plan(plan)
    known = dict(database.rows("SELECT subject, definition FROM cases WHERE run = ?", run))
    database.change("UPDATE cases SET position = NULL WHERE run = ?", run)
    subjects = {case: _put_case(database, run, position, case, known) for position, case in enumerate(plan.cases)}
    database.change(
        "UPDATE runs SET targets = ?, sampling = ?, orders = ? WHERE number = ?",
        dump(to_plain(plan.targets)),
        dump(to_plain(plan.sampling)),
        count_orders(plan),
        run,
    )
    targets = [dump(to_plain(target)) for target in plan.targets]
    metrics = [metric.value for metric in plan.sampling.metrics]
    database.change(
        f"UPDATE outcomes SET planned = round < ? AND target IN ({_places(targets)}) "
        f"AND metric IN ({_places(metrics)}) AND subject IN "
        "(SELECT subject FROM cases WHERE run = ? AND position IS NOT NULL) WHERE run = ?",
        plan.sampling.repeat,
        *targets,
        *metrics,
        run,
        run,
    )
    return subjects


def _places(values: list[str]) -> str:
    return ", ".join("?" * len(values))


def _put_case(database: Database, run: int, position: int, case: Case, known: Mapping[int, str]) -> int:
    name, tags = dump([case.suite, case.key]), dump(list(case.tags))
    database.change("INSERT OR IGNORE INTO subjects (name) VALUES (?)", name)
    subject: int = database.rows("SELECT number FROM subjects WHERE name = ?", name)[0][0]
    text = write_definition(case)
    definition = hash_text(text)
    database.change("INSERT OR IGNORE INTO definitions (hash, body) VALUES (?, ?)", definition, text)
    if known.get(subject, definition) != definition:
        database.change("DELETE FROM outcomes WHERE run = ? AND subject = ?", run, subject)
    database.change(
        "INSERT INTO cases (run, subject, position, definition, tags) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (run, subject) DO UPDATE "
        "SET position = excluded.position, definition = excluded.definition, tags = excluded.tags",
        run,
        subject,
        position,
        definition,
        tags,
    )
    return subject


def put_planned_outcome(
    database: Database, run: int, plan: Plan, subjects: Mapping[Case, int], outcome: Outcome
) -> None:
    """Add what became of an order of the plan, in place of what is there."""
    order = outcome.order
    if order.case not in subjects:
        raise UsageError(f"The case {order.case.key} is no part of the plan.")
    check_order(plan, order.target, order.metric, order.round)
    _put_outcome(database, run, subjects[order.case], outcome)


def _put_outcome(database: Database, run: int, subject: int, outcome: Outcome) -> None:
    body, parts = split_outcome(outcome)
    order = outcome.order
    place = (run, subject, dump(to_plain(order.target)), order.metric.value, order.round)
    database.change(
        "DELETE FROM outcomes WHERE run = ? AND subject = ? AND target = ? AND metric = ? AND round = ?", *place
    )
    number = database.insert(
        "INSERT INTO outcomes (run, subject, target, metric, round, planned, failed, began, ended, environment, body) "
        "VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?)",
        *place,
        int(isinstance(outcome.result, Failure)),
        outcome.began,
        outcome.ended,
        _put_environment(database, outcome),
        dump(body),
    )
    for role, part in parts.items():
        name, packed = pack(part)
        database.change("INSERT OR IGNORE INTO blobs (hash, body) VALUES (?, ?)", name, packed)
        database.change("INSERT INTO parts (outcome, role, blob) VALUES (?, ?, ?)", number, role, name)


def _put_environment(database: Database, outcome: Outcome) -> int | None:
    if outcome.environment is None:
        return None
    text = dump(to_plain(outcome.environment))
    database.change("INSERT OR IGNORE INTO environments (body) VALUES (?)", text)
    number: int = database.rows("SELECT number FROM environments WHERE body = ?", text)[0][0]
    return number


def put_activity(database: Database, run: int, activity: Activity) -> None:
    """Add something that was done besides measuring."""
    database.change("INSERT INTO activities (run, body) VALUES (?, ?)", run, dump(to_plain(activity)))


def drop_unused(database: Database) -> None:
    """Remove what only removed outcomes and runs have referred to."""
    for table, column, user, reference in (
        ("blobs", "hash", "parts", "blob"),
        ("environments", "number", "outcomes", "environment"),
        ("definitions", "hash", "cases", "definition"),
        ("subjects", "number", "cases", "subject"),
    ):
        database.change(
            f"DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM {user} WHERE {user}.{reference} = {table}.{column})"
        )


def write_owner(owner: Owner | None) -> str | None:
    """A process as a column has it."""
    return None if owner is None else dump(to_plain(owner))
