"""Values into rows of the database and back. Everything that is read is checked."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from torchmark.errors import StoreError, UsageError
from torchmark.model.environment import Environment
from torchmark.model.outcome import Activity, Failure, Outcome
from torchmark.model.plain import to_plain
from torchmark.model.plan import Case, Metric, Order, Plan, Sampling, Target
from torchmark.model.run import Run, RunEntry, RunInfo
from torchmark.processes import Owner, is_alive
from torchmark.store import documents
from torchmark.store.database import Database, check_row
from torchmark.store.plain import dump, from_plain, hash_text, parse, read_case, write_definition

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
    documents.check_plan(plan)
    known = dict(database.rows("SELECT subject, definition FROM cases WHERE run = ?", run))
    database.change("UPDATE cases SET position = NULL WHERE run = ?", run)
    subjects = {case: _put_case(database, run, position, case, known) for position, case in enumerate(plan.cases)}
    database.change(
        "UPDATE runs SET targets = ?, sampling = ?, orders = ? WHERE number = ?",
        dump(to_plain(plan.targets)),
        dump(to_plain(plan.sampling)),
        # How many orders it has, without making them.
        len(plan.cases) * len(plan.targets) * len(plan.sampling.metrics) * plan.sampling.repeat,
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


def _places(values: Sequence[object]) -> str:
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
    documents.check_order(plan, order.target, order.metric, order.round)
    body, parts = documents.split_outcome(outcome)
    place = (run, subjects[order.case], dump(to_plain(order.target)), order.metric.value, order.round)
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
        name, packed = documents.pack(part)
        database.change("INSERT OR IGNORE INTO blobs (hash, body) VALUES (?, ?)", name, packed)
        database.change("INSERT INTO parts (outcome, role, blob) VALUES (?, ?, ?)", number, role, name)


def _put_environment(database: Database, outcome: Outcome) -> int | None:
    if outcome.environment is None:
        return None
    text = dump(to_plain(outcome.environment))
    database.change("INSERT OR IGNORE INTO environments (body) VALUES (?)", text)
    return int(database.rows("SELECT number FROM environments WHERE body = ?", text)[0][0])


def put_activity(database: Database, run: int, activity: Activity) -> None:
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
    return None if owner is None else dump(to_plain(owner))


# A case is expected to take as long as the middle one of so many outcomes, the newest ones.
TYPICAL_OF = 5
# What counting does before the first layout takes about as long as so many layouts.
LAYOUTS_AHEAD = 3

# Of two machines whose clocks are set by hand, one is rarely further ahead than time zones differ.
CLOCK_SLACK_S = 24 * 3600.0

_NUMBER = (int, float)

_INFO = """SELECT number, id, created, finished, info, orders,
    (SELECT count(*) FROM outcomes WHERE run = runs.number AND planned = 1),
    (SELECT count(*) FROM outcomes WHERE run = runs.number AND planned = 1 AND failed = 1)
    FROM runs"""


def read_infos(database: Database) -> tuple[RunInfo, ...]:
    """All runs, the newest first: by when they began, or if that lies in the future, by when the store got them.

    A clock that was wrong once would otherwise make a run the newest for ever.
    """
    latest, newest = time.time() + CLOCK_SLACK_S, 0.0
    infos = []
    for row in database.rows(f"{_INFO} ORDER BY number"):
        info = _read_info(row)
        if info.created <= latest:
            newest = max(newest, info.created)
            infos.append((info.created, 0, info.id, info))
        else:
            infos.append((newest, row[0], info.id, info))
    return tuple(info for *_, info in sorted(infos, key=lambda one: one[:3], reverse=True))


def read_info(database: Database, run_id: str) -> RunInfo:
    for row in database.rows(f"{_INFO} WHERE id = ?", run_id):
        return _read_info(row)
    raise UsageError(f"There is no run {run_id} in {database.path}.")


def _read_info(row: tuple[Any, ...]) -> RunInfo:
    _, run_id, created, finished, text, orders, outcomes, failures = check_row(
        row, int, str, _NUMBER, (*_NUMBER, type(None)), str, int, int, int
    )
    counted = {"orders": orders, "outcomes": outcomes, "failures": failures}
    plain = from_plain(dict, parse(text, "info"), "info")
    return from_plain(RunInfo, {**plain, "id": run_id, "created": created, "finished": finished, **counted}, "run")


def read_number(database: Database, run_id: str) -> int:
    """The number that other tables know a run by."""
    for (number,) in database.rows("SELECT number FROM runs WHERE id = ?", run_id):
        return int(number)
    raise UsageError(f"There is no run {run_id} in {database.path}.")


def read_writer(database: Database, run_id: str) -> Owner | None:
    """The process that is at a run, if it is alive."""
    for (text,) in database.rows("SELECT writer FROM runs WHERE id = ? AND writer IS NOT NULL", run_id):
        owner = from_plain(Owner, parse(text, "writer"), "writer")
        return owner if is_alive(owner) else None
    return None


def read_entries(database: Database) -> tuple[RunEntry, ...]:
    """All runs as a list shows them, the newest first."""
    cases = dict(database.rows("SELECT run, count(*) FROM cases WHERE position IS NOT NULL GROUP BY run"))
    environments = {number: _read_environment(text) for number, text in database.rows("SELECT * FROM environments")}
    versions: dict[int, set[str]] = {}
    for run, number in database.rows("SELECT DISTINCT run, environment FROM outcomes WHERE planned = 1"):
        if number in environments:
            versions.setdefault(run, set()).add(environments[number].torch_version)
    entries = []
    for info in read_infos(database):
        run, writer = read_number(database, info.id), read_writer(database, info.id)
        names = tuple(target.name for target in _read_targets(database, run))
        torch = tuple(sorted(versions.get(run, ())))
        entries.append(RunEntry(info, cases.get(run, 0), names, torch, writer=None if writer is None else writer.pid))
    return tuple(entries)


def _read_targets(database: Database, run: int) -> tuple[Target, ...]:
    ((text,),) = database.rows("SELECT targets FROM runs WHERE number = ?", run)
    return from_plain(tuple[Target, ...], parse(text, "targets"), "targets")


def read_sampling(database: Database, run: int) -> Sampling:
    ((text,),) = database.rows("SELECT sampling FROM runs WHERE number = ?", run)
    return from_plain(Sampling, parse(text, "sampling"), "sampling")


def _read_environment(text: object) -> Environment:
    return from_plain(Environment, parse(text, "environment"), "environment")


def read_run(
    database: Database,
    run_id: str,
    *,
    profiles: bool,
    select: Callable[[Case], bool] | None,
    names: Collection[tuple[str, str]] | None = None,
) -> Run:
    """A run; see `Store.load`."""
    info, run = read_info(database, run_id), read_number(database, run_id)
    cases = {subject: case for subject, case in _read_cases(database, run, names) if select is None or select(case)}
    plan = _make_plan(database, run, cases.values())
    only = None if names is None else tuple(cases)
    outcomes = tuple(_read_outcomes(database, run, plan, cases, only, profiles=profiles))
    activities = database.rows("SELECT body FROM activities WHERE run = ? ORDER BY number", run)
    return Run(
        info, plan, outcomes, tuple(from_plain(Activity, parse(text, "activity"), "activity") for (text,) in activities)
    )


def read_plan(database: Database, run_id: str) -> Plan:
    run = read_number(database, run_id)
    return _make_plan(database, run, (case for _, case in _read_cases(database, run)))


def _make_plan(database: Database, run: int, cases: Iterable[Case]) -> Plan:
    return Plan(tuple(cases), _read_targets(database, run), read_sampling(database, run))


def _read_cases(
    database: Database, run: int, names: Collection[tuple[str, str]] | None = None
) -> Iterator[tuple[int, Case]]:
    written = None if names is None else [dump(list(name)) for name in names]
    rows = database.rows(
        "SELECT subject, subjects.name, definition, definitions.body, tags FROM cases "
        "JOIN subjects ON subjects.number = subject "
        "JOIN definitions ON definitions.hash = definition WHERE run = ? AND position IS NOT NULL "
        f"{_only('subjects.name', written)} ORDER BY position",
        run,
        *(written or ()),
    )
    for row in rows:
        subject, *texts = check_row(row, int, str, str, str, str)
        yield subject, _read_case(*texts)


def _only(column: str, values: Sequence[object] | None) -> str:
    """The condition that a column has one of these values; none for None."""
    return "" if values is None else f"AND {column} IN ({_places(values)})"


# Of many runs most have the same cases.
@functools.lru_cache(maxsize=20_000)
def _read_case(name: str, definition: str, text: str, tags: str) -> Case:
    if not text.isascii() or hash_text(text) != definition:
        raise StoreError("It is damaged: a definition has another content than it had.")
    suite, key = from_plain(tuple[str, str], parse(name, "name"), "name")
    case = read_case(parse(text, "definition"), suite, from_plain(tuple[str, ...], parse(tags, "tags"), "tags"))
    if case.key != key:
        raise StoreError(f"It is damaged: the case {key:.80} is defined as {case.key:.80}.")
    return case


def _read_outcomes(
    database: Database, run: int, plan: Plan, cases: Mapping[int, Case], only: Sequence[int] | None, *, profiles: bool
) -> Iterator[Outcome]:
    """Those of the plan, in the order in which they came; `only` are the numbers of few cases.

    What several have in common is read once.
    """

    @functools.cache
    def find_environment(number: int) -> Environment:
        for (body,) in database.rows("SELECT body FROM environments WHERE number = ?", number):
            return _read_environment(body)
        raise StoreError("It is damaged: an environment is missing.")

    @functools.cache
    def find_part(role: str, blob: str) -> Any:
        return documents.read_part(role, documents.unpack(blob, read_blob(database, blob)))

    @functools.cache
    def find_place(target_text: str, metric_text: str, of_round: int) -> tuple[Target, Metric]:
        target = from_plain(Target, parse(target_text, "target"), "target")
        metric = from_plain(Metric, metric_text, "metric")
        documents.check_order(plan, target, metric, of_round)
        return target, metric

    rows = database.rows(
        "SELECT number, subject, target, metric, round, began, ended, environment, body FROM outcomes "
        f"WHERE run = ? AND planned = 1 {_only('subject', only)} ORDER BY number",
        run,
        *(only or ()),
    )
    parts = _list_parts(database, run, only, profiles=profiles)
    for row in rows:
        number, subject, target_text, metric_text, of_round, began, ended, environment, body = check_row(
            row, int, int, str, str, int, _NUMBER, _NUMBER, (int, type(None)), str
        )
        if subject in cases:
            yield documents.join_outcome(
                from_plain(documents.OutcomeBody, parse(body, "outcome"), "outcome"),
                Order(cases[subject], *find_place(target_text, metric_text, of_round), of_round),
                {role: find_part(role, blob) for role, blob in parts.get(number, ())},
                (began, ended),
                None if environment is None else find_environment(environment),
            )


def _list_parts(
    database: Database, run: int, only: Sequence[int] | None, *, profiles: bool
) -> dict[int, list[tuple[str, str]]]:
    """The roles and hashes of the large parts of each outcome, as far as they are to be read."""
    rows = database.rows(
        "SELECT outcome, role, blob FROM parts JOIN outcomes ON outcomes.number = outcome "
        f"WHERE run = ? AND planned = 1 {_only('subject', only)}",
        run,
        *(only or ()),
    )
    found: dict[int, list[tuple[str, str]]] = {}
    for row in rows:
        outcome, role, blob = check_row(row, int, str, str)
        if profiles or role in documents.LIGHT_ROLES:
            found.setdefault(outcome, []).append((role, blob))
    return found


def read_blob(database: Database, name: str) -> bytes:
    """The compressed text that has this hash."""
    for (body,) in database.rows("SELECT body FROM blobs WHERE hash = ?", name):
        if isinstance(body, bytes):
            return body
    raise StoreError("It is damaged: costs by function are missing.")


def read_durations(database: Database, sampling: Sampling) -> dict[tuple[str, str, Metric], float]:
    """How long cases take by this sampling, by suite, key and metric."""
    names = dict(database.rows("SELECT number, name FROM subjects"))
    samplings = {run: read_sampling(database, run) for (run,) in database.rows("SELECT number FROM runs")}
    taken: dict[tuple[int, Metric], list[float]] = {}
    for row in database.rows(
        "SELECT run, subject, metric, ended - began FROM (SELECT run, subject, metric, ended, began, row_number() OVER "
        "(PARTITION BY subject, metric ORDER BY ended DESC) AS age FROM outcomes WHERE failed = 0) WHERE age <= ?",
        TYPICAL_OF,
    ):
        run, subject, name, seconds = check_row(row, int, int, str, _NUMBER)
        # A clock may have been set back meanwhile.
        seconds = max(seconds, 0.0)
        metric = from_plain(Metric, name, "metric")
        then = samplings.get(run)
        if then is None:
            raise StoreError("It is damaged: a run is missing.")
        if metric is Metric.WALL and (then.number, then.blocks) != (sampling.number, sampling.blocks):
            # Another amount of work.
            continue
        taken.setdefault((subject, metric), []).append(_convert(seconds, metric, then, sampling))
    typical = {}
    for (subject, metric), values in taken.items():
        suite, key = from_plain(tuple[str, str], parse(names.get(subject, ""), "name"), "name")
        typical[suite, key, metric] = sorted(values)[len(values) // 2]
    return typical


def _convert(seconds: float, metric: Metric, then: Sampling, now: Sampling) -> float:
    """What took so long by one sampling takes so long by another."""
    if metric is Metric.WALL:
        return max(seconds - then.min_run_time_s, 0.0) + now.min_run_time_s
    return seconds * (len(now.layouts) + LAYOUTS_AHEAD) / (len(then.layouts) + LAYOUTS_AHEAD)
