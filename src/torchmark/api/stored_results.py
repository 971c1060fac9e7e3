"""Stored results: two sides compared, the functions that changed, histories, and costs by function."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from torchmark.analysis.estimate import list_own_cases
from torchmark.analysis.history import confirm, list_neighbours, trace_histories
from torchmark.analysis.results import choose_rounds, narrow_run
from torchmark.analysis.verdict.stored import (
    CaseId,
    Contrast,
    CountedCase,
    choose_counts,
    compare_runs,
    explain_changes,
    find_unmeasured,
    identify,
    leave_out_incomparable,
)
from torchmark.api.gate import GateOptions, apply_gate, decide_exit_code, format_accept, read_entries
from torchmark.callgrind.profiles import standardise
from torchmark.define.selection import list_known
from torchmark.errors import ExitCode, UsageError
from torchmark.model.costs import INSTRUCTIONS, Tally
from torchmark.model.gate import GateResult
from torchmark.model.history import History
from torchmark.model.plan import Case, Metric, Target
from torchmark.model.run import Run, RunInfo, read_shard
from torchmark.report.text.counts import FunctionRow, FunctionTable
from torchmark.report.text.names import name_case, name_target
from torchmark.report.text.run_summary import SHORT_ID, name_run
from torchmark.report.text.terminal import count, printable
from torchmark.stats.distribution import middle
from torchmark.store.runs import Store, make_unmistakable, open_store

SEPARATOR = ":"


@dataclasses.dataclass(frozen=True)
class StoredSide:
    """One environment of a run."""

    info: RunInfo
    target: Target
    alone: bool
    """Whether the run has no other."""
    is_file: bool = False
    """Whether it was read from a file of results, whose name the run has."""

    @property
    def name(self) -> str:
        """What it is called on the command line, as far as people read it."""
        run = self.info.name or self.info.id[:SHORT_ID]
        return run if self.alone else f"{run}{SEPARATOR}{self.target.name}"

    @property
    def title(self) -> str:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.info.created))
        where = "" if self.alone else f", {name_target(self.target)}"
        if self.is_file:
            return printable(f"{self.info.name}, {when}")
        return printable(f"{self.info.name or 'run'} ({self.info.id[:SHORT_ID]}), {when}{where}")


def name_sides(base: StoredSide, head: StoredSide) -> tuple[str, str]:
    """What both are called where they stand side by side; those of one name, by the beginnings of their ids."""
    if base.name != head.name:
        return base.name, head.name
    return base.info.id[:SHORT_ID], head.info.id[:SHORT_ID]


def find_sides(store: Store, base: str, head: str | None) -> tuple[StoredSide, StoredSide]:
    """Base and head. Without a head, base is a run with two environments, the first of which is base."""
    if head is not None:
        sides = find_side(store, base), find_side(store, head)
        if sides[0] == sides[1]:
            raise UsageError(f"{base} and {head} are the same: there is nothing to compare.")
        return sides
    info = store.find(base)
    targets = _read_targets(store, info)
    if len(targets) != 2:
        raise UsageError(
            f"The run {base} has {count(len(targets), 'environment')}; two would be compared with each other. "
            f"Name another run to compare it with, as in torchmark compare {base} @."
        )
    return StoredSide(info, targets[0], alone=False), StoredSide(info, targets[1], alone=False)


def has_two_targets(store: Store, reference: str) -> bool:
    """Whether this means a whole run with two environments, which can be held against each other."""
    try:
        info = store.find(reference)
    except UsageError:
        return False
    return len(_read_targets(store, info)) == 2


def find_side(store: Store, reference: str) -> StoredSide:
    """`RUN`, or `RUN:ENV`. A run's name may have a colon in it."""
    env = None
    try:
        info = store.find(reference)
    except UsageError:
        run, separator, env = reference.rpartition(SEPARATOR)
        if not separator:
            raise
        info = store.find(run)
    targets = _read_targets(store, info)
    return StoredSide(info, choose_target(targets, env, info.name), alone=len(targets) == 1)


def _read_targets(store: Store, info: RunInfo) -> tuple[Target, ...]:
    return store.load(info.id, names=()).plan.targets


def choose_target(targets: Sequence[Target], env: str | None, run: str, how: str = "{run}:{env}") -> Target:
    """The environment of that name, or the only one there is; `how` is how to name one on the command line."""
    names = [target.name for target in targets]
    if env is not None:
        if env not in names:
            raise UsageError(f"The run {run!r} has no environment {env!r}. {list_known(env, names)}")
        return targets[names.index(env)]
    if len(targets) != 1:
        raise UsageError(
            f"The run {run!r} has {len(targets)} environments: {', '.join(map(repr, names))}. "
            f"Say which one is meant, as in {how.format(run=run, env=names[0])}."
        )
    return targets[0]


def find_own_cases(store: Store, info: RunInfo) -> frozenset[Case] | None:
    """The cases of the shard that a stored run is; None for a whole run."""
    shard = read_shard(info)
    return None if shard is None else frozenset(list_own_cases(store.load(info.id).plan, shard))


# How many cases are loaded at a time: each has thousands of functions, on both sides.
BATCH = 20


def split(keys: Iterable[CaseId]) -> Iterator[frozenset[CaseId]]:
    """Cases, as many at a time as are loaded together."""
    ordered = list(keys)
    for start in range(0, len(ordered), BATCH):
        yield frozenset(ordered[start : start + BATCH])


@dataclasses.dataclass(frozen=True)
class StoredComparison:
    """Two stored results against each other. `contrast` has no judgement on what was refused."""

    base: StoredSide
    head: StoredSide
    contrast: Contrast
    result: GateResult
    forced: bool
    """Whether they are judged although they are not comparable."""
    accept: str | None
    """Options of a command that accepts counts of head; None where they are not in a store."""

    @property
    def is_refused(self) -> bool:
        return bool(self.contrast.obstacles) and not self.forced

    @property
    def exit_code(self) -> int:
        """What was refused for some cases weighs less than a regression of others, and more than what is missing."""
        refused = not self.forced and bool(self.contrast.obstacles or self.contrast.case_obstacles)
        return decide_exit_code(self.result, refused=refused)

    @property
    def names(self) -> tuple[str, str]:
        return name_sides(self.base, self.head)


@dataclasses.dataclass(frozen=True)
class LoadedSides:
    """Base and head, each with those of its cases that are selected."""

    sides: tuple[StoredSide, StoredSide]
    runs: tuple[Run, ...]
    store: Store | None
    """None where they come from files."""
    others: tuple[Case, ...]
    """All cases of both, if none of them is selected."""


@contextlib.contextmanager
def load_sides(store_path: Path, base: str, head: str | None, admits: Callable[[Case], bool]) -> Iterator[LoadedSides]:
    """Two files of results, or two environments of runs in a store, which stays open."""
    if _names_file(base) or (head is not None and _names_file(head)):
        whole = _read_files(base, head)
        first, second = (StoredSide(run.info, run.plan.targets[0], alone=True, is_file=True) for run in whole)
        runs = tuple(narrow_run(run, cases=[*filter(admits, run.plan.cases)]) for run in whole)
        yield LoadedSides((first, second), runs, None, _list_others(runs, whole))
        return
    with open_store(store_path, read_only=True) as store:
        sides = find_sides(store, base, head)
        runs = tuple(store.load(side.info.id, select=admits) for side in sides)
        yield LoadedSides(sides, runs, store, _list_others(runs, (store.load(side.info.id) for side in sides)))


def _names_file(text: str) -> bool:
    return text.endswith(".json") or (os.sep in text and os.path.exists(text))


def _read_files(base: str, head: str | None) -> tuple[Run, Run]:
    if head is None:
        raise UsageError(f"Name a second file to compare {base} with.")
    for one, other in ((base, head), (head, base)):
        if not _names_file(other):
            raise UsageError(f"{one} is a file, and {other!r} is not. Compare two files, or two runs of a store.")
    # It loads what measures statements, which takes a while.
    from torchmark.api.result_files import read_files

    return read_files(base, head)


def _list_others(selected: Sequence[Run], whole: Iterable[Run]) -> tuple[Case, ...]:
    if any(run.plan.cases for run in selected):
        return ()
    return tuple(case for run in whole for case in run.plan.cases)


def compare_stored(
    loaded: LoadedSides,
    gate: GateOptions,
    tell: Callable[[str], None],
    *,
    metrics: tuple[Metric, ...] | None = None,
    force: bool = False,
    store_name: str = "",
) -> StoredComparison:
    """Judge the cases of both sides.

    `tell` hears what the user should know besides; `store_name` is what commands have to say of the store.
    """
    store, sides = loaded.store, loaded.sides
    base, head = sides
    for run, side in zip(loaded.runs, sides, strict=True):
        check_measured(run, metrics, side.name)
    narrowed = zip(loaded.runs, sides, strict=True)
    before, after = (narrow_run(run, targets=[side.target], metrics=metrics) for run, side in narrowed)
    contrast = compare_runs(before, base.target, after, head.target, standardise)
    if not force:
        contrast = leave_out_incomparable(contrast)
    counts, accept = choose_counts(after, head.target), None
    if store is not None:
        contrast, counts = load_functions(store, sides, contrast, after, gate)
        accept = _format_accept(store, head, gate, store_name)
    if contrast.obstacles and not force:
        result = GateResult(exit_code=ExitCode.REFUSED)
    else:
        unmeasured = find_unmeasured(before, base.target, after, head.target)
        result = apply_gate(contrast.judgements, counts, gate, tell, missing=contrast.missing, unmeasured=unmeasured)
    return StoredComparison(base=base, head=head, contrast=contrast, result=result, forced=force, accept=accept)


def check_measured(run: Run, metrics: tuple[Metric, ...] | None, name: str = "this run") -> None:
    """Refuse to look for metrics of which none was measured; None stands for all."""
    there = run.plan.sampling.metrics
    if metrics is not None and not set(metrics) & set(there):
        raise UsageError(f"In {name} only {' and '.join(metric.value for metric in there)} was measured.")


def _format_accept(store: Store, head: StoredSide, gate: GateOptions, store_name: str) -> str:
    options = []
    if store.find("@").id != head.info.id:
        options += ["--run", name_run(make_unmistakable(store, head.info))]
    if not head.alone:
        options += ["--env", shlex.quote(head.target.name)]
    return format_accept(gate, store_name, options)


def load_functions(
    store: Store, sides: tuple[StoredSide, StoredSide], contrast: Contrast, head: Run, gate: GateOptions
) -> tuple[Contrast, dict[CaseId, CountedCase]]:
    """The contrast with explanations, and head's counts: with functions where they are not what the ledger accepts."""
    counts = choose_counts(head, sides[1].target)
    changed = [identify(one.case) for one in contrast.judgements if one.count is not None and one.count.delta]
    accepted = read_entries([one.case for one in contrast.judgements], gate).items()
    there = [(key, entry) for case, entry in accepted if (key := identify(case)) in counts]
    unlike = {key for key, entry in there if counts[key].tally.total != entry.total}
    for batch in split(dict.fromkeys([*changed, *unlike])):
        ours, theirs = (load_counts(store, side, batch) for side in sides)
        before, after = ({key: one.tally for key, one in found.items()} for found in (ours, theirs))
        contrast = explain_changes(contrast, before, after, standardise)
        counts |= {key: counted for key, counted in theirs.items() if key in unlike}
    return contrast, counts


def load_counts(store: Store, side: StoredSide, keys: frozenset[CaseId]) -> dict[CaseId, CountedCase]:
    """With functions."""
    return choose_counts(store.load(side.info.id, profiles=True, names=keys), side.target)


def find_counted(run: Run) -> tuple[Case, ...]:
    """The cases of a run that were counted."""
    counted = {outcome.order.case for outcome in run.outcomes if isinstance(outcome.result, Tally)}
    return tuple(case for case in run.plan.cases if case in counted)


def load_run_functions(store: Store, run: Run, case: Case) -> list[FunctionTable]:
    """The functions of a case, in each environment of a run it was counted in.

    Of several rounds it is the one in the middle, which is what the table shows.
    """
    loaded = store.load(run.info.id, profiles=True, names=[identify(case)])
    alike = {target: _list_counts(loaded, target) for target in run.plan.targets}
    tallies = {target: found[middle([one.total for one in found])] for target, found in alike.items() if found}
    several = len(run.plan.targets) > 1
    found = [
        FunctionTable(case, target, name_case(case) + (f" ({name_target(target)})" if several else ""), tuple(rows))
        for target, tally in tallies.items()
        if (rows := list(_list_functions(tally)))
    ]
    if not found:
        raise UsageError(f"{name_case(case)}: No costs by function were kept.")
    return found


def _list_counts(run: Run, target: Target) -> list[Tally]:
    there = (outcome for outcome in run.outcomes if outcome.order.target == target)
    results = (outcome.result for outcome in choose_rounds(there, run.info.host).outcomes)
    return [result for result in results if isinstance(result, Tally)]


def _list_functions(tally: Tally) -> Iterator[FunctionRow]:
    """Functions of the same name, wherever they were built, are one."""
    profile = tally.profile
    if profile is None:
        return
    column = profile.events.index(INSTRUCTIONS)
    costs: dict[str, tuple[int, int]] = {}
    noisy = {standardise(label) for label in tally.noisy or ()}
    nothing = (0,) * len(profile.events)
    for function in {**profile.exclusive, **profile.inclusive}:
        name = standardise(function.label)
        own, with_callees = costs.get(name, (0, 0))
        own += profile.exclusive.get(function, nothing)[column]
        costs[name] = own, with_callees + profile.inclusive.get(function, nothing)[column]
    for name, (own, with_callees) in costs.items():
        if own or with_callees:
            yield FunctionRow(name, own / tally.number, with_callees / tally.number, name in noisy)


def load_histories(
    store: Store, infos: Sequence[RunInfo], pinned: RunInfo | None, admits: Callable[[Case], bool]
) -> tuple[History, ...]:
    """Histories of the cases that are meant. Other cases are loaded only where they may explain something."""
    runs = [store.load(info.id, select=admits) for info in reversed(infos)]
    anchor = None if pinned is None else store.load(pinned.id, select=admits)
    histories = trace_histories(runs, anchor)
    whole = {run_id: store.load(run_id) for run_id in list_neighbours(histories)}
    return tuple(confirm(history, whole) for history in histories)


def find_interpreters(histories: Sequence[History]) -> frozenset[str]:
    """Those of open changes that are still there."""
    paths = {path for history in histories for shift in history.shifts for path in shift.pythons or ()}
    return frozenset(path for path in paths if os.access(path, os.X_OK))
