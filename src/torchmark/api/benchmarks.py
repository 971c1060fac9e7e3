"""`run_benchmarks` and `materialize`: what a definition or a suite describes, measured or as arguments of a `Timer`."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torchmark.api.callgrind_stats import CallgrindStats, make_stats
from torchmark.api.measurement import Measurement, make_measurement
from torchmark.define.discovery import discover
from torchmark.define.expand import expand, flatten
from torchmark.define.selection import Selection, parse
from torchmark.define.selection import select as select_cases
from torchmark.errors import DefinitionError, UsageError
from torchmark.model.case import Case
from torchmark.model.compiling import CompileCosts
from torchmark.model.line import name_value
from torchmark.model.outcome import Failure
from torchmark.model.plan import SUITE_LAYOUTS, Metric, Sampling, Target
from torchmark.model.task import TaskSpec
from torchmark.report.caveats import state_fact
from torchmark.report.html.fragments import NotebookPanel, render_panel
from torchmark.report.text.counts import DEFAULT_LINE_WIDTH
from torchmark.report.text.failures import describe_failure, describe_fault, sum_up_failure
from torchmark.report.text.run_table import describe_compile_costs, tell_compile_costs
from torchmark.report.text.terminal import wrap
from torchmark.report.text.units import format_time
from torchmark.runner.lab import Lab
from torchmark.runner.prepare import Models, prepare
from torchmark.runner.spec import choose_layouts
from torchmark.runner.variant_check import Prepared
from torchmark.runner.worker import DEFAULT_TIMEOUT_S, Worker


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
        if self.stats is not None:
            came.append(self._instructions(self.stats))
        came += [f"failed: {sum_up_failure(failure)}" for failure in self.failures]
        return name_value(self, f"{self._name()}: {', '.join(came) or 'not measured'}")

    def _repr_html_(self) -> str:
        parts, spec = [], None if self.measurement is not None else _describe(self.case)
        if self.measurement is not None:
            parts.append(self.measurement._repr_html_())
        if self.stats is not None:
            parts.append(render_panel(self.stats._show(spec)))
            spec = None
        notes = [] if self.unchecked is None else [f"It was not compared with the other variants. {self.unchecked}"]
        rest = NotebookPanel(
            title=spec.title if spec else "",
            setup=spec.setup_str() if spec else "",
            facts=() if self.compile_costs is None else tell_compile_costs(self.compile_costs),
            notes=tuple(notes),
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
        caveats = [
            caveat for result in (self.measurement, self.stats) if result is not None for caveat in result.caveats
        ]
        for caveat in caveats:
            yield from wrap(f"  NOTE: {state_fact(caveat)}", DEFAULT_LINE_WIDTH, 8)
        if self.unchecked is not None:
            yield f"  NOTE: It was not compared with the other variants. {self.unchecked}"
        for failure in self.failures:
            yield textwrap.indent(describe_failure(failure), "  ")


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
) -> Iterator[BenchmarkResult]:
    """Measure every case, one after the other; a case that fails costs the others nothing.

    benchmarks: a definition, or names of suites ("standard", "modern") and paths of files that define `BENCHMARKS`.
    select: which cases, as in `torchmark list -k`: `"linear and not cpp"`.
    time, count: what to measure; counting needs Valgrind.
    check: whether variants of a group must compute the same where the group does not say; False switches it off for
        all, None leaves it to each suite.
    python: another interpreter, with its own torch. It sees none of your modules.
    timeout_s: for each process that is started.

    >>> from torchmark import GroupedStmts
    >>> for result in run_benchmarks({"add": GroupedStmts("torch.ones(4) + 1")}, min_run_time=0.01):
    ...     print(result.case.label, result.measurement.median > 0)
    ('add',) True
    """
    for name, flag in (("time", time), ("count", count), ("check", check)):
        if flag not in (True, False) and not (name == "check" and flag is None):
            raise UsageError(f"`{name}` is True or False, not {flag!r}.")
    if not time and not count:
        raise UsageError("There is nothing to do: ask for `time`, for `count`, or for both.")
    for name, seconds in (("min_run_time", min_run_time), ("timeout_s", timeout_s)):
        if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
            raise UsageError(f"`{name}` is a number of seconds, not {seconds!r}.")
    metrics = tuple(metric for metric, asked in ((Metric.WALL, time), (Metric.COUNT, count)) if asked)
    wanted = Sampling(metrics, min_run_time, choose_layouts(layouts), timeout_s=timeout_s)
    return _run(choose_cases(benchmarks, select, check), Target(python=python), wanted)


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


def _run(cases: Sequence[Case], target: Target, wanted: Sampling) -> Iterator[BenchmarkResult]:
    with contextlib.ExitStack() as stack:
        lab = Lab(target)
        stack.callback(lab.close)
        lab.start()
        prepared = prepare(cases, lab.bench(wanted.timeout_s), stack.enter_context(Models(os.environ)), os.environ)
        counter = lab.make_counter()
        for case in cases:
            outcome = prepared[case]
            if isinstance(outcome, Failure):
                yield BenchmarkResult(case, failures=(outcome,))
            else:
                yield _measure(outcome, lab, counter, wanted)


def _measure(prepared: Prepared, lab: Lab, counter: Worker, wanted: Sampling) -> BenchmarkResult:
    case, failures = prepared.case, []
    spec = _describe(case)
    measurement = stats = costs = None
    if Metric.WALL in wanted.metrics:
        timed, _ = lab.time(prepared, wanted)
        if isinstance(timed, Failure):
            failures.append(timed)
        elif isinstance(timed, CompileCosts):
            costs, measurement = timed, make_measurement(timed.steady, spec)
        else:
            measurement = make_measurement(timed, spec)
    if Metric.COUNT in wanted.metrics:
        counted, environment = lab.count(prepared, wanted, counter)
        if isinstance(counted, Failure):
            failures.append(counted)
        else:
            stats = make_stats(spec, counted, environment)
    return BenchmarkResult(
        case=case,
        measurement=measurement,
        stats=stats,
        compile_costs=costs,
        failures=tuple(failures),
        unchecked=prepared.unchecked,
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
