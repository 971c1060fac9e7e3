"""Rows into values. Nothing in a row is believed before it is checked: the file may be a stranger's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from torchmark.errors import StoreError, UsageError
from torchmark.model.case import Case
from torchmark.model.environment import Environment
from torchmark.model.outcome import Activity, Outcome
from torchmark.model.owner import Owner, is_alive
from torchmark.model.plan import Metric, Order, Plan, Sampling, Target
from torchmark.model.run import Run, RunEntry, RunInfo
from torchmark.store.database import Database, check_row
from torchmark.store.definitions import hash_text, read_case
from torchmark.store.fields import check_kind
from torchmark.store.plain import from_plain, parse
from torchmark.store.profiles import unpack
from torchmark.store.results import LIGHT_ROLES, check_order, read_outcome, read_part

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
    """The run of that id."""
    for row in database.rows(f"{_INFO} WHERE id = ?", run_id):
        return _read_info(row)
    raise UsageError(f"There is no run {run_id} in {database.path}.")


def _read_info(row: tuple[Any, ...]) -> RunInfo:
    _, run_id, created, finished, text, orders, outcomes, failures = check_row(
        row, int, str, _NUMBER, (*_NUMBER, type(None)), str, int, int, int
    )
    counted = {"orders": orders, "outcomes": outcomes, "failures": failures}
    plain = check_kind(parse(text, "info"), "info", dict)
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
        run = read_number(database, info.id)
        writer = read_writer(database, info.id)
        names = tuple(target.name for target in _read_targets(database, run))
        torch = tuple(sorted(versions.get(run, ())))
        entries.append(RunEntry(info, cases.get(run, 0), names, torch, None if writer is None else writer.pid))
    return tuple(entries)


def _read_targets(database: Database, run: int) -> tuple[Target, ...]:
    ((text,),) = database.rows("SELECT targets FROM runs WHERE number = ?", run)
    items = check_kind(parse(text, "targets"), "targets", list)
    return tuple(from_plain(Target, item, "target") for item in items)


def read_sampling(database: Database, run: int) -> Sampling:
    """How the cases of a run are measured."""
    ((text,),) = database.rows("SELECT sampling FROM runs WHERE number = ?", run)
    return from_plain(Sampling, parse(text, "sampling"), "sampling")


def _read_environment(text: object) -> Environment:
    return from_plain(Environment, parse(check_kind(text, "environment", str), "environment"), "environment")


def read_run(database: Database, run_id: str, *, profiles: bool, select: Callable[[Case], bool] | None) -> Run:
    """A run; see `Store.load`."""
    info, run = read_info(database, run_id), read_number(database, run_id)
    cases = {subject: case for subject, case in _read_cases(database, run) if select is None or select(case)}
    plan = Plan(tuple(cases.values()), _read_targets(database, run), read_sampling(database, run))
    activities = database.rows("SELECT body FROM activities WHERE run = ? ORDER BY number", run)
    return Run(
        info,
        plan,
        tuple(_Outcomes(database, plan, cases, profiles=profiles).read(run)),
        tuple(from_plain(Activity, parse(text, "activity"), "activity") for (text,) in activities),
    )


def _read_cases(database: Database, run: int) -> Iterator[tuple[int, Case]]:
    rows = database.rows(
        "SELECT subject, subjects.name, definition, definitions.body, tags FROM cases "
        "JOIN subjects ON subjects.number = subject "
        "JOIN definitions ON definitions.hash = definition WHERE run = ? AND position IS NOT NULL ORDER BY position",
        run,
    )
    for row in rows:
        subject, name, definition, text, tags = check_row(row, int, str, str, str, str)
        if not text.isascii() or hash_text(text) != definition:
            raise StoreError("It is damaged: a definition has another content than it had.")
        suite, key = from_plain(tuple[str, str], parse(name, "name"), "name")
        case = read_case(parse(text, "definition"), suite, from_plain(tuple[str, ...], parse(tags, "tags"), "tags"))
        if case.key != key:
            raise StoreError(f"It is damaged: the case {key:.80} is defined as {case.key:.80}.")
        yield subject, case


class _Outcomes:
    """Reads outcomes of one run, and what several of them have in common only once."""

    def __init__(self, database: Database, plan: Plan, cases: dict[int, Case], *, profiles: bool) -> None:
        self._database, self._plan, self._cases, self._profiles = database, plan, cases, profiles
        self._environments: dict[int, Environment] = {}
        self._parts: dict[tuple[str, str], Any] = {}

    def read(self, run: int) -> Iterator[Outcome]:
        """Those of the plan, in the order in which they came."""
        rows = self._database.rows(
            "SELECT number, subject, target, metric, round, began, ended, environment, body FROM outcomes "
            "WHERE run = ? AND planned = 1 ORDER BY number",
            run,
        )
        for row in rows:
            number, subject, target, metric, of_round, began, ended, environment, body = check_row(
                row, int, int, str, str, int, _NUMBER, _NUMBER, (int, type(None)), str
            )
            if subject not in self._cases:
                continue
            order = self._read_order(subject, target, metric, of_round)
            rest = {"began": float(began), "ended": float(ended), "environment": self._find_environment(environment)}
            yield read_outcome(
                check_kind(parse(body, "outcome"), "outcome", dict), order, self._read_parts(number), rest
            )

    def _read_order(self, subject: int, target_text: str, metric_text: str, number: int) -> Order:
        target = from_plain(Target, parse(target_text, "target"), "target")
        metric = from_plain(Metric, metric_text, "metric")
        check_order(self._plan, target, metric, number)
        return Order(self._cases[subject], target, metric, number)

    def _find_environment(self, number: int | None) -> Environment | None:
        if number is None:
            return None
        if number not in self._environments:
            rows = self._database.rows("SELECT body FROM environments WHERE number = ?", number)
            if not rows:
                raise StoreError("It is damaged: an environment is missing.")
            self._environments[number] = _read_environment(rows[0][0])
        return self._environments[number]

    def _read_parts(self, outcome: int) -> dict[str, Any]:
        rows = self._database.rows("SELECT role, blob FROM parts WHERE outcome = ?", outcome)
        return {
            role: self._find_part(role, blob)
            for role, blob in (check_row(row, str, str) for row in rows)
            if self._profiles or role in LIGHT_ROLES
        }

    def _find_part(self, role: str, blob: str) -> Any:
        if (role, blob) not in self._parts:
            rows = self._database.rows("SELECT body FROM blobs WHERE hash = ?", blob)
            if not rows or not isinstance(rows[0][0], bytes):
                raise StoreError("It is damaged: costs by function are missing.")
            self._parts[role, blob] = read_part(role, unpack(blob, rows[0][0]))
        return self._parts[role, blob]


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
