"""What overriding torch functions costs in one build, and what changed of it between two builds."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shlex
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

from torchmark.analysis.flames import draw_flame
from torchmark.analysis.overrides import OverrideRow, find_overheads
from torchmark.analysis.results import summarise_run
from torchmark.analysis.verdict.judge import SMALLEST_RATIO
from torchmark.api.ab import BASE, HEAD, GatedComparison, hold_against_gate, make_settings
from torchmark.api.flames import Tracer, start_together
from torchmark.api.gate import GateOptions
from torchmark.api.report_data import make_live_report_data
from torchmark.api.runs import RunRequest, RunTask, execute_run
from torchmark.api.statements import STARTING, make_case
from torchmark.callgrind.profiles import standardise
from torchmark.compare.comparison import ComparedPair, Comparison
from torchmark.compare.experiment import DEFAULTS
from torchmark.compare.session import ComparisonResult, Observer, catching_interrupts, run_comparison
from torchmark.define.expand import expand
from torchmark.errors import InterpreterError, SetupError, TorchmarkError, UsageError
from torchmark.model.costs import Flame, Stacks, Tally
from torchmark.model.environment import Environment
from torchmark.model.judgement import Verdict
from torchmark.model.outcome import Failure
from torchmark.model.plan import SUITE_LAYOUTS, Case, Metric, Target, TimerArgs
from torchmark.model.report_data import Command, ReportData, Section
from torchmark.model.run import Run, RunInfo
from torchmark.report.flame.page import render_svg
from torchmark.report.flame.picture import Renderer, open_renderer, render_png
from torchmark.report.formats.entries import dump_json
from torchmark.report.html.overrides import BASE as BASE_FILE
from torchmark.report.html.overrides import (
    BRANCH,
    DIFFERENCE,
    TITLE,
    make_override_section,
    pack_bundle,
    write_guide,
    write_tables,
)
from torchmark.report.html.report_page import render_report
from torchmark.report.text.failures import summarise_failure
from torchmark.report.text.names import name_case, name_files
from torchmark.report.text.terminal import count, show_waiting
from torchmark.runner.local import LocalBackend
from torchmark.runner.prepare import find_faults
from torchmark.runner.spec import choose_layouts
from torchmark.store.documents import export_run
from torchmark.store.runs import Store, make_unmistakable, open_store
from torchmark.suites.overrides.cases import define_calls, foreign

SUITE = "overrides"


def define_type(spelling: str) -> tuple[Case, ...]:
    """The cases of a type of the user's."""
    kind = foreign(spelling)
    if kind is None:
        raise UsageError(f"{spelling!r} is no type: say which module and which class, as in --type mymodule:MyTensor.")
    return expand(define_calls(kind), suite=SUITE)


def check_types(types: Sequence[str], targets: Sequence[Target]) -> None:
    """A type of which no operand can be made would fail in every call: that is said before anything is measured."""
    kinds = {spelling: kind for spelling in types if (kind := foreign(spelling)) is not None}
    makers = {make_case(TimerArgs(f"{kind.make}([1.0])", kind.setup)): spelling for spelling, kind in kinds.items()}
    for target in dict.fromkeys(targets) if makers else ():
        for case, failure in find_faults(tuple(makers), target).items():
            where = f" in {target.python}" if target.python is not None else ""
            raise UsageError(
                f"--type {makers[case]}: no operand can be made of it{where}: {summarise_failure(failure)}."
            )


def measure_overrides(
    request: RunRequest, cases: Sequence[Case], cores: Sequence[int], store: Store, *, quiet: bool
) -> tuple[int, Run, RunInfo, tuple[OverrideRow, ...]]:
    """Measure all cases on this machine, keep the run, and hold each against plain Tensors.

    The exit code, the run, how commands may call it, and what is more than with plain Tensors.
    """
    with contextlib.closing(LocalBackend(cores)) as backend:
        task = RunTask(store, request.make_plan(cases), request)
        code, run = execute_run(task, backend, quiet=quiet, fail_fast=False)
    run, shown = store.load(run.info.id, profiles=True), make_unmistakable(store, run.info)
    tallies = {one.order.case: one.result for one in run.outcomes if isinstance(one.result, Tally)}
    return code, run, shown, find_overheads(summarise_run(run), tallies, standardise)


Tell = Callable[[str], None]
# Runs of a statement that a flame graph is of.
RUNS = 100
# Why there is no graph of what came later.
STOPPED = "It was stopped before"


@dataclasses.dataclass(frozen=True)
class OverrideComparison:
    """What is to be compared."""

    cases: tuple[Case, ...]
    base: str | None
    head: str | None
    arguments: tuple[str, ...]
    """Further options, for the command that does all of it again."""
    timeout_s: float

    @property
    def targets(self) -> tuple[Target, Target]:
        return Target(BASE, self.base or sys.executable), Target(HEAD, self.head or sys.executable)

    @property
    def comparison(self) -> Comparison:
        base, head = self.targets
        return Comparison(
            entries=tuple(ComparedPair(case, case) for case in self.cases),
            base=base,
            head=head,
            metrics=(Metric.WALL, Metric.COUNT),
            settings=make_settings(DEFAULTS.alpha, DEFAULTS.equivalence, DEFAULTS.layouts, DEFAULTS.budget_s),
            count_layouts=choose_layouts(SUITE_LAYOUTS),
            timeout_s=self.timeout_s,
            decisive=SMALLEST_RATIO,
        )

    @property
    def command(self) -> str:
        sides = [("--base", self.base), ("--head", self.head)]
        words = [word for name, python in sides if python is not None for word in (name, python)]
        return shlex.join(["torchmark", "overrides", *words, *self.arguments])


@dataclasses.dataclass
class Traced:
    """The exact stacks of both sides of what became slower, and why there are none of some."""

    stacks: dict[Case, tuple[Stacks, Stacks]] = dataclasses.field(default_factory=dict)
    failed: dict[Case, str] = dataclasses.field(default_factory=dict)
    exit_code: int = 0
    """Other than 0 if it was stopped before its end."""


def find_renderer(tell: Tell) -> Renderer | str:
    """What draws PNG files, or why nothing does, which is said at once: the other files do not need it."""
    try:
        return open_renderer()
    except InterpreterError:
        raise
    except SetupError as error:
        tell(f"torchmark: flame graphs are written as SVG only: {error}")
        return str(error)


def trace_slower(comparison: Comparison, cases: Sequence[Case], tell: Tell) -> Traced:
    """Both sides of what became slower. What ends it early leaves what is known by then."""
    traced, reason = Traced(), STOPPED
    with catching_interrupts(traced) as stop:
        try:
            with contextlib.closing(trace_both(comparison, cases)) as pairs:
                for case, base, head in pairs:
                    _note(traced, case, base, head, tell)
                    if stop.requested:
                        break
        except TorchmarkError as error:
            reason = str(error)
            tell(f"torchmark: no more flame graphs: {reason}")
    known = traced.stacks.keys() | traced.failed.keys()
    traced.failed.update({case: reason for case in cases if case not in known})
    return traced


def trace_both(
    comparison: Comparison, cases: Sequence[Case]
) -> Generator[tuple[Case, Stacks | Failure, Stacks | Failure], None, None]:
    """Where these cases spend their instructions on both sides, as they come."""
    with Tracer(comparison.base) as base, Tracer(comparison.head) as head:
        with show_waiting(STARTING):
            start_together(base, head)
        with show_waiting(f"Tracing {count(len(cases), 'case')} that became slower"):
            for (case, one), (_, other) in zip(base.trace(cases, RUNS), head.trace(cases, RUNS), strict=True):
                yield case, one, other


def _note(traced: Traced, case: Case, base: Stacks | Failure, head: Stacks | Failure, tell: Tell) -> None:
    failure = next((side for side in (base, head) if isinstance(side, Failure)), None)
    if isinstance(base, Stacks) and isinstance(head, Stacks):
        traced.stacks[case] = base, head
    elif failure is not None:
        traced.failed[case] = summarise_failure(failure)
        tell(f"torchmark: no flame graph of {name_case(case)}: {traced.failed[case]}")


@dataclasses.dataclass(frozen=True)
class ComparedOverrides:
    """What came of it."""

    question: OverrideComparison
    report: GatedComparison
    slower: tuple[Case, ...]
    traced: Traced
    renderer: Renderer | str
    """Or why there is none."""

    def pack(self, folder: str, store_path: Path) -> bytes:
        """All files as a ZIP, below one folder. The store has the run of the counts."""
        return pack_bundle(folder, self._make_files(store_path))

    def _make_files(self, store_path: Path) -> dict[str, str | bytes]:
        comparison, found, traced = self.report.comparison, self.report.found, self.traced
        command = self.question.command
        again = Command("All of it again:", command)
        report = make_live_report_data(comparison, found, traced.stacks, title=TITLE, commands=(again,))
        section = _make_section(comparison, found, report)
        report = dataclasses.replace(report, sections=() if section is None else (section,))
        names = {case: name for case, name in name_files(self.question.cases).items() if case in traced.stacks}
        sides = {"base": comparison.base, "branch": comparison.head}
        environments = {name: found.evidence.find_environment(target) for name, target in sides.items()}
        flames = {case: draw_graphs(case, *sides, environments) for case, sides in traced.stacks.items()}
        grown = {case: graphs[DIFFERENCE] for case, graphs in flames.items()}
        missing = self.renderer if isinstance(self.renderer, str) else ""
        files: dict[str, str | bytes] = {
            "README.md": write_guide(found.judgements, names, grown, environments, command, traced.failed, missing),
            "report.html": render_report(report),
            "tables.md": write_tables(found.judgements),
            "results.json": json.dumps(self.report.to_dict(), indent=1, sort_keys=True) + "\n",
        }
        if found.run_id is not None:
            with open_store(store_path, read_only=True) as store:
                files["run.json"] = dump_json(export_run(store.load(found.run_id, profiles=True)))
        for case, graphs in flames.items():
            for kind, flame in graphs.items():
                name = f"flames/{kind.format(names[case])}"
                files[f"{name}.svg"] = render_svg(flame)
                if not isinstance(self.renderer, str):
                    files[f"{name}.png"] = render_png(flame, self.renderer)
        return files


def compare_overrides(
    question: OverrideComparison, cores: Sequence[int], observer: Observer, gate: GateOptions, store: str, tell: Tell
) -> ComparedOverrides:
    """Compare, trace what became slower, and hold it against the gate.

    `store` is what commands have to say of the store; `tell` hears what the user should know besides.
    """
    comparison, renderer = question.comparison, find_renderer(tell)
    found = run_comparison(comparison, cores, observer)
    slower = tuple(one.case for one in found.judgements if one.verdict is Verdict.SLOWER)
    traced = trace_slower(comparison, slower, tell) if slower and not found.exit_code else Traced()
    found.exit_code = found.exit_code or traced.exit_code
    report = hold_against_gate(comparison, found, gate, store, tell)
    return ComparedOverrides(question=question, report=report, slower=slower, traced=traced, renderer=renderer)


def draw_graphs(
    case: Case, base: Stacks, head: Stacks, environments: dict[str, Environment | None]
) -> dict[str, Flame]:
    """The three graphs of a case, by the kind of their files."""
    notes = [f"torch {one.torch_version}" if one is not None else "" for one in environments.values()]
    title = name_case(case)
    return {
        BASE_FILE: draw_flame(base, title, f"Base: {notes[0]}"),
        BRANCH: draw_flame(head, title, f"Branch: {notes[1]}"),
        DIFFERENCE: draw_flame(head, title, f"{notes[0]} (base) against {notes[1]} (branch)", base=base),
    }


def _make_section(comparison: Comparison, found: ComparisonResult, report: ReportData) -> Section | None:
    sides = []
    for number, target in enumerate((comparison.base, comparison.head)):
        summaries = [one for entry in report.entries if (one := entry.summaries[number]) is not None]
        counted = found.evidence.counted.items()
        tallies = {order.case: one for order, one in counted if order.target == target and isinstance(one, Tally)}
        sides.append(find_overheads(summaries, tallies, standardise))
    return make_override_section(*sides)
