"""`torchmark fuzz`: statements on random inputs, and which properties of an input explain how they differ."""

from __future__ import annotations

import contextlib

import click

from torchmark.api.statements import load_inputs
from torchmark.cli.fuzz_output import FuzzResults, follow, print_waiting, report
from torchmark.cli.options import (
    MOST_THREADS,
    SECONDS,
    BackendChoice,
    Parsed,
    WholeNumber,
    backend_options,
    check_folder,
    check_interpreters,
    json_option,
    output_aside,
    python_option,
    quiet_option,
    see_folder,
    setup_option,
    statements_argument,
    timeout_option,
)
from torchmark.cli.output import echo
from torchmark.errors import ExitCode, UsageError
from torchmark.model.job import RaceJob
from torchmark.runner.worker import DEFAULT_TIMEOUT_S

DEFAULT_INPUTS = 200


def _parse_indices(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.strip().isascii() and part.strip().isdigit() for part in parts):
        raise UsageError(f"{text!r} is not a list of inputs by their numbers, such as 17 or 3,17.")
    if max(map(len, parts)) > 18:
        raise UsageError("Inputs have no numbers of so many digits.")
    return tuple(dict.fromkeys(int(part) for part in parts))


@click.command("fuzz")
@statements_argument
@click.option(
    "--fuzzer",
    "name",
    metavar="NAME",
    help="unary, binary, spectral, sparse-unary, sparse-binary, or FILE.py:NAME (unary; binary if a text has y).",
)
@click.option(
    "--preset",
    type=click.Choice(["small", "medium", "large", "full"]),
    help="How large inputs are (small); full: to 2 GiB.",
)
@click.option("-n", "number", type=WholeNumber(1, 1_000_000), metavar="N", help="How many inputs (200).")
@click.option("--seed", type=WholeNumber(0, 2**32 - 1), metavar="N", help="Another seed gives other inputs (0).")
@click.option("--dtype", "dtypes", metavar="T[,T...]", help="Types of elements, such as float32 or int32,bfloat16.")
@click.option("--device", metavar="D", help="Where tensors are, such as cuda (cpu).")
@setup_option("Runs once on each input, after tensors are made.", default="")
@click.option("--threads", type=WholeNumber(1, MOST_THREADS), default=1, metavar="N", help="torch threads (1).")
@click.option("--min-run-time", type=SECONDS, metavar="S", help="Seconds for each statement on each input (0.02).")
@python_option()
@click.option("--top", type=WholeNumber(1), default=5, metavar="N", help="Inputs to show at either end (5).")
@click.option(
    "--only", type=Parsed("K[,K...]", _parse_indices), help="Only these inputs; shows the code that makes them."
)
@timeout_option("an input")
@backend_options
@quiet_option()
@json_option
def command(
    stmts: tuple[str, ...],
    name: str | None,
    preset: str | None,
    number: int | None,
    seed: int | None,
    dtypes: str | None,
    device: str | None,
    setup: str,
    threads: int,
    min_run_time: float | None,
    python: str | None,
    top: int,
    only: tuple[int, ...] | None,
    timeout: float,
    means: BackendChoice,
    quiet: bool,
    json_file: str | None,
) -> int:
    """Time statements on random inputs, and tell where they differ.

    Each STMT is Python in which the tensors of a fuzzer are variables: x, and y if there are two; so are parameters,
    such as dim or k0. Statements take turns on each input, which has a process of its own. You see the inputs with the
    smallest and the largest ratio of times, and a rule that tells them apart, if there is one that holds up on inputs
    that were held back. One statement alone is compared with its number of elements. Statements that begin with a dash
    come last, after --.

    \b
    torchmark fuzz "torch.add(x, y)" "x + y" --fuzzer binary -n 200
    torchmark fuzz "x.sum(-1)" "torch.einsum('...i->...', x)" --preset medium
    torchmark fuzz "torch.sort(x)" --dtype float32,int32
    """
    if only is not None and number is not None:
        raise UsageError("--only says which inputs: leave out -n with it.")
    if len(set(stmts)) < len(stmts):
        echo("NOTE: The same statement is given more than once: what differs is noise.", err=True)
    means.check(None)
    check_folder()
    if not means.is_ray:
        check_interpreters(python)
    see_folder()
    inputs = load_inputs()
    options = inputs.FuzzerOptions(name or inputs.choose_fuzzer((*stmts, setup)), preset, seed, dtypes, device)
    # What the user's code prints is none of the results.
    with output_aside():
        made = options.make()
    indices = only if only is not None else range(DEFAULT_INPUTS if number is None else number)
    run_time = inputs.RUN_TIME_S if min_run_time is None else min_run_time
    job = RaceJob(stmts=stmts, setup=setup, place=inputs.choose_place(python), threads=threads, min_run_time_s=run_time)
    about = options.to_json_options(made[0][1].seed)
    about |= {"setup": setup or None, "threads": threads if threads > 1 else None, "python": python}
    about |= {"min-run-time": min_run_time, "timeout": None if timeout == DEFAULT_TIMEOUT_S else timeout}
    study = FuzzResults(stmts, len(indices), about)
    try:
        outlines = inputs.outline_all(made, indices)
        with contextlib.ExitStack() as stack:
            cluster = stack.enter_context(contextlib.closing(means.make_cluster())) if means.is_ray else None
            results = inputs.race_inputs(outlines, job, python, timeout, cluster, print_waiting)
            stack.enter_context(output_aside())
            stack.enter_context(contextlib.closing(results))
            follow(study, results, quiet=quiet)
    finally:
        # Nodes are not equally fast.
        study.results.sort(key=lambda result: indices.index(result.index))
        # Also after an interrupt: what has been measured is not lost.
        report(study, top, json_file, with_code=only is not None)
    return ExitCode.FAILED if study.failures else 0
