"""`torchmark overrides --base PY --head PY`: what changed, flame graphs of all that became slower, and a ZIP of it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shlex
import sys
from collections.abc import Generator, Sequence
from pathlib import Path

from torchmark.analysis.flames import draw_difference, draw_one
from torchmark.analysis.overrides import find_overheads
from torchmark.analysis.verdict.judge import SMALLEST_RATIO
from torchmark.api.ab import make_settings
from torchmark.api.flames import open_tracer, start_together
from torchmark.api.report_data import make_live_report_data
from torchmark.api.runs import ComparisonRecorder, RunRequest
from torchmark.api.statements import STARTING
from torchmark.callgrind.profiles import standardise
from torchmark.cli.ab_output import BASE, HEAD, AbOutput, list_counts
from torchmark.cli.commands.cmd_export import JSON
from torchmark.cli.gate_options import REFUSED, GateOptions, append_summary, apply_gate
from torchmark.cli.options import is_standard_output, open_to_write, use_colour, write_json
from torchmark.cli.output import echo, write_bytes
from torchmark.compare.comparison import ComparedPair, Comparison
from torchmark.compare.experiment import DEFAULTS
from torchmark.compare.session import INTERRUPTED, SIGNALLED, ComparisonResult, run_comparison
from torchmark.errors import InterpreterError, SetupError, TorchmarkError
from torchmark.model.case import Case
from torchmark.model.costs import Tally
from torchmark.model.dossier import Command, ReportData, Section
from torchmark.model.environment import Environment
from torchmark.model.flame import Flame, Stacks
from torchmark.model.judgement import Verdict
from torchmark.model.outcome import Failure
from torchmark.model.plan import SUITE_LAYOUTS, Metric, Target
from torchmark.report.flame.page import render_svg
from torchmark.report.flame.picture import Renderer, open_renderer, render_png
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
from torchmark.report.text.failures import sum_up_failure
from torchmark.report.text.names import name_case, name_files
from torchmark.report.text.terminal import count, show_waiting
from torchmark.runner.backend import StopRequest, Terminated, interrupts_stop
from torchmark.runner.spec import choose_layouts
from torchmark.store.runs import open_store

RUN_NAME = "overrides-ab"
DEFAULT_OUTPUT = "overrides.zip"
# Runs of a statement that a flame graph is of.
RUNS = 100
# Why there is no graph of what came later.
STOPPED = "It was stopped before"


@dataclasses.dataclass(frozen=True)
class OverrideComparison:
    """What is to be compared, and where the answer goes."""

    cases: tuple[Case, ...]
    base: str | None
    head: str | None
    output: str
    arguments: tuple[str, ...]
    """Further options, for the command that does all of it again."""
    gate: GateOptions
    json_file: str | None
    timeout_s: float

    @property
    def targets(self) -> tuple[Target, Target]:
        """Both sides."""
        return Target(BASE, self.base or sys.executable), Target(HEAD, self.head or sys.executable)

    @property
    def comparison(self) -> Comparison:
        """The same, for those who carry it out."""
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
        """How to ask it again."""
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


def compare_overrides(
    question: OverrideComparison,
    wish: RunRequest,
    cores: Sequence[int],
    store_path: Path,
    store: str,
    *,
    all_cases: bool,
    quiet: bool,
) -> int:
    """Compare, trace what became slower, put it together, and say what came of it."""
    comparison = question.comparison
    pictures = find_pictures()
    try:
        recorder = ComparisonRecorder(wish, lambda: open_to_write(store_path), RUN_NAME, quiet)
        found = run_comparison(comparison, cores, recorder)
    except InterpreterError:
        raise
    except SetupError as error:
        echo(f"torchmark: {error}", err=True)
        return REFUSED
    slower = [one.case for one in found.judgements if one.verdict is Verdict.SLOWER]
    traced = trace_slower(comparison, slower) if slower and not found.exit_code else Traced()
    found.exit_code = found.exit_code or traced.exit_code
    result = apply_gate(found.judgements, list_counts(comparison, found.evidence), question.gate)
    report = AbOutput(comparison=comparison, found=found, result=result, gate=question.gate, store=store)
    if question.json_file is not None:
        write_json(report.as_json(), question.json_file)
    if not is_standard_output(question.json_file):
        echo(report.show(all_cases=all_cases, explaining=True), styled=use_colour())
    append_summary(report.summarise(), question.gate)
    # Last: whatever goes wrong with it, the verdicts have been told.
    files = make_files(question, comparison, found, traced, report, store_path, pictures)
    write_bytes(pack_bundle(Path(question.output).stem or "overrides", files), question.output)
    if not is_standard_output(question.json_file):
        _tell_files(question.output, traced, len(slower))
    return report.exit_code


@dataclasses.dataclass(frozen=True)
class Pictures:
    """What draws PNG files, or why nothing does."""

    renderer: Renderer | None = None
    missing: str = ""

    def draw(self, name: str, flame: Flame) -> dict[str, str | bytes]:
        """The files of a graph, by name."""
        files: dict[str, str | bytes] = {f"{name}.svg": render_svg(flame)}
        return files if self.renderer is None else files | {f"{name}.png": render_png(flame, self.renderer)}


def find_pictures() -> Pictures:
    """Ask for what draws PNG files, and say at once if it is not there: the other files do not need it."""
    try:
        return Pictures(open_renderer())
    except InterpreterError:
        raise
    except SetupError as error:
        echo(f"torchmark: flame graphs are written as SVG only: {error}", err=True)
        return Pictures(missing=str(error))


def trace_slower(comparison: Comparison, cases: Sequence[Case]) -> Traced:
    """Both sides of what became slower. What ends it early leaves what is known by then."""
    traced, stop, reason = Traced(), StopRequest(), STOPPED
    with interrupts_stop(stop):
        try:
            with contextlib.closing(trace_both(comparison, cases)) as pairs:
                for case, base, head in pairs:
                    _note(traced, case, base, head)
                    if stop.requested:
                        break
        except Terminated as ended:
            traced.exit_code = SIGNALLED + ended.number
        except KeyboardInterrupt:
            traced.exit_code = INTERRUPTED
        except TorchmarkError as error:
            reason = str(error)
            echo(f"torchmark: no more flame graphs: {reason}", err=True)
    if stop.requested:
        traced.exit_code = traced.exit_code or INTERRUPTED
    known = traced.stacks.keys() | traced.failed.keys()
    traced.failed.update({case: reason for case in cases if case not in known})
    return traced


def trace_both(
    comparison: Comparison, cases: Sequence[Case]
) -> Generator[tuple[Case, Stacks | Failure, Stacks | Failure], None, None]:
    """Where these cases spend their instructions on both sides, as they come."""
    with open_tracer(comparison.base) as base, open_tracer(comparison.head) as head:
        with show_waiting(STARTING):
            start_together(base, head)
        with show_waiting(f"Tracing {count(len(cases), 'case')} that became slower"):
            pairs = zip(base.trace(cases, RUNS), head.trace(cases, RUNS), strict=True)
            for (case, one), (_, other) in pairs:
                yield case, one, other


def _note(traced: Traced, case: Case, base: Stacks | Failure, head: Stacks | Failure) -> None:
    failure = next((side for side in (base, head) if isinstance(side, Failure)), None)
    if isinstance(base, Stacks) and isinstance(head, Stacks):
        traced.stacks[case] = base, head
    elif failure is not None:
        traced.failed[case] = sum_up_failure(failure)
        echo(f"torchmark: no flame graph of {name_case(case)}: {traced.failed[case]}", err=True)


def make_files(
    question: OverrideComparison,
    comparison: Comparison,
    found: ComparisonResult,
    traced: Traced,
    report: AbOutput,
    store_path: Path,
    pictures: Pictures,
) -> dict[str, str | bytes]:
    """All files of the bundle, by name."""
    again = Command("All of it again:", question.command)
    dossier = make_live_report_data(comparison, found, traced.stacks, title=TITLE, commands=(again,))
    section = _make_section(comparison, found, dossier)
    dossier = dataclasses.replace(dossier, sections=() if section is None else (section,))
    names = {case: name for case, name in name_files(question.cases).items() if case in traced.stacks}
    sides = {"base": comparison.base, "branch": comparison.head}
    environments = {name: found.evidence.find_environment(target) for name, target in sides.items()}
    flames = {case: draw_graphs(case, *sides, environments) for case, sides in traced.stacks.items()}
    grown = {case: graphs[DIFFERENCE] for case, graphs in flames.items()}
    guide = write_guide(found.judgements, names, grown, environments, question.command, traced.failed, pictures.missing)
    files: dict[str, str | bytes] = {
        "README.md": guide,
        "report.html": render_report(dossier),
        "tables.md": write_tables(found.judgements),
        "results.json": json.dumps(report.as_json(), indent=1, sort_keys=True) + "\n",
    }
    if found.run_id is not None:
        with open_store(store_path, read_only=True) as store:
            files["run.json"] = JSON.write(store.load(found.run_id, profiles=True))
    for case, graphs in flames.items():
        for kind, flame in graphs.items():
            files |= pictures.draw(f"flames/{kind.format(names[case])}", flame)
    return files


def draw_graphs(
    case: Case, base: Stacks, head: Stacks, environments: dict[str, Environment | None]
) -> dict[str, Flame]:
    """The three graphs of a case, by the kind of their files."""
    notes = [f"torch {one.torch_version}" if one is not None else "" for one in environments.values()]
    title = name_case(case)
    return {
        BASE_FILE: draw_one(base, title, f"Base: {notes[0]}"),
        BRANCH: draw_one(head, title, f"Branch: {notes[1]}"),
        DIFFERENCE: draw_difference(base, head, title, f"{notes[0]} (base) against {notes[1]} (branch)"),
    }


def _make_section(comparison: Comparison, found: ComparisonResult, dossier: ReportData) -> Section | None:
    """What overriding costs on both sides."""
    sides = []
    for number, target in enumerate((comparison.base, comparison.head)):
        summaries = [one for entry in dossier.entries if (one := entry.exhibits[number]) is not None]
        counted = found.evidence.counted.items()
        tallies = {order.case: one for order, one in counted if order.target == target and isinstance(one, Tally)}
        sides.append(find_overheads(summaries, tallies, standardise))
    return make_override_section(*sides)


def _tell_files(output: str, traced: Traced, slower: int) -> None:
    size = os.path.getsize(output)
    graphs = (
        f", with flame graphs of {len(traced.stacks)} of {count(slower, 'case')} that became slower" if slower else ""
    )
    echo(f"\n{output} ({size / 1e6:.1f} MB) has the page, the tables and the raw results{graphs}.")
