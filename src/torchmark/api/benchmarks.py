"""`run_benchmarks` and `materialize`: what a definition or a suite describes, measured or as arguments of a `Timer`."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import os
import re
import textwrap
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from torchmark.api.callgrind_stats import CallgrindStats, make_stats
from torchmark.api.measurement import Measurement, make_measurement
from torchmark.api.resume import find_resumable
from torchmark.api.runs import DICTIONARY, NAMES, RunRequest, RunTask, check_name
from torchmark.define.discovery import discover
from torchmark.define.expand import expand, flatten
from torchmark.define.selection import CaseOptions, Selection, parse
from torchmark.define.selection import select as select_cases
from torchmark.errors import DefinitionError, StoreError, UsageError
from torchmark.model.outcome import CompileCosts, Failure, Outcome
from torchmark.model.plan import SUITE_LAYOUTS, Case, Metric, Order, Target
from torchmark.model.run import SHARD
from torchmark.model.task import TaskSpec, Times, name_value
from torchmark.processes import StopRequest
from torchmark.report.caveats import describe_fact
from torchmark.report.html.fragments import NotebookPanel, render_panel
from torchmark.report.text.failures import describe_failure, describe_fault, summarise_failure
from torchmark.report.text.run_table import describe_compile_costs, list_compile_costs
from torchmark.report.text.terminal import DEFAULT_WIDTH, wrap
from torchmark.report.text.units import format_time
from torchmark.runner.local import LocalBackend
from torchmark.runner.machine import choose_cores
from torchmark.runner.spec import choose_layouts
from torchmark.runner.worker import DEFAULT_TIMEOUT_S
from torchmark.store.runs import open_store


@dataclasses.dataclass(frozen=True, repr=False)
class BenchmarkResult:
    """What became of one case: what was asked for and could be measured, and why the rest could not."""

    case: Case
    measurement: Measurement | None = None
    stats: CallgrindStats | None = None
    compile_costs: CompileCosts | None = None
    """For cases that use `torch.compile`: what compiling and calling cost, apart from the work itself."""
    failures: tuple[Failure, ...] = ()

    unchecked: str | None = None
    """Why its results could not be compared with those of the other variants, although they should be."""

    def __str__(self) -> str:
        return "\n".join([self._name(), *self._lines()])

    def __repr__(self) -> str:
        came = []
        if self.measurement is not None and self.measurement.raw_times:
            came.append(format_time(self.measurement.median))
        came += [] if self.stats is None else [self._instructions(self.stats)]
        came += [f"failed: {summarise_failure(failure)}" for failure in self.failures]
        return name_value(self, f"{self._name()}: {', '.join(came) or 'not measured'}")

    def _repr_html_(self) -> str:
        parts, spec = [], None if self.measurement is not None else _describe(self.case)
        if self.measurement is not None:
            parts.append(self.measurement._repr_html_())
        if self.stats is not None:
            parts.append(render_panel(self.stats._render_panel(spec)))
            spec = None
        rest = NotebookPanel(
            title=spec.title if spec else "",
            setup=spec.setup_str() if spec else "",
            facts=() if self.compile_costs is None else list_compile_costs(self.compile_costs),
            notes=() if self.unchecked is None else (f"It was not compared with the other variants. {self.unchecked}",),
            failures=tuple(describe_failure(failure) for failure in self.failures),
        )
        return "".join([*parts, render_panel(rest)] if rest != NotebookPanel() else parts)

    def _name(self) -> str:
        labels = [text for text in self.case.autolabels.as_dict.values() if text]
        threads = f", {self.case.args.num_threads} threads" if self.case.args.num_threads > 1 else ""
        return f"{' / '.join(self.case.label)}: {', '.join(labels)}{threads}"

    @staticmethod
    def _instructions(stats: CallgrindStats) -> str:
        return f"{stats.counts() / stats.number_per_run:,.0f} instructions"

    def _lines(self) -> Iterator[str]:
        if self.compile_costs is not None:
            yield describe_compile_costs(self.compile_costs)
        elif self.measurement is not None:
            yield f"  {format_time(self.measurement.median)}"
        if self.stats is not None:
            yield f"  {self._instructions(self.stats)}"
        for result in (self.measurement, self.stats):
            for caveat in () if result is None else result.caveats:
                yield from wrap(f"  NOTE: {describe_fact(caveat)}", DEFAULT_WIDTH, 8)
        if self.unchecked is not None:
            yield f"  NOTE: It was not compared with the other variants. {self.unchecked}"
        for failure in self.failures:
            yield textwrap.indent(describe_failure(failure), "  ")


# What the command calls by its options is a parameter here.
_PARAMETERS = {
    "--store": "`store`",
    "--name": "`name`",
    "--resume": "`resume`",
    "--metric": "`time` or `count`",
    "--min-run-time": "`min_run_time`",
    "--layouts": "`layouts`",
    "leave other options out": "give the same arguments",
}


@contextlib.contextmanager
def _naming_parameters() -> Iterator[None]:
    """Within this, errors that the command shares name parameters. What they propose to run in a shell stays."""
    try:
        yield
    except (StoreError, UsageError) as error:
        error.args = ("\n".join(map(_name_parameters, str(error).split("\n"))),)
        raise


def _name_parameters(line: str) -> str:
    text, *command = re.split(r"(?=torchmark run --)", line)
    return "".join([re.sub("|".join(_PARAMETERS), lambda found: _PARAMETERS[found[0]], text), *command])


# A program says all of what a command may leave open.
_GIVEN = frozenset((NAMES, "k", "metrics", "repeat", "min_run_time", "layouts", "timeout", SHARD, "python"))


def run_benchmarks(
    benchmarks: Mapping[Any, Any] | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    select: str = "",
    *,
    time: bool = True,
    count: bool = False,
    min_run_time: float = 0.2,
    layouts: int = SUITE_LAYOUTS,
    check: bool | None = None,
    python: str | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    store: str | os.PathLike[str] | None = None,
    name: str | None = None,
    resume: bool = False,
    cores: str | None = None,
) -> Iterator[BenchmarkResult]:
    """Measure every case, and yield results in the order of the cases; a case that fails costs the others nothing.

    What is timed has the machine for itself; counting shares its cores, and goes on while you handle a result.

    benchmarks: a definition, or names of suites ("standard", "modern") and paths of files that define `BENCHMARKS`.
    select: which cases, as in `torchmark list -k`: `"linear and not cpp"`.
    time, count: what to measure; counting needs Valgrind.
    check: whether variants of a group must compute the same where the group does not say; False switches it off for
        all, None leaves it to each suite.
    python: another interpreter, with its own torch. It sees none of your modules.
    timeout_s: for each process that is started.
    store: a file that keeps each outcome as soon as it exists, in a run for `torchmark show` and `torchmark compare`.
    name: what to call that run; with `resume`, the run that is continued.
    resume: continue the newest run of the store that asked for the same, or the one that is named. What is done is
        not measured again. Of a dictionary all cases have to be the same; a file may have changed.
    cores: how many cores to use, or which, such as "0,2-3"; None uses all.

    >>> from torchmark import GroupedStmts
    >>> for result in run_benchmarks({"add": GroupedStmts("torch.ones(4) + 1")}, min_run_time=0.01):
    ...     print(result.case.label, result.measurement.median > 0)
    ('add',) True
    """
    for parameter, flag in (("time", time), ("count", count), ("check", check), ("resume", resume)):
        if flag not in (True, False) and not (parameter == "check" and flag is None):
            raise UsageError(f"`{parameter}` is True or False, not {flag!r}.")
    if not time and not count:
        raise UsageError("There is nothing to do: ask for `time`, for `count`, or for both.")
    for parameter, seconds in (("min_run_time", min_run_time), ("timeout_s", timeout_s)):
        if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
            raise UsageError(f"`{parameter}` is a number of seconds, not {seconds!r}.")
    if store is None and (resume or name is not None):
        raise UsageError("`name` and `resume` need `store`, the file that keeps the run.")
    if not resume:
        check_name(name)
    choose_layouts(layouts)
    cases = choose_cases(benchmarks, select, check)
    usable = choose_cores(cores)
    is_dictionary = isinstance(benchmarks, Mapping)
    checking = () if check is None else (f"check={check}",)
    request = RunRequest(
        names=() if is_dictionary else tuple(_list_names(benchmarks)),
        chosen=CaseOptions(k=(select,) if select.strip() else ()),
        metrics=tuple(metric for metric, asked in ((Metric.WALL, time), (Metric.COUNT, count)) if asked),
        targets=(Target(python=python),),
        min_run_time=min_run_time,
        layouts=layouts,
        timeout=timeout_s,
        program=(DICTIONARY, *checking) if is_dictionary else checking,
    )
    path, earlier = None if store is None else Path(store), None
    if path is not None:
        # What is wrong with the store is told now, too.
        with _naming_parameters(), open_store(path, create=not resume) as opened:
            if resume:
                earlier, request, _ = find_resumable(opened, request, _GIVEN, name, cases)
    name = name or (DICTIONARY if is_dictionary else None)
    task = RunTask(None, request.make_plan(cases), request, resumed=earlier, name=name)
    return _run(task, usable, path)


def choose_cases(benchmarks: object, select: str, check: bool | None) -> list[Case]:
    """The cases that are meant. A DefinitionError tells all faults together."""
    if isinstance(benchmarks, Mapping):
        cases = expand(flatten(benchmarks), check=bool(check))
    else:
        found = discover(_list_names(benchmarks), check=check)
        if found.faults:
            raise DefinitionError("\n\n".join(describe_fault(fault) for fault in found.faults))
        cases = found.cases
    if check is False:
        cases = tuple(dataclasses.replace(case, check=None) for case in cases)
    if not isinstance(select, str):
        raise UsageError(f'`select` is a text such as "linear and not cpp", not {select!r}.')
    chosen = list(select_cases(cases, Selection(parse(select)) if select.strip() else Selection()))
    if not chosen:
        raise UsageError(f"None of {len(cases)} cases is selected by {select!r}." if cases else "There are no cases.")
    return chosen


def _list_names(benchmarks: object) -> list[str]:
    names = [benchmarks] if isinstance(benchmarks, (str, os.PathLike)) else benchmarks
    if not isinstance(names, Sequence) or isinstance(names, bytes):
        raise UsageError(f"Benchmarks are a dictionary, or names of suites and files, not {type(benchmarks)}.")
    for name in names:
        if not isinstance(name, (str, os.PathLike)):
            raise UsageError(f"A suite has a name or a path, not {name!r}.")
    return [os.fspath(name) for name in names]


def _run(task: RunTask, cores: Sequence[int], store_path: Path | None) -> Iterator[BenchmarkResult]:
    """The results of a run, each as soon as it and those before it are complete."""
    came: dict[Order, Outcome] | None = None
    left = deque(task.plan.cases)
    with contextlib.ExitStack() as stack:
        if store_path is not None:
            stack.enter_context(_naming_parameters())
            task.store = stack.enter_context(open_store(store_path))
        backend = stack.enter_context(contextlib.closing(LocalBackend(cores, for_program=True)))
        events = stack.enter_context(contextlib.closing(task.run(backend, StopRequest())))
        # Once more after the last event, for what was complete before.
        for event in itertools.chain(events, (None,)):
            came = task.load_settled() if came is None else came
            if isinstance(event, Outcome):
                came[event.order] = event
            while left:
                orders = [Order(left[0], task.plan.targets[0], metric) for metric in task.plan.sampling.metrics]
                if not all(order in came for order in orders):
                    break
                yield make_result(left.popleft(), [came.pop(order) for order in orders])


def make_result(case: Case, outcomes: Sequence[Outcome]) -> BenchmarkResult:
    spec = _describe(case)
    measurement = stats = costs = unchecked = None
    failures = {}
    for outcome in outcomes:
        result = outcome.result
        unchecked = outcome.unchecked or unchecked
        if isinstance(result, Failure):
            # What cannot be prepared fails once for all that was to be measured.
            failures[result, outcome.began, outcome.ended] = result
        elif isinstance(result, CompileCosts):
            costs, measurement = result, make_measurement(result.steady, spec)
        elif isinstance(result, Times):
            measurement = make_measurement(result, spec)
        else:
            stats = make_stats(spec, result, outcome.environment)
    return BenchmarkResult(
        case=case,
        measurement=measurement,
        stats=stats,
        compile_costs=costs,
        failures=tuple(failures.values()),
        unchecked=unchecked,
    )


def _describe(case: Case) -> TaskSpec:
    args = case.args
    return TaskSpec(
        stmt=args.stmt.strip(),
        setup=args.setup.strip() or "pass",
        global_setup=args.global_setup,
        label=" / ".join(case.label),
        sub_label=", ".join(text for text in case.autolabels.as_dict.values() if text),
        num_threads=args.num_threads,
    )
