"""The two stored results that a comparison names: runs, environments of runs, or JSON files of single measurements."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from torchmark.analysis.verdict.stored import CaseId, Contrast, CountedCase, choose_counts, explain_changes, identify
from torchmark.api.callgrind_stats import CallgrindStats
from torchmark.api.counter import choose_layouts
from torchmark.api.measurement import Measurement
from torchmark.api.statements import make_case
from torchmark.callgrind.profiles import standardise
from torchmark.cli.commands.cmd_import import open_document
from torchmark.cli.gate_options import GateOptions, read_entries
from torchmark.define.selection import LANGUAGES, nearest
from torchmark.errors import StoreError, UsageError
from torchmark.model.case import Case, TimerArgs
from torchmark.model.costs import INSTRUCTIONS, Costs, Function, Profile, Tally
from torchmark.model.outcome import Outcome
from torchmark.model.plan import Metric, Order, Plan, Sampling, Target
from torchmark.model.run import Host, Run, RunInfo
from torchmark.model.task import Language, TaskSpec
from torchmark.model.times import Times
from torchmark.report.text.names import name_target
from torchmark.report.text.run_summary import SHORT_ID
from torchmark.report.text.terminal import count, printable
from torchmark.store.documents import export_run, import_run, parse_document
from torchmark.store.plain import check_kind, check_schema, take
from torchmark.store.runs import Store

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
        """With what tells it from others of its name."""
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
    first, second = (StoredSide(info, target, alone=False) for target in targets)
    return first, second


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
    return store.load(info.id, select=lambda case: False).plan.targets


def choose_target(targets: Sequence[Target], env: str | None, run: str, how: str = "{run}:{env}") -> Target:
    """The environment of that name, or the only one there is; `how` is how to name one on the command line."""
    names = [target.name for target in targets]
    if env is not None:
        if env not in names:
            known = nearest(env, names) or names
            raise UsageError(f"The run {run!r} has no environment {env!r}. There is {', '.join(map(repr, known))}.")
        return targets[names.index(env)]
    if len(targets) != 1:
        raise UsageError(
            f"The run {run!r} has {len(targets)} environments: {', '.join(map(repr, names))}. "
            f"Say which one is meant, as in {how.format(run=run, env=names[0])}."
        )
    return targets[0]


# How many cases are loaded at a time: each has thousands of functions, on both sides.
BATCH = 20


def load_functions(
    store: Store, sides: tuple[StoredSide, StoredSide], contrast: Contrast, head: Run, gate: GateOptions
) -> tuple[Contrast, dict[CaseId, CountedCase]]:
    """The contrast with explanations, and head's counts: with functions where they are not what the ledger accepts."""
    counts = choose_counts(head, sides[1].target)
    changed = [identify(one.case) for one in contrast.judgements if one.count is not None and one.count.delta]
    unlike = set(_find_unlike(contrast, counts, gate))
    for batch in split(dict.fromkeys([*changed, *unlike])):
        ours, theirs = (_load_counts(store, side, batch) for side in sides)
        contrast = explain_changes(contrast, _tallies(ours), _tallies(theirs), standardise)
        counts |= {key: counted for key, counted in theirs.items() if key in unlike}
    return contrast, counts


def _load_counts(store: Store, side: StoredSide, keys: frozenset[CaseId]) -> dict[CaseId, CountedCase]:
    run = store.load(side.info.id, profiles=True, select=lambda case: identify(case) in keys)
    return choose_counts(run, side.target)


def _find_unlike(contrast: Contrast, counts: Mapping[CaseId, CountedCase], gate: GateOptions) -> Iterator[CaseId]:
    """Cases whose count is another than the accepted one."""
    for case, entry in read_entries([one.case for one in contrast.judgements], gate).items():
        key = identify(case)
        if key in counts and counts[key].tally.total != entry.total:
            yield key


def split(keys: Iterable[CaseId]) -> Iterator[frozenset[CaseId]]:
    """Cases, as many at a time as are loaded together."""
    ordered = list(keys)
    for start in range(0, len(ordered), BATCH):
        yield frozenset(ordered[start : start + BATCH])


def _tallies(counts: Mapping[CaseId, CountedCase]) -> dict[CaseId, Tally]:
    return {key: counted.tally for key, counted in counts.items()}


SUFFIX = ".json"
SCHEMA_VERSION = 1
# The schema of a file, what is measured, and the field that has the results.
_KINDS = {"torchmark.time": (Metric.WALL, "measurements"), "torchmark.count": (Metric.COUNT, "counts")}
_WORDS = {Metric.WALL: "times", Metric.COUNT: "counts"}
_TARGET = Target()
# A function as tables of counts name it: its binary stands in brackets at the end.
_LABEL = re.compile(r"(?P<file>[^:]*):(?P<name>.*?)(?: \[(?P<binary>[^\[\]]*)\])?", re.DOTALL)


def names_file(text: str) -> bool:
    """Whether an argument of `torchmark compare` means a file and not a run."""
    return text.endswith(SUFFIX) or (os.sep in text and os.path.exists(text))


def read_sides(base: str, head: str | None) -> tuple[tuple[StoredSide, StoredSide], tuple[Run, Run]]:
    """Both files, which have the same kind of results and at least one statement in common."""
    if head is None:
        raise UsageError(f"Name a second file to compare {base} with.")
    for one, other in ((base, head), (head, base)):
        if not names_file(other):
            raise UsageError(f"{one} is a file, and {other!r} is not. Compare two files, or two runs of a store.")
    if os.path.realpath(base) == os.path.realpath(head):
        raise UsageError(f"{base} and {head} are the same file: there is nothing to compare.")
    runs = _read(base), _read(head)
    words = [_WORDS[run.plan.sampling.metrics[0]] for run in runs]
    if words[0] != words[1]:
        raise UsageError(f"{base} has {words[0]} and {head} has {words[1]}: compare files of one kind.")
    mine, theirs = ({identify(case) for case in run.plan.cases} for run in runs)
    if mine.isdisjoint(theirs):
        raise UsageError(
            f"{base} and {head} have no statement in common, with the same number of threads: the first has "
            f"{_list(runs[0])}, and the second {_list(runs[1])}."
        )
    first, second = (StoredSide(run.info, _TARGET, alone=True, is_file=True) for run in runs)
    return (first, second), runs


def _list(run: Run) -> str:
    names = [repr(case.label[0]) for case in run.plan.cases]
    rest = len(names) - 3
    return ", ".join(names[:3]) + (f" and {count(rest, 'other')}" if rest > 0 else "")


def _read(path: str) -> Run:
    try:
        with open_document(path) as stream:
            data = parse_document(stream)
            when = os.fstat(stream.fileno()).st_mtime
        return _make_run(path, data, when)
    except StoreError as error:
        raise StoreError(f"{path}: {error}") from error
    except OSError as error:
        raise StoreError(f"{path}: It cannot be read: {error.strerror}.") from error


def _make_run(path: str, data: object, when: float) -> Run:
    schema = data.get("schema") if isinstance(data, Mapping) else None
    if not isinstance(schema, str) or schema not in _KINDS:
        raise StoreError(
            f"This is not a file of 'torchmark time --json' or 'torchmark count --json': its schema is {schema!r:.40}."
        )
    check_schema(data, schema, SCHEMA_VERSION)
    metric, field = _KINDS[schema]
    found = take(check_kind(data, "document", dict), field, list)
    if not found:
        raise StoreError("It has no results: no statement was measured.")
    language = _read_language(check_kind(data, "document", dict))
    results = [_read_result(check_kind(one, field, dict), metric, language) for one in found]
    outcomes = _number_rounds(results, metric, when)
    cases = tuple(dict.fromkeys(outcome.order.case for outcome in outcomes))
    _check_cases(cases)
    rounds = 1 + max(outcome.order.round for outcome in outcomes)
    digest = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]
    info = RunInfo(digest, path, when, when, "", Host(""), orders=len(outcomes), outcomes=len(outcomes))
    run = Run(info, Plan(cases, (_TARGET,), Sampling(metrics=(metric,), repeat=rounds)), outcomes)
    # Through the form of an export, whose reader checks every value.
    return import_run(export_run(run))


def _read_language(data: Mapping[str, Any]) -> Language | None:
    """The language of all statements of a file; older files do not say it."""
    name = data.get("language")
    if name is None:
        return None
    if check_kind(name, "language", str) not in LANGUAGES:
        raise StoreError(f"The field 'language' is {name!r:.40}; expected one of {', '.join(LANGUAGES)}.")
    return LANGUAGES[name]


def _read_result(data: Mapping[str, Any], metric: Metric, language: Language | None) -> tuple[Case, Any, Any]:
    if metric is Metric.WALL:
        timed = Measurement.from_dict(data)
        if not timed.raw_times:
            raise StoreError("The field 'raw_times' is empty; expected at least one time.")
        times = Times(timed.number_per_run, tuple(timed.raw_times), timed.overhead_s, timed.optimised_away)
        return _make_case(timed.task_spec, language), times, None
    counted = CallgrindStats.from_dict(data)
    return _make_case(counted.task_spec, language), _make_tally(counted), counted.environment


def _make_case(task: TaskSpec, language: Language | None) -> Case:
    language = language or _guess_language(task)
    return make_case(TimerArgs(task.stmt, task.setup, task.global_setup, task.num_threads, language))


def _guess_language(task: TaskSpec) -> Language:
    """For files that do not say it. A statement of C++ ends with a semicolon, and Python has no global setup."""
    ends = task.stmt.rstrip().endswith(";") or task.setup.rstrip().endswith(";")
    return Language.CPP if task.global_setup or ends else Language.PYTHON


def _make_tally(counted: CallgrindStats) -> Tally:
    if counted.allocations is None or counted.tensor_allocations is None:
        raise StoreError("The fields 'allocations' and 'tensor_allocations' are null; expected whole numbers.")
    events = counted.events or ((INSTRUCTIONS, counted.counts()),)
    totals = counted.layouts or (dict(events).get(INSTRUCTIONS, counted.counts()),)
    baseline = counted.baseline_exclusive_stats
    return Tally(
        counted.number_per_run,
        choose_layouts(len(totals)),
        totals,
        events,
        counted.allocations,
        counted.tensor_allocations,
        baseline.sum() if len(baseline) else None,
        optimised_away=counted.optimised_away,
        profile=_make_profile(counted),
    )


def _make_profile(counted: CallgrindStats) -> Profile:
    """Costs by function. Who called whom is not in such files, and is not asked for when two are compared."""
    costs: Counter[Function] = Counter()
    for entry in counted.stmt_exclusive_stats:
        parts = _LABEL.fullmatch(entry.function)
        named = Function(parts["file"], parts["name"], parts["binary"] or "") if parts else Function("", entry.function)
        costs[named] += entry.count
    exclusive: dict[Function, Costs] = {function: (cost,) for function, cost in costs.items()}
    return Profile((INSTRUCTIONS,), exclusive, exclusive, {})


def _number_rounds(results: Sequence[tuple[Case, Any, Any]], metric: Metric, when: float) -> tuple[Outcome, ...]:
    """Outcomes of one round, or of several for a statement that was measured more than once."""
    seen: Counter[Case] = Counter()
    outcomes = []
    for case, result, environment in results:
        outcomes.append(Outcome(Order(case, _TARGET, metric, seen[case]), result, when, when, environment))
        seen[case] += 1
    return tuple(outcomes)


def _check_cases(cases: Sequence[Case]) -> None:
    for name, times in Counter(map(identify, cases)).items():
        if times > 1:
            stmt = next(case.label[0] for case in cases if identify(case) == name)
            raise StoreError(f"It has the statement {stmt!r:.80} more than once, with different setups.")
