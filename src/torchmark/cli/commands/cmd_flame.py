"""`torchmark flame`: where a statement or a case spends its instructions, or its time, as a graph."""

from __future__ import annotations

import os

import click

from torchmark.api.flames import find_graphs
from torchmark.api.statements import make_case
from torchmark.cli.cases import choice_options, describe_statement, load_cases, print_faults, report_empty_selection
from torchmark.cli.flame_output import FORMATS, choose_format, place_files, prepare_renderer, write_graph
from torchmark.cli.options import (
    SECONDS,
    WholeNumber,
    check_folder,
    counted_runs_option,
    global_setup_option,
    python_option,
    see_folder,
    setup_option,
)
from torchmark.cli.output import echo
from torchmark.define.discovery import list_suites
from torchmark.define.selection import CaseOptions
from torchmark.errors import ExitCode, UsageError
from torchmark.model.plan import Case, Fault, Target
from torchmark.report.text.failures import list_hints


@click.command("flame")
@click.argument("texts", metavar="STMT|[SUITE|PATH]...", nargs=-1, required=True)
@setup_option("Runs once before a statement.")
@global_setup_option
@choice_options
@click.option("-o", "--output", metavar="FILE", help="Where to write it (flame.svg); a folder for several cases.")
@click.option("--format", "kind", type=click.Choice(list(FORMATS)), help="What to write (what the file's name tells).")
@python_option("run it")
@click.option("--base", metavar="PYTHON", help="Draw the difference: an interpreter to compare with.")
@click.option("--head", metavar="PYTHON", help="The interpreter in question; this program's own if not given.")
@click.option("--native/--no-native", default=True, help="Frames of compiled code too (they are drawn).")
@click.option("--sampled", is_flag=True, help="By looking at it with py-spy, not by counting.")
@click.option("--seconds", type=SECONDS, default=5.0, help="How long to look (5).")
@click.option("--rate", type=WholeNumber(1, 1000), default=200, metavar="N", help="Looks in a second (200).")
@counted_runs_option
def command(
    texts: tuple[str, ...],
    setup: str | None,
    global_setup: str,
    chosen: CaseOptions,
    output: str | None,
    kind: str | None,
    python: str | None,
    base: str | None,
    head: str | None,
    native: bool,
    sampled: bool,
    seconds: float,
    rate: int,
    number: int,
) -> int:
    """Draw a flame graph of a statement, or of cases of a suite.

    Its widths are instructions, each with all its callers in Python and in compiled code: the same every time, and
    they add up to the total. With --base it is of the difference between two interpreters: red grew, blue shrank. With
    --sampled py-spy looks at the statement many times a second, and widths are time.

    \b
    torchmark flame "x + y" --setup "x, y = torch.ones(4), torch.ones(4)" -o add.svg
    torchmark flame "torch.ones(4)" -o ones.png
    torchmark flame overrides -k "add and SubTensor" --base /path/to/python -o difference.html
    torchmark flame standard -k "linear and not cpp" -o graphs/ --format speedscope
    """
    check_folder()
    if python is not None and (base or head):
        raise UsageError("Say either --python, or which two to compare: --base and --head.")
    if head is not None and base is None:
        raise UsageError("There is nothing to compare with: say --base, or --python for one interpreter.")
    if sampled and base is not None:
        raise UsageError("Only exact graphs are compared: leave out --sampled.")
    if sampled and not seconds:
        raise UsageError("--seconds 0 would look at nothing.")
    kind = choose_format(kind, output)
    renderer = prepare_renderer(kind, output)
    see_folder()
    cases, faults = _choose(texts, setup, global_setup, chosen)
    if not cases:
        return ExitCode.INVALID if faults else ExitCode.FAILED
    files = place_files(cases, output, kind)
    targets = (Target("", python),) if base is None else (Target("base", base), Target("head", head))
    faulty, graphs = find_graphs(
        cases, targets, sampled=sampled, seconds=seconds, rate=rate, number=number, native=native
    )
    failed = sum(write_graph(case, graph, files[case], kind, renderer) for case, graph in graphs)
    for hint in list_hints(faulty.values()):
        echo(hint, err=True)
    print_faults(faults)
    return ExitCode.FAILED if failed else ExitCode.INVALID if faults else 0


def _choose(
    texts: tuple[str, ...], setup: str | None, global_setup: str, chosen: CaseOptions
) -> tuple[tuple[Case, ...], tuple[Fault, ...]]:
    """The statement, or the cases of suites and files; what is wrong with others."""
    named = [text in list_suites() or os.path.exists(text) for text in texts]
    if not any(named):
        if len(texts) > 1:
            raise UsageError("One statement at a time: each has a graph of its own.")
        return (make_case(describe_statement(texts[0], setup, global_setup, chosen)),), ()
    if not all(named):
        raise UsageError(f"{texts[named.index(False)]!r} is neither a suite nor a file, as the others are.")
    if setup is not None or global_setup:
        raise UsageError("A suite's cases have setups of their own.")
    loaded = load_cases(texts, chosen.select())
    if not loaded.cases:
        report_empty_selection(loaded)
    return loaded.cases, loaded.faults
