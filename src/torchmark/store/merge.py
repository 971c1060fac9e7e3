"""Merging several stores into a new one, which takes its name when it is complete.

Which runs are the same run, and which of their outcomes are kept, is decided by the functions in the second half, which
read and write nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from torchmark.errors import StoreError, UsageError
from torchmark.files import name_draft, put_in_place
from torchmark.model.costs import Tally
from torchmark.model.outcome import Failure, Outcome
from torchmark.model.plain import to_plain
from torchmark.model.plan import Case, Metric, Node, Order, Plan, Target
from torchmark.model.run import MERGED, SHARD, Run, RunInfo, Shard, ShardPart, read_parts, write_parts
from torchmark.store import rows
from torchmark.store.database import Database, check_row, clear_beside, explaining, remove_draft
from torchmark.store.documents import LIGHT_ROLES, unpack
from torchmark.store.plain import dump
from torchmark.store.runs import refuse_running
from torchmark.store.store_file import open_database

# To wait for others, who should not be there.
_BUSY_MS = 1000
# Large parts that are read before they are written.
_AT_ONCE = 64
# Options that do not tell what was asked for: which part of it a run is, and where its files lie.
_APART = (SHARD, MERGED, "folder")
_ID_LENGTH = 32


@contextlib.contextmanager
def new_store(path: Path, *, force: bool) -> Iterator[Database]:
    """A store to fill. It gets its name at the end, and if anything is raised before, nothing has happened.

    With `force` another store of that name is replaced, unless a process uses it.
    """
    path = Path(os.path.realpath(path))
    _check_free(path, force=force)
    draft = name_draft(path)
    try:
        # What is said to be saved is on the disk, so closing it is enough.
        with contextlib.closing(open_database(draft, create=True, read_only=False)) as database:
            yield database
        _check_free(path, force=force)
        _put_in_place(draft, path)
    except StoreError as error:
        # Of the file that is to be, and not of the one that will be gone.
        raise StoreError(str(error).replace(str(draft), str(path))) from error
    finally:
        remove_draft(draft)


def _check_free(path: Path, *, force: bool) -> None:
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
    for other in others:
        if os.path.realpath(path) == os.path.realpath(other) or (path.exists() and path.samefile(other)):
            raise UsageError(f"{path} is one of the stores that are read. Choose another name.")


def _put_in_place(draft: Path, path: Path) -> None:
    if path.exists() and path.stat().st_size:
        _retire(path)
    try:
        clear_beside(path)
        put_in_place(draft, path)
    except OSError as error:
        raise StoreError(f"{path}: It cannot be written: {error.strerror}.") from error


def _retire(path: Path) -> None:
    """See that nobody uses a store, and that nothing of it is kept beside it."""
    with contextlib.closing(open_database(path, create=False, read_only=False)) as database:
        try:
            database.retire(_BUSY_MS)
        except StoreError as error:
            raise UsageError(f"{path} is in use. Wait until nobody uses it, or choose another name.") from error


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
    groups = _bring_together([copy for store in stores for copy in _list_copies(store)])
    with new_store(output, force=force) as target:
        # The oldest first, as a store gets runs that it measures.
        merged = [_unite(target, group) for group in reversed(groups)]
    return tuple(reversed(merged))


def _reading(path: Path) -> contextlib.closing[Database]:
    return contextlib.closing(open_database(path, create=False, read_only=True))


def _list_copies(store: Path) -> list[_Copy]:
    with _reading(store) as database, database.snapshot():
        infos = rows.read_infos(database)
        for info in infos:
            refuse_running(database, info.id)
        return [_Copy(store, info, rows.read_plan(database, info.id)) for info in infos]


def _load(copy: _Copy) -> Run:
    with _reading(copy.store) as database, database.snapshot():
        return rows.read_run(database, copy.info.id, profiles=False, select=None)


def _unite(target: Database, group: _RunGroup) -> Merged:
    copies, runs = group.copies, [_load(copy) for copy in group.copies]
    kept, repeated, differing = _choose(_locate(copies, runs))
    # The shortest limit: whoever gives a run more time means all cases that timed out.
    limit = min(run.plan.sampling.timeout_s for run in runs)
    plan = dataclasses.replace(runs[0].plan, sampling=dataclasses.replace(runs[0].plan.sampling, timeout_s=limit))
    # What several have measured in no order of time is listed by the plan.
    listed = map(_identify, plan.orders) if len(copies) > 1 else kept
    places = [place for place in listed if place in kept]
    outcomes = [kept[place][1] for place in places]
    info = group.describe(outcomes, complete=len(outcomes) == len(plan.orders))
    parts: list[_Part] = []
    for number, copy in enumerate(copies):
        parts += _hand_on_parts(target, copy, {place for place in places if kept[place][0] == number})
    activities = dict.fromkeys(activity for run in runs for activity in run.activities)
    _write(target, Run(info, plan, tuple(outcomes), tuple(sorted(activities, key=lambda one: one.began))), parts)
    return Merged(
        info=rows.read_info(target, info.id),
        sources=tuple(copy.info for copy in copies),
        parts=group.parts,
        repeated=repeated,
        differing=differing,
        mixtures=_find_mixtures(outcomes) if len(copies) > 1 else (),
    )


# The place of an outcome, and the role and the hash of a large part of it.
_Part = tuple["_Place", str, str]


def _hand_on_parts(target: Database, copy: _Copy, own: set[_Place]) -> list[_Part]:
    """Put the large parts of some outcomes into the new store; gives what they are."""
    with _reading(copy.store) as source:
        with explaining(source.path):
            parts = [part for part in _list_parts(source, copy.info.id) if part[0] in own]
        hashes = iter(dict.fromkeys(blob for _, _, blob in parts))
        while some := list(itertools.islice(hashes, _AT_ONCE)):
            new = [blob for blob in some if not target.rows("SELECT 1 FROM blobs WHERE hash = ?", blob)]
            # All is read and checked before anything is written, so that a fault is told of the store that has it.
            with explaining(source.path):
                blobs = [(blob, rows.read_blob(source, blob)) for blob in new]
                for blob in blobs:
                    unpack(*blob)
            with target.transaction():
                target.change_many("INSERT INTO blobs (hash, body) VALUES (?, ?)", blobs)
    return parts


def _list_parts(database: Database, run_id: str) -> Iterator[_Part]:
    found = database.rows(
        "SELECT subjects.name, target, metric, round, role, blob FROM parts "
        "JOIN outcomes ON outcomes.number = outcome JOIN subjects ON subjects.number = subject "
        "WHERE run = ? AND planned = 1 ORDER BY outcome, role",
        rows.read_number(database, run_id),
    )
    for row in found:
        name, target, metric, number, role, blob = check_row(row, str, str, str, int, str, str)
        if role not in LIGHT_ROLES:
            yield (name, target, metric, number), role, blob


def _write(database: Database, merged: Run, parts: Iterable[_Part]) -> None:
    cases = {(case.suite, case.key): case for case in merged.plan.cases}
    with database.transaction():
        run, subjects = rows.put_run(database, merged.info, merged.plan, None)
        for outcome in merged.outcomes:
            # Tags may be others than those of the first shard.
            case = cases[outcome.order.case.suite, outcome.order.case.key]
            own = dataclasses.replace(outcome, order=dataclasses.replace(outcome.order, case=case))
            rows.put_planned_outcome(database, run, merged.plan, subjects, own)
        for place, role, blob in parts:
            database.change(
                "INSERT INTO parts (outcome, role, blob) SELECT outcomes.number, ?, ? FROM outcomes "
                "JOIN subjects ON subjects.number = subject "
                "WHERE run = ? AND subjects.name = ? AND target = ? AND metric = ? AND round = ?",
                *(role, blob, run, *place),
            )
        for activity in merged.activities:
            rows.put_activity(database, run, activity)


@dataclasses.dataclass(frozen=True)
class _Copy:
    """A run as one of the stores has it."""

    store: Path
    info: RunInfo
    plan: Plan

    @property
    def parts(self) -> tuple[ShardPart, ...]:
        """The shards in it, if it is not whole."""
        return read_parts(self.info)

    @property
    def options(self) -> dict[str, tuple[str, ...]]:
        """Those that all shards of a run have in common."""
        return {name: values for name, values in self.info.options if name not in _APART}

    @property
    def common_plan(self) -> Plan:
        """The plan without what shards of a run may differ in: tags, and the limit of time."""
        cases = tuple(dataclasses.replace(case, tags=()) for case in self.plan.cases)
        return dataclasses.replace(
            self.plan, cases=cases, sampling=dataclasses.replace(self.plan.sampling, timeout_s=0.0)
        )

    @property
    def request(self) -> tuple[object, ...]:
        """All that shards of a run have in common."""
        return self.info.name, self.common_plan, self.info.seed, tuple(sorted(self.options.items()))


@dataclasses.dataclass(frozen=True)
class _RunGroup:
    """What becomes one run: copies of it, or of its shards, the lowest shard first."""

    copies: tuple[_Copy, ...]

    @property
    def parts(self) -> tuple[ShardPart, ...]:
        """All shards that are there; none if the run is whole."""
        return tuple(sorted({part for copy in self.copies for part in copy.parts}))

    @property
    def id(self) -> str:
        """The same for the same shards, in whatever steps they were put together."""
        ids = sorted({part.run_id for part in self.parts} or {copy.info.id for copy in self.copies})
        return ids[0] if len(ids) == 1 else hashlib.sha256(" ".join(ids).encode()).hexdigest()[:_ID_LENGTH]

    def describe(self, outcomes: Sequence[Outcome], *, complete: bool) -> RunInfo:
        first, parts = self.copies[0].info, self.parts
        if len(self.copies) == 1 and not (complete and parts):
            return first
        options = tuple(option for option in first.options if option[0] not in (SHARD, MERGED))
        if not complete:
            options = (*options, write_parts(parts)) if len(parts) > 1 else first.options
        known = [copy.info.finished for copy in self.copies if copy.info.id == self.id]
        ends = [moment for moment in known if moment is not None] or [outcome.ended for outcome in outcomes]
        return dataclasses.replace(
            first,
            id=self.id,
            created=min(copy.info.created for copy in self.copies),
            finished=max(ends, default=first.created) if complete else None,
            options=options,
            # A seal is for one run: that of a shard says nothing of the whole.
            seal=first.seal if self.id == first.id else "",
        )


def _bring_together(copies: Sequence[_Copy]) -> tuple[_RunGroup, ...]:
    """All runs, those together that are one: the same run in several stores, and shards of one run."""
    by_id: dict[str, list[_Copy]] = {}
    for copy in copies:
        by_id.setdefault(copy.info.id, []).append(copy)
    by_request: dict[object, list[_Copy]] = {}
    for run_id, same in by_id.items():
        is_whole = not any(copy.parts for copy in same)
        by_request.setdefault(run_id if is_whole else same[0].request, []).extend(same)
    by_id = {}
    for found in by_request.values():
        # What these shards are put together to may be there already.
        by_id.setdefault(_RunGroup(tuple(found)).id, []).extend(found)
    groups = tuple(_RunGroup(tuple(sorted(found, key=_rank))) for found in by_id.values())
    for group in groups:
        for copy in group.copies:
            if copy.common_plan != group.copies[0].common_plan:
                raise _explain(group.copies[0], copy)
        _refuse_repeated(group)
    _refuse_lookalikes([group for group in groups if group.parts])
    return groups


def _rank(copy: _Copy) -> tuple[Shard, float, str]:
    return min((part.shard for part in copy.parts), default=Shard(0, 0)), copy.info.created, copy.info.id


def _refuse_repeated(group: _RunGroup) -> None:
    """Refuse two runs of one shard in one store: nobody can tell which of them belongs to the other shards."""
    seen: dict[tuple[Path, Shard], ShardPart] = {}
    for copy in group.copies:
        for part in copy.parts:
            other = seen.setdefault((copy.store, part.shard), part)
            if other != part:
                raise UsageError(
                    f"{copy.store}: Shard {part.shard} of {copy.info.name!r} is there twice ({other.run_id[:8]} and "
                    f"{part.run_id[:8]}), and which one belongs to the other shards cannot be told. Remove one with "
                    "torchmark rm. Runs that have names of their own, by --name, are not mistaken for each other."
                )


def _refuse_lookalikes(groups: Sequence[_RunGroup]) -> None:
    """Refuse shards that seem to be of one run, and are not. Where no shard is missing, there are simply two runs."""
    seen: dict[tuple[str, int], _RunGroup] = {}
    for group in groups:
        for of in {part.shard.of for part in group.parts}:
            other = seen.setdefault((group.copies[0].info.name, of), group)
            if other is not group and not (_has_all(group, of) and _has_all(other, of)):
                raise _explain(other.copies[0], group.copies[0])


def _has_all(group: _RunGroup, of: int) -> bool:
    return len({part.shard for part in group.parts if part.shard.of == of}) == of


def _explain(one: _Copy, other: _Copy) -> UsageError:
    difference = _find_difference(one.common_plan, other.common_plan) or _find_other_option(one, other)
    if one.info.id == other.info.id:
        return UsageError(f"The run {one.info.id} is not the same in {one.store} and {other.store}: {difference}.")
    return UsageError(
        f"The shards of {one.info.name!r} in {one.store} and {other.store} are not of the same run: {difference}. "
        "Measure all from the same files with the same options, or give runs that differ names of their own (--name)."
    )


def _find_difference(one: Plan, other: Plan) -> str | None:
    for field in dataclasses.fields(one.sampling):
        values = [getattr(plan.sampling, field.name) for plan in (one, other)]
        if values[0] != values[1]:
            return f"{field.name} of the sampling is {values[0]} in one and {values[1]} in the other"
    if one.targets != other.targets:
        return "they measure in other interpreters"
    cases, others = ({(case.suite, case.key): case for case in plan.cases} for plan in (one, other))
    for name in (*cases, *others):
        if name not in cases or name not in others:
            return f"only one has the case {_name_case(cases.get(name) or others[name])}"
        if cases[name] != others[name]:
            return f"the case {_name_case(cases[name])} is defined otherwise"
    return "their cases come in another order" if list(cases) != list(others) else None


def _find_other_option(one: _Copy, other: _Copy) -> str:
    for name in sorted({*one.options, *other.options}):
        texts = [" ".join(copy.options.get(name, ())) or "not given" for copy in (one, other)]
        if texts[0] != texts[1]:
            return f"the option {name!r} is {texts[0]!r} in one and {texts[1]!r} in the other"
    return "their hash seeds differ"


def _name_case(case: Case) -> str:
    threads = [f"{case.args.num_threads} threads"] if case.args.num_threads > 1 else []
    words = [*filter(None, case.autolabels.as_dict.values()), *threads]
    return f"{' / '.join(case.label)!r} ({', '.join(words)}) of {case.suite!r}"


# The names of a case, a target and a metric as the columns of a store have them, and a round. Tags may be others.
_Place = tuple[str, str, str, int]


def _identify(order: Order) -> _Place:
    case, target = order.case, dump(to_plain(order.target))
    return dump([case.suite, case.key]), target, order.metric.value, order.round


def _choose(found: Iterable[Sequence[Outcome]]) -> tuple[dict[_Place, tuple[int, Outcome]], int, int]:
    """One outcome an order, and which copy has it: a result rather than a failure, and of two alike the earlier one.

    Also how many orders were carried out more than once, and of how many of these the counts differed.
    """
    kept: dict[_Place, tuple[int, Outcome]] = {}
    repeated: set[_Place] = set()
    differing: set[_Place] = set()
    for number, outcomes in enumerate(found):
        for outcome in outcomes:
            place = _identify(outcome.order)
            _, other = kept.setdefault(place, (number, outcome))
            # One outcome, in two copies of a run.
            if (outcome.began, outcome.ended, outcome.result) == (other.began, other.ended, other.result):
                continue
            repeated.add(place)
            if _have_other_counts(outcome, other):
                differing.add(place)
            if _rank_outcome(outcome) < _rank_outcome(other):
                kept[place] = number, outcome
    return kept, len(repeated), len(differing)


def _rank_outcome(outcome: Outcome) -> tuple[bool, float]:
    return isinstance(outcome.result, Failure), outcome.ended


def _have_other_counts(one: Outcome, other: Outcome) -> bool:
    counts = [
        (result.number, result.totals, result.allocations, result.tensor_allocations)
        for result in (one.result, other.result)
        if isinstance(result, Tally)
    ]
    return len(counts) == 2 and counts[0] != counts[1]


def _locate(copies: Sequence[_Copy], runs: Sequence[Run]) -> Iterator[list[Outcome]]:
    """The outcomes of each copy with the node that they come from, unless one machine measured all.

    Those that know theirs keep it.
    """
    hosts = {copy.info.host for copy in copies}
    for copy, run in zip(copies, runs, strict=True):
        shards = [str(part.shard) for part in copy.parts] if len(hosts) > 1 else []
        name = f"{'shards' if len(shards) > 1 else 'shard'} {', '.join(shards)}"
        node = Node(name, copy.info.host.cpu_model) if shards else None
        yield [dataclasses.replace(one, node=one.node or node) for one in run.outcomes]


# Fields of an environment that change numbers, by what they are called.
_MIXED = {
    "torch": "torch_version",
    "Python": "python_version",
    "Valgrind": "valgrind",
    "CPU capability": "cpu_capability",
}


def _find_mixtures(outcomes: Iterable[Outcome]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What differs within one target and metric although it changes numbers: what it is, and its values."""
    found: dict[tuple[str, Target, Metric], set[str]] = {}
    for outcome in outcomes:
        for what, field in _MIXED.items():
            value = getattr(outcome.environment, field, None)
            if value is not None:
                found.setdefault((what, outcome.order.target, outcome.order.metric), set()).add(value)
    return tuple(sorted({(what, tuple(sorted(values))) for (what, _, _), values in found.items() if len(values) > 1}))
