"""`torchmark compare`: two runs, two environments of one or two files, case by case; a gate for what became slower."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from torchmark.analysis.results import narrow_run
from torchmark.analysis.verdict.judge import is_instruction_change
from torchmark.analysis.verdict.stored import (
    Contrast,
    choose_counts,
    compare_runs,
    find_unmeasured,
    leave_out_incomparable,
)
from torchmark.api.stored_sides import StoredSide, find_sides, name_sides
from torchmark.callgrind.profiles import standardise
from torchmark.cli.case_options import NOTHING_SELECTED, Loaded, explain_nothing, selection_options
from torchmark.cli.commands.cmd_show import make_unmistakable
from torchmark.cli.gate_options import (
    DEFAULT_LEDGER,
    REFUSED,
    GateOptions,
    append_summary,
    apply_gate,
    decide_exit_code,
    gate_options,
    load_functions,
)
from torchmark.cli.options import (
    Metrics,
    is_standard_output,
    json_option,
    spell_store,
    store_option,
    use_colour,
    write_json,
)
from torchmark.cli.output import echo
from torchmark.cli.result_files import names_file, read_sides
from torchmark.define.selection import Selection, parse
from torchmark.errors import UsageError
from torchmark.model.gate import GateResult
from torchmark.model.judgement import CaseJudgement
from torchmark.model.plan import Metric
from torchmark.model.run import Run
from torchmark.report.as_json import plain_run
from torchmark.report.text.gate import (
    explain_judgements,
    list_obstacles,
    list_sentences,
    plain_contrast,
    plain_gate,
    summarise_markdown,
    tell_gate,
    tell_refusal,
    tell_unpaired,
)
from torchmark.report.text.judgements import order_judgements, render_judgements
from torchmark.report.text.run_summary import name_run
from torchmark.store.runs import Store, open_store

SCHEMA = "torchmark.compare"
SCHEMA_VERSION = 1
DEFAULT_WIDTH = 80
# So many changes are explained without being asked for.
MOST_EXPLAINED = 5


@dataclasses.dataclass(frozen=True)
class _Compared:
    """All that is to be told. `contrast` has no judgement on what was refused."""

    base: StoredSide
    head: StoredSide
    contrast: Contrast
    result: GateResult
    forced: bool
    accept: str | None
    """What a command has to say that accepts counts of head; None where they are not in a store."""

    @property
    def exit_code(self) -> int:
        """That of all commands that compare."""
        obstacles = bool(self.contrast.obstacles or self.contrast.case_obstacles)
        return decide_exit_code(self.result, refused=obstacles and not self.forced)


@click.command("compare")
@click.argument("base")
@click.argument("head", required=False)
@selection_options
@click.option("--metric", "metrics", type=Metrics(), help="Only times or only counts.")
@click.option("--force", is_flag=True, help="Compare also what is not comparable; the caveat stays.")
@gate_options
@click.option("--all", "all_cases", is_flag=True, help="A line for each case, however many are the same.")
@click.option("--explain", metavar="EXPR", help="Explain the changes of these cases by function; EXPR as for -k.")
@click.option("--no-explain", is_flag=True, help="Explain no change by function; else the five largest are.")
@json_option
@store_option
def command(
    base: str,
    head: str | None,
    selection: Selection,
    metrics: tuple[Metric, ...] | None,
    force: bool,
    gate: GateOptions,
    all_cases: bool,
    explain: str | None,
    no_explain: bool,
    json_file: str | None,
    store_path: Path,
) -> int:
    """Compare two runs or two files case by case: exactly in what was counted, with intervals in what was timed.

    BASE and HEAD are runs as for 'torchmark show', or RUN:ENV for one environment of a run. Of a single run with two
    environments, the second is held against the first. They can also be two files that 'torchmark time --json' or
    'torchmark count --json' wrote, whose names end with .json. What is not comparable is refused, with the reasons and
    exit code 4. With --fail-on, --limit or --ledger the exit code is 3 if a case stops at the gate, and 1 if nothing
    was compared, or if head failed or has no result where base has one.

    \b
    torchmark compare before after
    torchmark compare before after --fail-on slower --limit Ir:0.3% --limit "time:2%@training/*"
    torchmark compare nightly:base nightly:branch -k linear --explain linear
    torchmark compare before.json after.json
    """
    if explain is not None and no_explain:
        raise UsageError("--explain and --no-explain exclude each other.")
    meant = None if explain is None else Selection(expression=parse(explain)).admits
    with contextlib.ExitStack() as stack:
        if names_file(base) or (head is not None and names_file(head)):
            store = None
            sides, whole = read_sides(base, head)
            runs = [narrow_run(run, cases=[*filter(selection.admits, run.plan.cases)]) for run in whole]
        else:
            store = stack.enter_context(open_store(store_path, read_only=True))
            sides = find_sides(store, base, head)
            runs = [store.load(side.info.id, select=selection.admits) for side in sides]
        if not any(run.plan.cases for run in runs):
            all_of = whole if store is None else [store.load(side.info.id) for side in sides]
            found = tuple(case for run in all_of for case in run.plan.cases)
            echo(f"torchmark: {explain_nothing(Loaded((), found, (), selection))}", err=True)
            return NOTHING_SELECTED
        runs = [_narrow(run, side, metrics) for run, side in zip(runs, sides, strict=True)]
        compared = _compare(store, sides, runs, gate, store_path, force=force)
    if json_file is not None:
        write_json(_as_json(compared), json_file)
    if not is_standard_output(json_file):
        _show(compared, all_cases=all_cases, choose=None if no_explain else _make_choice(compared, meant))
    append_summary(_summarise(compared), gate)
    return compared.exit_code


def _narrow(run: Run, side: StoredSide, metrics: tuple[Metric, ...] | None) -> Run:
    there = run.plan.sampling.metrics
    if metrics is not None and not set(metrics) & set(there):
        measured = " and ".join(metric.value for metric in there)
        raise UsageError(f"In {side.name} only {measured} was measured.")
    return narrow_run(run, targets=[side.target], metrics=metrics)


def _compare(
    store: Store | None,
    sides: tuple[StoredSide, StoredSide],
    runs: list[Run],
    gate: GateOptions,
    store_path: Path,
    *,
    force: bool,
) -> _Compared:
    base, head = sides
    contrast = compare_runs(runs[0], base.target, runs[1], head.target, standardise)
    if not force:
        contrast = leave_out_incomparable(contrast)
    if store is None:
        counts = choose_counts(runs[1], head.target)
    else:
        contrast, counts = load_functions(store, sides, contrast, runs[1], gate)
    accept = None if store is None else _spell_accept(store, head, gate, store_path)
    if contrast.obstacles and not force:
        result = GateResult(exit_code=REFUSED)
    else:
        unmeasured = find_unmeasured(runs[0], base.target, runs[1], head.target)
        result = apply_gate(contrast.judgements, counts, gate, missing=contrast.missing, unmeasured=unmeasured)
    return _Compared(base=base, head=head, contrast=contrast, result=result, forced=force, accept=accept)


def _spell_accept(store: Store, head: StoredSide, gate: GateOptions, store_path: Path) -> str:
    """The options of a command that means the counts of head."""
    options = []
    if store.find("@").id != head.info.id:
        options += ["--run", name_run(make_unmistakable(store, head.info))]
    if not head.alone:
        options += ["--env", shlex.quote(head.target.name)]
    if gate.ledger not in (None, DEFAULT_LEDGER):
        options += ["--ledger", shlex.quote(str(gate.ledger))]
    if where := spell_store(store_path):
        options += ["--store", shlex.quote(where)]
    return "".join(f" {part}" for part in options)


def _make_choice(
    compared: _Compared, meant: Callable[[Any], bool] | None
) -> Callable[[list[CaseJudgement]], list[CaseJudgement]]:
    """Which judgements to explain: those that are meant, or the largest changes and what stopped at the gate."""
    stopped = {regression.case for regression in compared.result.regressions}

    def choose(ordered: list[CaseJudgement]) -> list[CaseJudgement]:
        if meant is not None:
            return [one for one in ordered if meant(one.case)]
        changed = [one for one in ordered if one.case in stopped or (one.count and is_instruction_change(one.count))]
        return changed[:MOST_EXPLAINED]

    return choose


def _show(
    compared: _Compared, *, all_cases: bool, choose: Callable[[list[CaseJudgement]], list[CaseJudgement]] | None
) -> None:
    width = shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns
    contrast, (base, head) = compared.contrast, name_sides(compared.base, compared.head)
    refused = not compared.forced and (contrast.obstacles or contrast.case_obstacles)
    if refused:
        echo(f"torchmark: {tell_refusal(contrast, width)}", err=True)
    if contrast.obstacles and refused:
        return
    texts = [f"base  {compared.base.title}\nhead  {compared.head.title}"]
    texts.append(
        render_judgements(contrast.judgements, width, colour=use_colour(), base=base, head=head, all_cases=all_cases)
    )
    if choose is not None:
        explained = [one for one in order_judgements(contrast.judgements) if one.explanation is not None]
        texts.append(explain_judgements(choose(explained), width))
    texts.append(tell_unpaired(contrast, base, head, width))
    texts.append("\n".join(tell_gate(compared.result, compared.accept)))
    echo("\n\n".join(filter(None, texts)), styled=use_colour())


def _summarise(compared: _Compared) -> str:
    base, head = name_sides(compared.base, compared.head)
    obstacles = [] if compared.forced else [f"Not compared: {text}" for text in list_obstacles(compared.contrast)]
    sentences = [*obstacles, *list_sentences(compared.result)]
    title = f"{head} against {base}"
    return summarise_markdown(compared.contrast.judgements, title=title, gate=sentences, base=base, head=head)


def _as_json(compared: _Compared) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "base": {"run": plain_run(compared.base.info), "target": compared.base.target.name},
        "head": {"run": plain_run(compared.head.info), "target": compared.head.target.name},
        **plain_contrast(compared.contrast, forced=compared.forced),
        "gate": plain_gate(compared.result),
        "exit_code": compared.exit_code,
    }
