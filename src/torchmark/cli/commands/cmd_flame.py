"""`torchmark flame`: where a statement or a case spends its instructions, or its time, as a graph."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from torchmark.api.flames import Tracer, open_tracer, sample_case, start_together
from torchmark.api.statements import STARTING, make_case
from torchmark.cli.case_options import (
    FAULTY,
    choice_options,
    describe_statement,
    load_cases,
    say_why_nothing,
    show_faults,
)
from torchmark.cli.flame_output import FORMATS, Graph, choose_format, is_folder
from torchmark.cli.options import Seconds, WholeNumber, check_folder, global_setup_option, python_option, setup_option
from torchmark.cli.output import STANDARD_OUTPUT, check_output, echo, write_bytes, write_text
from torchmark.define.discovery import list_suites
from torchmark.define.selection import CaseOptions
from torchmark.errors import UsageError
from torchmark.model.case import Case
from torchmark.model.environment import Environment
from torchmark.model.fault import Fault
from torchmark.model.flame import Stacks
from torchmark.model.outcome import Failure
from torchmark.model.plan import Target
from torchmark.report.flame.page import sum_up_flame
from torchmark.report.flame.picture import Renderer, open_renderer, render_png
from torchmark.report.text.failures import describe_failure, list_hints
from torchmark.report.text.names import name_case, name_files
from torchmark.report.text.terminal import show_waiting
from torchmark.runner.first_runs import find_faults

CASE_FAILED = 1
DEFAULT_NAME = "flame"
MOST_RUNS = 1_000_000
MOST_LOOKS = 1000


@click.command("flame")
@click.argument("texts", metavar="STMT|[SUITE|PATH]...", nargs=-1, required=True)
@setup_option("Runs once before a statement.")
@global_setup_option
@choice_options
@click.option("-o", "--output", metavar="FILE", help="Where to write it (flame.svg); a folder for several cases.")
@click.option("--format", "kind", type=click.Choice(list(FORMATS)), help="What to write (what the file's name tells).")
@python_option("The interpreter to run it in, with its own torch.")
@click.option("--base", metavar="PYTHON", help="Draw the difference: an interpreter to compare with.")
@click.option("--head", metavar="PYTHON", help="The interpreter in question; this program's own if not given.")
@click.option("--native/--no-native", default=True, help="Frames of compiled code too (they are drawn).")
@click.option("--sampled", is_flag=True, help="By looking at it with py-spy, not by counting.")
@click.option("--seconds", type=Seconds(), default=5.0, help="How long to look (5).")
@click.option("--rate", type=WholeNumber(1, MOST_LOOKS), default=200, metavar="N", help="Looks in a second (200).")
@click.option("--number", type=WholeNumber(1, MOST_RUNS), default=100, metavar="N", help="Runs to count (100).")
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
    renderer = _prepare_png(output) if kind == "png" else None
    # As `python -m` does, so that a setup can import what lies here.
    sys.path.insert(0, os.getcwd())
    cases, faults = _choose(texts, setup, global_setup, chosen)
    if not cases:
        return FAULTY if faults else CASE_FAILED
    places = _place(cases, output, kind)
    for file in places.values():
        check_output(file, DEFAULT_NAME + FORMATS[kind][0])
    targets = (Target("", python),) if base is None else (Target("base", base), Target("head", head))
    faulty = {} if sampled else find_faults(cases, targets[0]) or find_faults(cases, targets[-1])
    if faulty:
        # A statement that fails at once. Cases of suites are not tried.
        found: Found = iter(faulty.items())
    elif sampled:
        found = _sample(cases, targets[0], seconds=seconds, rate=rate, native=native)
    elif base is None:
        found = _trace(cases, targets[0], number, native=native)
    else:
        found = _compare(cases, targets[0], targets[-1], number, native=native)
    failed = sum(_write(case, graph, places[case], kind, renderer) for case, graph in found)
    for hint in list_hints(faulty.values()):
        echo(hint, err=True)
    show_faults(faults)
    return CASE_FAILED if failed else FAULTY if faults else 0


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
        say_why_nothing(loaded)
    return loaded.cases, loaded.faults


def _place(cases: Sequence[Case], output: str | None, kind: str) -> dict[Case, str]:
    """The file of each case."""
    ending = FORMATS[kind][0]
    if output is None and len(cases) == 1:
        return {cases[0]: DEFAULT_NAME + ending}
    if output is not None and not is_folder(output):
        if len(cases) == 1:
            return {cases[0]: output}
        raise UsageError(
            f"These are {len(cases)} cases. Select one with -k, or name a folder for all: -o {output.rstrip('/')}/"
        )
    if output is None:
        raise UsageError(f"These are {len(cases)} cases. Select one with -k, or name a folder for all with -o.")
    try:
        Path(output).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"The folder {output} cannot be made: {error.strerror}.") from error
    return {case: os.path.join(output, name + ending) for case, name in name_files(cases).items()}


Found = Iterator[tuple[Case, Graph | Failure]]


def _start(tracer: Tracer) -> Environment:
    if not tracer.worker.is_up:
        with show_waiting(STARTING):
            tracer.worker.start()
    return tracer.environment


def _trace(cases: Sequence[Case], target: Target, number: int, *, native: bool) -> Found:
    with open_tracer(target) as tracer:
        note = f"torch {_start(tracer).torch_version}"
        for case, stacks in tracer.trace(cases, number):
            yield case, stacks if isinstance(stacks, Failure) else Graph(stacks, name_case(case), note, native=native)


def _compare(cases: Sequence[Case], base: Target, head: Target, number: int, *, native: bool) -> Found:
    with open_tracer(base) as before, open_tracer(head) as after:
        with show_waiting(STARTING):
            start_together(before, after)
        versions = [tracer.environment.torch_version for tracer in (before, after)]
        note = f"torch {versions[0]} (base) against {versions[1]} (head)"
        pairs = zip(before.trace(cases, number), after.trace(cases, number), strict=True)
        for (case, one), (_, other) in pairs:
            yield case, _pair(case, one, other, note, native=native)


def _pair(case: Case, base: Stacks | Failure, head: Stacks | Failure, note: str, *, native: bool) -> Graph | Failure:
    if isinstance(base, Failure):
        return base
    return (
        head
        if isinstance(head, Failure)
        else Graph(head=head, title=name_case(case), note=note, base=base, native=native)
    )


def _sample(cases: Sequence[Case], target: Target, *, seconds: float, rate: int, native: bool) -> Found:
    for case in cases:
        with show_waiting(f"Looking at {name_case(case)} for {seconds:g} s"):
            stacks = sample_case(case, target, seconds=seconds, rate=rate, native=native)
        note = f"{rate} looks a second for {seconds:g} s"
        yield case, stacks if isinstance(stacks, Failure) else Graph(stacks, name_case(case), note, native=native)


def _prepare_png(output: str | None) -> Renderer:
    """What draws the pictures; an error before anything is measured if there is nothing that does."""
    if output == STANDARD_OUTPUT:
        raise UsageError("A PNG is not written to standard output. Name a file, such as -o flame.png.")
    return open_renderer()


def _write(case: Case, graph: Graph | Failure, file: str, kind: str, renderer: Renderer | None) -> bool:
    """Whether it failed."""
    if isinstance(graph, Failure):
        echo(f"Failed: {name_case(case)}\n{describe_failure(graph)}", err=True)
        return True
    if renderer is not None:
        write_bytes(render_png(graph.flame, renderer), file)
    else:
        write_text(graph.render(kind), file)
    if file != "-":
        echo(f"{name_case(case)}: {file}")
        for line in sum_up_flame(graph.flame):
            echo(f"  {line}")
    return False
