"""Results in JSON files of `torchmark time` and `torchmark count`, as runs that can be compared."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torchmark.analysis.verdict.stored import identify
from torchmark.api.callgrind_stats import CallgrindStats
from torchmark.api.measurement import Measurement
from torchmark.api.statements import make_task_case
from torchmark.define.selection import LANGUAGES
from torchmark.errors import StoreError, UsageError
from torchmark.files import open_document
from torchmark.model.costs import INSTRUCTIONS, Costs, Function, Profile, Tally
from torchmark.model.outcome import Outcome
from torchmark.model.plan import Case, Metric, Order, Plan, Sampling, Target
from torchmark.model.run import Host, Run, RunInfo
from torchmark.model.task import Language, TaskSpec, Times
from torchmark.report.text.terminal import count
from torchmark.runner.spec import choose_layouts
from torchmark.store.documents import export_run, import_run, parse_document
from torchmark.store.plain import check_schema, from_plain, take

# The kind of a file, what is measured, and the field that has the results.
_KINDS = {"time": (Metric.WALL, "measurements"), "count": (Metric.COUNT, "counts")}
_WORDS = {Metric.WALL: "times", Metric.COUNT: "counts"}
_TARGET = Target()
# A function as tables of counts name it: its binary stands in brackets at the end.
_LABEL = re.compile(r"(?P<file>[^:]*):(?P<name>.*?)(?: \[(?P<binary>[^\[\]]*)\])?", re.DOTALL)


def read_files(base: str, head: str) -> tuple[Run, Run]:
    """Both files, which have the same kind of results and at least one statement in common."""
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
    return runs


def _list(run: Run) -> str:
    names = [repr(case.label[0]) for case in run.plan.cases]
    return ", ".join(names[:3]) + (f" and {count(len(names) - 3, 'other')}" if names[3:] else "")


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
    kind = schema.removeprefix("torchmark.") if isinstance(schema, str) else ""
    if kind not in _KINDS:
        raise StoreError(
            f"This is not a file of 'torchmark time --json' or 'torchmark count --json': its schema is {schema!r:.40}."
        )
    check_schema(data, kind)
    metric, field = _KINDS[kind]
    document = from_plain(dict, data, "document")
    found = take(document, field, list)
    if not found:
        raise StoreError("It has no results: no statement was measured.")
    language = _read_language(document)
    results = [_read_result(from_plain(dict, one, field), metric, language) for one in found]
    outcomes = tuple(_number_rounds(results, metric, when))
    cases = tuple(dict.fromkeys(outcome.order.case for outcome in outcomes))
    for name, times in Counter(map(identify, cases)).items():
        if times > 1:
            stmt = next(case.label[0] for case in cases if identify(case) == name)
            raise StoreError(f"It has the statement {stmt!r:.80} more than once, with different setups.")
    rounds = 1 + max(outcome.order.round for outcome in outcomes)
    info = RunInfo(
        id=hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32],
        name=path,
        created=when,
        finished=when,
        torchmark="",
        host=Host(""),
        orders=len(outcomes),
        outcomes=len(outcomes),
    )
    run = Run(info, Plan(cases, (_TARGET,), Sampling(metrics=(metric,), repeat=rounds)), outcomes)
    # Through the form of an export, whose reader checks every value.
    return import_run(export_run(run))


def _read_language(data: Mapping[str, Any]) -> Language | None:
    """The language of all statements of a file; older files do not say it."""
    name = data.get("language")
    if name is None:
        return None
    if from_plain(str, name, "language") not in LANGUAGES:
        raise StoreError(f"The field 'language' is {name!r:.40}; expected one of {', '.join(LANGUAGES)}.")
    return LANGUAGES[name]


def _read_result(data: Mapping[str, Any], metric: Metric, language: Language | None) -> tuple[Case, Any, Any]:
    if metric is Metric.WALL:
        timed = Measurement.from_dict(data)
        if not timed.raw_times:
            raise StoreError("The field 'raw_times' is empty; expected at least one time.")
        times = Times(timed.number_per_run, tuple(timed.raw_times), timed.overhead_s, timed.optimised_away)
        return make_task_case(timed.task_spec, language or _guess_language(timed.task_spec)), times, None
    counted = CallgrindStats.from_dict(data)
    case = make_task_case(counted.task_spec, language or _guess_language(counted.task_spec))
    return case, _make_tally(counted), counted.environment


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
        number=counted.number_per_run,
        seeds=choose_layouts(len(totals)),
        totals=totals,
        events=events,
        allocations=counted.allocations,
        tensor_allocations=counted.tensor_allocations,
        baseline=baseline.sum() if len(baseline) else None,
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


def _number_rounds(results: Sequence[tuple[Case, Any, Any]], metric: Metric, when: float) -> Iterator[Outcome]:
    """Outcomes of one round, or of several for a statement that was measured more than once."""
    seen: Counter[Case] = Counter()
    for case, result, environment in results:
        order = Order(case, _TARGET, metric, seen[case])
        yield Outcome(order=order, result=result, began=when, ended=when, environment=environment)
        seen[case] += 1
