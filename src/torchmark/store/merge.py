"""Merging several stores into a new one, which takes its name when it is complete.

Apart from the command, because it writes stores.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from torchmark.errors import StoreError, UsageError
from torchmark.model.outcome import Activity, Outcome
from torchmark.model.plain import to_plain
from torchmark.model.plan import Metric, Plan, Target
from torchmark.model.run import Run, RunInfo, ShardPart
from torchmark.store.database import BESIDE, Database, check_row, clear_beside, explaining
from torchmark.store.documents import LIGHT_ROLES, unpack
from torchmark.store.merge_rules import (
    Copy,
    Mismatch,
    Place,
    RunGroup,
    bring_together,
    choose,
    find_difference,
    find_mixtures,
    find_other_option,
    identify,
    locate,
    name_nodes,
)
from torchmark.store.plain import dump, from_plain, hash_text, parse
from torchmark.store.rows import (
    put_activity,
    put_planned_outcome,
    put_run,
    read_info,
    read_infos,
    read_number,
    read_run,
    read_sampling,
    read_targets,
)
from torchmark.store.runs import refuse_running
from torchmark.store.store_file import open_database

# To wait for others, who should not be there.
_BUSY_MS = 1000


@contextlib.contextmanager
def new_store(path: Path, *, force: bool) -> Iterator[Database]:
    """A store to fill. It gets its name at the end, and if anything is raised before, nothing has happened.

    With `force` another store of that name is replaced, unless a process uses it.
    """
    path = Path(os.path.realpath(path))
    check_free(path, force=force)
    draft = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with _naming(path, draft):
            # What is said to be saved is on the disk, so closing it is enough.
            with contextlib.closing(open_database(draft, create=True, read_only=False)) as database:
                yield database
            check_free(path, force=force)
            _put_in_place(draft, path)
    finally:
        for suffix in ("", *BESIDE):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(f"{draft}{suffix}")


def check_free(path: Path, *, force: bool) -> None:
    """Refuse a name that is taken; with `force`, only by something that is no store."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder. Name a file in it, such as {path / 'results.db'}.")
    if path.exists() and not force:
        raise UsageError(f"{path} is there already. Choose another name, or replace it with --force.")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is not an ordinary file, and is not replaced. Choose another name.")
    if path.exists() and path.stat().st_size:
        open_database(path, create=False, read_only=True).close()


def refuse_same(path: Path, others: Sequence[Path]) -> None:
    """Refuse to write to a file that is read."""
    for other in others:
        if os.path.realpath(path) == os.path.realpath(other) or (path.exists() and path.samefile(other)):
            raise UsageError(f"{path} is one of the stores that are read. Choose another name.")


@contextlib.contextmanager
def _naming(path: Path, draft: Path) -> Iterator[None]:
    """Tell of the file that is to be, and not of the one that will be gone."""
    try:
        yield
    except StoreError as error:
        raise StoreError(str(error).replace(str(draft), str(path))) from error


def _put_in_place(draft: Path, path: Path) -> None:
    if path.exists() and path.stat().st_size:
        _retire(path)
    try:
        clear_beside(path)
        os.replace(draft, path)
    except OSError as error:
        raise StoreError(f"{path}: It cannot be written: {error.strerror}.") from error


def _retire(path: Path) -> None:
    """See that nobody uses a store, and that nothing of it is kept beside it."""
    with contextlib.closing(open_database(path, create=False, read_only=False)) as database:
        try:
            database.retire(_BUSY_MS)
        except StoreError as error:
            raise UsageError(f"{path} is in use. Wait until nobody uses it, or choose another name.") from error


# Large parts that are read before they are written.
_AT_ONCE = 64


@dataclasses.dataclass(frozen=True)
class Merged:
    """A run of the new store."""

    info: RunInfo
    sources: tuple[RunInfo, ...]
    """What it was put together of; those of the lowest shards come first."""
    parts: tuple[ShardPart, ...]
    """The shards among these."""
    repeated: int
    """Orders that were carried out more than once."""
    differing: int
    """Of these, orders whose counts differed."""
    mixtures: tuple[tuple[str, tuple[str, ...]], ...]
    """What was not the same for all its results although it changes numbers, and its values."""


def merge(paths: Sequence[Path], output: Path, *, force: bool = False) -> tuple[Merged, ...]:
    """Write all runs of these stores to a new one, which is there when it is complete.

    Shards of a run become one run, of which an order has one outcome: a result rather than a failure, and of two alike
    the one that ended first. A run that is in several stores is one. All else is as it was, without what a plan that
    has changed has left. Refused are runs that a process is at, and shards that seem to be of one run and are not.
    """
    refuse_same(output, paths)
    # Each once, however it is spelt.
    stores = dict.fromkeys(Path(os.path.realpath(path)) for path in paths)
    if missing := [store for store in stores if not store.exists()]:
        listed = " and ".join(map(str, missing))
        raise StoreError(f"There is no store at {listed}. Was that shard run, and its store brought here?")
    copies = [copy for store in stores for copy in _list_copies(store)]
    try:
        groups = bring_together(copies)
    except Mismatch as mismatch:
        raise _explain(mismatch) from None
    with new_store(output, force=force) as target:
        # The oldest first, as a store gets runs that it measures.
        merged = [_unite(target, group) for group in reversed(groups)]
    return tuple(reversed(merged))


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[Database]:
    with contextlib.closing(open_database(path, create=False, read_only=True)) as database:
        yield database


def _list_copies(store: Path) -> list[Copy]:
    with _reading(store) as database, database.snapshot():
        infos = read_infos(database)
        for info in infos:
            refuse_running(database, info.id)
        return [Copy(store, info, _hash_plan(database, info.id)) for info in infos]


def _hash_plan(database: Database, run_id: str) -> str:
    """What is the same for all shards of a plan: cases by name and definition, targets, sampling but for the limit."""
    run = read_number(database, run_id)
    cases = database.rows(
        "SELECT subjects.name, definition FROM cases JOIN subjects ON subjects.number = subject "
        "WHERE run = ? AND position IS NOT NULL ORDER BY position",
        run,
    )
    sampling = dataclasses.replace(read_sampling(database, run), timeout_s=0.0)
    return hash_text(dump([cases, to_plain(read_targets(database, run)), to_plain(sampling)]))


def _explain(mismatch: Mismatch) -> UsageError:
    one, other = mismatch.one, mismatch.other
    difference = find_difference(_load(one).plan, _load(other).plan) or find_other_option(one, other)
    if one.info.id == other.info.id:
        return UsageError(f"The run {one.info.id} is not the same in {one.store} and {other.store}: {difference}.")
    return UsageError(
        f"The shards of {one.info.name!r} in {one.store} and {other.store} are not of the same run: {difference}. "
        "Measure all from the same files with the same options, or give runs that differ names of their own (--name)."
    )


def _load(copy: Copy) -> Run:
    with _reading(copy.store) as database, database.snapshot():
        return read_run(database, copy.info.id, profiles=False, select=None)


def _unite(target: Database, group: RunGroup) -> Merged:
    """Put one run into the new store."""
    copies, found = group.copies, _gather(group)
    choice, plan = choose(found.outcomes), found.plan
    # What several have measured in no order of time is listed by the plan.
    listed = map(identify, plan.orders) if len(copies) > 1 else choice.kept
    places = [place for place in listed if place in choice.kept]
    outcomes = [choice.kept[place][1] for place in places]
    info = group.describe(outcomes, complete=len(outcomes) == len(plan.orders))
    parts: list[tuple[Place, str, str]] = []
    for number, copy in enumerate(copies):
        own = {place for place in places if choice.kept[place][0] == number}
        parts += _hand_on_parts(target, copy, own)
    _write(target, info, plan, outcomes, found.activities, parts)
    return Merged(
        info=read_info(target, info.id),
        sources=tuple(copy.info for copy in copies),
        parts=group.parts,
        repeated=choice.repeated,
        differing=choice.differing,
        mixtures=find_mixtures(outcomes) if len(copies) > 1 else (),
    )


@dataclasses.dataclass(frozen=True)
class _Found:
    """What all copies of a run have: the plan once, outcomes copy by copy."""

    plan: Plan
    outcomes: list[list[Outcome]]
    activities: list[Activity]


def _gather(group: RunGroup) -> _Found:
    """Read all copies of a run. Of the time limits the shortest is kept: who gives more means all that timed out."""
    plan = _load(group.copies[0]).plan
    outcomes, activities, limits = [], {}, []
    for copy, node in zip(group.copies, name_nodes(group.copies), strict=True):
        run = _load(copy)
        outcomes.append(locate(run.outcomes, node))
        activities.update(dict.fromkeys(run.activities))
        limits.append(run.plan.sampling.timeout_s)
    sampling = dataclasses.replace(plan.sampling, timeout_s=min(limits))
    in_time = sorted(activities, key=lambda activity: activity.began)
    return _Found(dataclasses.replace(plan, sampling=sampling), outcomes, in_time)


def _hand_on_parts(target: Database, copy: Copy, own: set[Place]) -> list[tuple[Place, str, str]]:
    """Put the large parts of some outcomes into the new store; gives whose they are, their roles and their hashes."""
    with _reading(copy.store) as source:
        with explaining(source.path):
            parts = [part for part in _list_parts(source, copy.info.id) if part[0] in own]
        hashes = iter(dict.fromkeys(blob for _, _, blob in parts))
        while some := list(itertools.islice(hashes, _AT_ONCE)):
            new = [blob for blob in some if not target.rows("SELECT 1 FROM blobs WHERE hash = ?", blob)]
            # All is read before anything is written, so that a fault is told of the store that has it.
            with explaining(source.path):
                blobs = [(blob, _read_blob(source, blob)) for blob in new]
            with target.transaction():
                target.change_many("INSERT INTO blobs (hash, body) VALUES (?, ?)", blobs)
    return parts


def _list_parts(database: Database, run_id: str) -> Iterator[tuple[Place, str, str]]:
    """The large parts of all outcomes of a run."""
    rows = database.rows(
        "SELECT subjects.name, target, metric, round, role, blob FROM parts "
        "JOIN outcomes ON outcomes.number = outcome JOIN subjects ON subjects.number = subject "
        "WHERE run = ? AND planned = 1 ORDER BY outcome, role",
        read_number(database, run_id),
    )
    for row in rows:
        name, target, metric, number, role, blob = check_row(row, str, str, str, int, str, str)
        suite, key = from_plain(tuple[str, str], parse(name, "name"), "name")
        where = from_plain(Target, parse(target, "target"), "target")
        if role not in LIGHT_ROLES:
            yield (suite, key, where, from_plain(Metric, metric, "metric"), number), role, blob


def _read_blob(database: Database, name: str) -> bytes:
    for (body,) in database.rows("SELECT body FROM blobs WHERE hash = ?", name):
        if isinstance(body, bytes):
            unpack(name, body)
            return body
    raise StoreError("It is damaged: costs by function are missing.")


def _write(
    database: Database,
    info: RunInfo,
    plan: Plan,
    outcomes: Iterable[Outcome],
    activities: Iterable[Activity],
    parts: Iterable[tuple[Place, str, str]],
) -> None:
    cases = {(case.suite, case.key): case for case in plan.cases}
    with database.transaction():
        run, subjects = put_run(database, info, plan, None)
        for outcome in outcomes:
            # Tags may be others than those of the first shard.
            case = cases[outcome.order.case.suite, outcome.order.case.key]
            own = dataclasses.replace(outcome, order=dataclasses.replace(outcome.order, case=case))
            put_planned_outcome(database, run, plan, subjects, own)
        for (suite, key, target, metric, number), role, blob in parts:
            database.change(
                "INSERT INTO parts (outcome, role, blob) SELECT number, ?, ? FROM outcomes "
                "WHERE run = ? AND subject = ? AND target = ? AND metric = ? AND round = ?",
                *(role, blob, run, subjects[cases[suite, key]], dump(to_plain(target)), metric.value, number),
            )
        for activity in activities:
            put_activity(database, run, activity)
