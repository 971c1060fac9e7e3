"""`torchmark overrides`: what `__torch_function__` costs, by type and by call, against plain Tensors."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from torchmark.analysis.overrides import add_plain, find_overheads, hold_to_expectations
from torchmark.analysis.results import summarise_run
from torchmark.api.runs import SIGNALLED, RunRequest, RunTask, execute_run, plan_targets
from torchmark.api.statements import make_case
from torchmark.callgrind.profiles import standardise
from torchmark.cli.case_options import Loaded, load_cases, say_why_nothing
from torchmark.cli.commands.cmd_show import make_unmistakable
from torchmark.cli.gate_options import GateOptions, gate_options
from torchmark.cli.options import (
    WholeNumber,
    check_folder,
    is_standard_output,
    json_option,
    open_to_write,
    spell_store,
    store_option,
    use_colour,
    write_json,
)
from torchmark.cli.output import STANDARD_OUTPUT, check_output, echo
from torchmark.cli.overrides_output import DEFAULT_OUTPUT, OverrideComparison, compare_overrides
from torchmark.define.expand import expand
from torchmark.define.selection import CaseOptions, select
from torchmark.errors import UsageError
from torchmark.measure.blocks import LARGEST_NUMBER
from torchmark.model.case import Case, TimerArgs
from torchmark.model.costs import Tally
from torchmark.model.plan import SUITE_LAYOUTS, Metric, Target
from torchmark.model.run import Run, RunInfo
from torchmark.report.as_json import plain_overrides
from torchmark.report.text.failures import sum_up_failure
from torchmark.report.text.overrides import render_overrides
from torchmark.runner.backend import Terminated
from torchmark.runner.first_runs import find_faults
from torchmark.runner.local import LocalBackend
from torchmark.runner.machine import choose_cores
from torchmark.runner.worker import DEFAULT_TIMEOUT_S
from torchmark.suites.overrides.cases import define_calls, foreign

SUITE = "overrides"
DEFAULT_WIDTH = 80
DEFAULT_CALLS = 1000
# With as many blocks as calls, a million calls of each case, timing takes six minutes. A hundred blocks take half of
# one, and tell the median to half a per cent where the machine is quiet.
DEFAULT_BLOCKS = 100
MOST_BLOCKS = 1_000_000


@click.command("overrides")
@click.option(
    "-n",
    "--nreps",
    type=WholeNumber(1, LARGEST_NUMBER),
    default=DEFAULT_CALLS,
    metavar="N",
    help=f"Calls in a block, which is timed as a whole ({DEFAULT_CALLS}).",
)
@click.option(
    "-m",
    "--nrepreps",
    type=WholeNumber(1, MOST_BLOCKS),
    default=DEFAULT_BLOCKS,
    metavar="N",
    help=f"Blocks of each case ({DEFAULT_BLOCKS}, with which all of it takes about three minutes).",
)
@click.option(
    "--type",
    "types",
    metavar="MODULE:CLASS",
    multiple=True,
    help="A type of yours, to be measured in all calls; operands are CLASS([1.0]) and so on.",
)
@click.option("-k", "only_k", metavar="EXPR", help="Only cases with these words in their labels.")
@click.option("--python", metavar="PATH", help="The interpreter to measure in, with its own torch.")
@click.option("--base", metavar="PYTHON", help="Compare: the interpreter of the point that a branch diverges from.")
@click.option("--head", metavar="PYTHON", help="The interpreter of the branch; this program's own if not given.")
@click.option("-o", "--output", metavar="FILE", help=f"Where a comparison puts its ZIP ({DEFAULT_OUTPUT}).")
@gate_options
@click.option("--all", "all_cases", is_flag=True, help="A line for each compared case, however many are the same.")
@store_option
@click.option("-q", "--quiet", is_flag=True, help="No signs of life, only the results.")
@json_option
def command(
    nreps: int,
    nrepreps: int,
    types: tuple[str, ...],
    only_k: str | None,
    python: str | None,
    base: str | None,
    head: str | None,
    output: str | None,
    gate: GateOptions,
    all_cases: bool,
    store_path: Path,
    quiet: bool,
    json_file: str | None,
) -> int:
    """Measure what overriding torch functions costs: times and instructions of each call by type of its operands.

    Types are Tensor, subclasses of it and Tensor-likes; calls are functions, methods, operators, properties, indexing,
    mixed operands, and calls within modes. Each is held against the same call with plain Tensors, and what is more is
    told by stage of the call. The results are kept like those of 'torchmark run overrides'.

    With --base or --head it tells instead what a branch changed: a verdict on each case, flame graphs of both sides
    for all that became slower, and a ZIP with a page, tables, raw results and how to get them again.

    \b
    torchmark overrides
    torchmark overrides -k "add or method" --nrepreps 1000
    torchmark overrides --type mymodule:MyTensor --python /path/to/python
    torchmark overrides --base /path/to/python --head /path/to/branch/python
    """
    check_folder()
    compared = base is not None or head is not None
    _check_options(compared, python)
    if output == STANDARD_OUTPUT:
        raise UsageError(f"Standard output has the verdicts. Name a file for the ZIP, such as {DEFAULT_OUTPUT}.")
    if compared:
        check_output(output or DEFAULT_OUTPUT, DEFAULT_OUTPUT)
    # As `python -m` does, so that a setup can import what lies here.
    sys.path.insert(0, os.getcwd())
    loaded = _load(types, CaseOptions(k=() if only_k is None else (only_k,)))
    if not loaded.cases:
        return say_why_nothing(loaded)
    wish = RunRequest(
        names=(SUITE,),
        chosen=CaseOptions(k=() if only_k is None else (only_k,)),
        metrics=(Metric.WALL, Metric.COUNT),
        targets=plan_targets(python, ()),
        repeat=1,
        min_run_time=0.0,
        layouts=SUITE_LAYOUTS,
        timeout=DEFAULT_TIMEOUT_S,
        number=nreps,
        blocks=nrepreps,
        types=types,
    )
    question = OverrideComparison(
        cases=loaded.cases,
        base=base,
        head=head,
        output=output or DEFAULT_OUTPUT,
        arguments=_spell_again(types, only_k),
        gate=gate,
        json_file=json_file,
        timeout_s=wish.timeout,
    )
    _check_types(types, question.targets if compared else wish.targets)
    if compared:
        wish = dataclasses.replace(wish, metrics=(Metric.COUNT,), targets=question.targets, number=None, blocks=None)
        store = spell_store(store_path)
        return compare_overrides(
            question, wish, choose_cores(None), store_path, store, all_cases=all_cases, quiet=quiet
        )
    try:
        code, run, shown = _measure(wish, loaded.cases, store_path, quiet=quiet)
    except Terminated as ended:
        # Before there was anything to show.
        return SIGNALLED + ended.number
    _report(run, shown, json_file, spell_store(store_path))
    return code


# What only one of the two uses of this command knows.
_OF_ONE = ("nreps", "nrepreps", "python")
_OF_TWO = ("output", "all_cases", "fail_on", "limits", "ledger", "summary")


def _check_options(compared: bool, python: str | None) -> None:
    """Refuse what would have no effect."""
    if compared and python is not None:
        raise UsageError("Say either --python, or which two to compare: --base and --head.")
    context = click.get_current_context()
    given = {
        parameter.name: parameter.opts[-1]
        for parameter in context.command.params
        if context.get_parameter_source(parameter.name or "") is click.core.ParameterSource.COMMANDLINE
    }
    for name in _OF_ONE if compared else _OF_TWO:
        if name in given:
            reason = "Blocks are as long as a comparison needs" if compared else "Nothing is compared"
            raise UsageError(f"{reason}: leave out {given[name]}{'' if compared else ', or say --base'}.")


def _spell_again(types: Sequence[str], only_k: str | None) -> tuple[str, ...]:
    chosen = [word for spelling in types for word in ("--type", spelling)]
    return (*chosen, *(("-k", only_k) if only_k is not None else ()))


def _load(types: Sequence[str], chosen: CaseOptions) -> Loaded:
    """The cases that are meant, those of the user's types among them, with the plain Tensors they are held against."""
    loaded = load_cases((SUITE,), chosen.select())
    everything = (*loaded.found, *(case for spelling in dict.fromkeys(types) for case in _define(spelling)))
    meant = select(everything, loaded.selection)
    return dataclasses.replace(loaded, cases=add_plain(meant, everything), found=everything)


def _define(spelling: str) -> tuple[Case, ...]:
    kind = foreign(spelling)
    if kind is None:
        raise UsageError(f"{spelling!r} is no type: say which module and which class, as in --type mymodule:MyTensor.")
    return expand(define_calls(kind), suite=SUITE)


def _check_types(types: Sequence[str], targets: Sequence[Target]) -> None:
    """A type of which no operand can be made would fail in every call: that is said before anything is measured."""
    kinds = {spelling: kind for spelling in types if (kind := foreign(spelling)) is not None}
    makers = {make_case(TimerArgs(f"{kind.make}([1.0])", kind.setup)): spelling for spelling, kind in kinds.items()}
    for target in dict.fromkeys(targets) if makers else ():
        for case, failure in find_faults(tuple(makers), target).items():
            where = f" in {target.python}" if target.python is not None else ""
            raise UsageError(f"--type {makers[case]}: no operand can be made of it{where}: {sum_up_failure(failure)}.")


def _measure(wish: RunRequest, cases: Sequence[Case], store_path: Path, *, quiet: bool) -> tuple[int, Run, RunInfo]:
    """The exit code, the run with its costs by function, and how commands may call it."""
    cores = choose_cores(None)
    with (
        open_to_write(store_path) as store,
        contextlib.closing(LocalBackend(cores)) as backend,
    ):
        task = RunTask(store, wish.make_plan(cases), wish)
        code, run = execute_run(task, backend, quiet=quiet, fail_fast=False)
        return code, store.load(run.info.id, profiles=True), make_unmistakable(store, run.info)


def _report(run: Run, shown: RunInfo, json_file: str | None, store: str) -> None:
    tallies = {one.order.case: one.result for one in run.outcomes if isinstance(one.result, Tally)}
    rows = find_overheads(summarise_run(run), tallies, standardise)
    findings = hold_to_expectations(rows)
    if json_file is not None:
        write_json(plain_overrides(run, rows, findings), json_file)
    if not is_standard_output(json_file):
        width = shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns
        text = render_overrides(run, rows, findings, width, colour=use_colour(), shown=shown, store=store)
        echo(text, styled=use_colour())
