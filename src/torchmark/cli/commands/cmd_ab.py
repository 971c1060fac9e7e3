"""`torchmark ab`: compare two builds of torch, or two statements, in turns; and a gate for what became slower."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from torchmark.api.ab import MOST_LAYOUTS, make_settings
from torchmark.api.report_data import make_live_report_data
from torchmark.api.runs import ComparisonRecorder, RunRequest
from torchmark.callgrind.command import find_valgrind
from torchmark.cli.ab_output import TITLE, AbOptions, AbOutput, list_counts
from torchmark.cli.case_options import FAULTY, choice_options, say_why_nothing, show_faults
from torchmark.cli.gate_options import REFUSED, GateOptions, append_summary, apply_gate, gate_options
from torchmark.cli.options import (
    BackendChoice,
    Metrics,
    Seconds,
    Share,
    WholeNumber,
    backend_options,
    check_folder,
    global_setup_option,
    is_standard_output,
    json_option,
    open_to_write,
    setup_option,
    spell_store,
    store_option,
    use_colour,
    write_json,
)
from torchmark.cli.output import check_output, echo, write_text
from torchmark.compare.comparison import Comparison
from torchmark.compare.experiment import LAYOUTS
from torchmark.compare.remote_site import ClusterComparison
from torchmark.compare.session import ComparisonResult, run_comparison
from torchmark.define.selection import CaseOptions
from torchmark.errors import SetupError, UsageError
from torchmark.model.plan import Metric
from torchmark.report.html.report_page import render_report
from torchmark.runner.machine import choose_cores
from torchmark.runner.worker import DEFAULT_TIMEOUT_S


@click.command("ab")
@click.argument("texts", metavar="[SUITE|PATH|STMT]...", nargs=-1)
@click.option(
    "--base", metavar="PYTHON", help="The interpreter to compare with; this program's own if only --head is given."
)
@click.option(
    "--head", metavar="PYTHON", help="The interpreter in question; this program's own if only --base is given."
)
@click.option(
    "--stmt", "stmts", metavar="CODE", multiple=True, help="A statement to compare in both, instead of a suite."
)
@setup_option("Runs once before a statement.")
@global_setup_option
@choice_options
@click.option("--metric", "metrics", type=Metrics(), default="wall,count", help="Which witnesses to hear (wall,count).")
@click.option("--alpha", type=Share(), default="5%", help="The error rate that a case is screened with (5%).")
@click.option("--equivalence", type=Share(), default="1%", help="A change smaller than this is the same (1%).")
@click.option(
    "--layouts",
    type=WholeNumber(2, MOST_LAYOUTS),
    default=LAYOUTS,
    metavar="N",
    help="Layouts of memory to take turns in (6).",
)
@click.option(
    "--budget",
    type=Seconds(),
    help="Limit in seconds for timing all cases, start-up included (30, plus 3 per case, plus start-up).",
)
@click.option("--timeout", type=Seconds(), default=DEFAULT_TIMEOUT_S, help="Seconds until a process is given up (600).")
@click.option("--cores", metavar="N|LIST", help="How many cores to use, or which, such as 0,2-3 (all).")
@backend_options
@gate_options
@click.option("--all", "all_cases", is_flag=True, help="A line for each case, however many are the same.")
@click.option("--no-explain", is_flag=True, help="Explain no change by function; else the five largest are.")
@click.option("--html", "page", metavar="FILE", help="Also write all of it as one HTML page.")
@click.option("-q", "--quiet", is_flag=True, help="No signs of life, only the results.")
@store_option
@json_option
def command(
    texts: tuple[str, ...],
    base: str | None,
    head: str | None,
    stmts: tuple[str, ...],
    setup: str | None,
    global_setup: str,
    chosen: CaseOptions,
    metrics: tuple[Metric, ...],
    alpha: float,
    equivalence: float,
    layouts: int,
    budget: float | None,
    timeout: float,
    cores: str | None,
    means: BackendChoice,
    gate: GateOptions,
    all_cases: bool,
    no_explain: bool,
    page: str | None,
    quiet: bool,
    store_path: Path,
    json_file: str | None,
) -> int:
    """Compare two builds of torch, or two statements: slower, faster, the same, or undecided.

    With --base or --head, cases of a suite run in two interpreters; with --stmt, statements do. Without, each STMT is
    held against the first one, in this interpreter. Both sides are counted, and timed in turns on one core, in several
    layouts of memory. A change in time has been seen again on fresh layouts before it is called one.

    \b
    torchmark ab --base /path/to/python --head /other/python standard -k "linear and not cpp"
    torchmark ab --base /path/to/python --stmt "x + y" --setup "x, y = torch.ones(4), torch.ones(4)"
    torchmark ab "x + y" "torch.add(x, y)" --setup "x, y = torch.ones(4), torch.ones(4)"
    """
    check_folder()
    usable = choose_cores(cores)
    means.check(cores)
    if not timeout:
        raise UsageError("--timeout 0 would give up every case before it has begun.")
    check_output(page, "ab.html")
    settings = make_settings(alpha, equivalence, layouts, budget)
    # As `python -m` does, so that a setup can import what lies here.
    sys.path.insert(0, os.getcwd())
    metrics = metrics if means.is_ray else _leave_out_counts(metrics)
    asked = AbOptions(
        texts=texts,
        base=base,
        head=head,
        stmts=stmts,
        setup=setup,
        global_setup=global_setup,
        chosen=chosen,
        metrics=metrics,
        settings=settings,
        timeout=timeout,
        is_here=not means.is_ray,
    )
    comparison, loaded = asked.compare()
    if comparison is None:
        assert loaded is not None
        return say_why_nothing(loaded)
    try:
        found = _carry_out(comparison, usable, asked.wish() if loaded else None, store_path, means, quiet=quiet)
    except SetupError as error:
        echo(f"torchmark: {error}", err=True)
        return REFUSED
    result = apply_gate(found.judgements, list_counts(comparison, found.evidence), gate)
    report = AbOutput(comparison=comparison, found=found, result=result, gate=gate, store=spell_store(store_path))
    if json_file is not None:
        write_json(report.as_json(), json_file)
    if not is_standard_output(json_file):
        echo(report.show(all_cases=all_cases, explaining=not no_explain), styled=use_colour())
    if page is not None:
        write_text(render_report(make_live_report_data(comparison, found, {}, title=TITLE)), page)
    append_summary(report.summarise(), gate)
    show_faults(loaded.faults if loaded else ())
    return report.exit_code or (FAULTY if loaded and loaded.faults else 0)


def _carry_out(
    comparison: Comparison,
    cores: Sequence[int],
    wish: RunRequest | None,
    store_path: Path,
    means: BackendChoice,
    *,
    quiet: bool,
) -> ComparisonResult:
    recorder = ComparisonRecorder(wish, lambda: open_to_write(store_path), quiet=quiet)
    if not means.is_ray:
        return run_comparison(comparison, cores, recorder)
    # Statements that are compared with each other are counted in one place; a case of a suite is with itself.
    together = any(entry.is_of_two for entry in comparison.entries)
    with contextlib.closing(ClusterComparison(means.make_cluster(aligned=True, together=together))) as away:
        return run_comparison(comparison, cores, recorder, open_sites=away.open_sites, open_backend=away.open_backend)


def _leave_out_counts(metrics: tuple[Metric, ...]) -> tuple[Metric, ...]:
    """Without Valgrind there are no counts, which is no reason not to compare times, unless counts were asked for."""
    context = click.get_current_context()
    asked = context.get_parameter_source("metrics") is click.core.ParameterSource.COMMANDLINE
    if asked or Metric.COUNT not in metrics:
        return metrics
    try:
        find_valgrind(os.environ.get("PATH", os.defpath))
    except SetupError as error:
        echo(f"NOTE: Nothing is counted. {error}", err=True)
        return tuple(metric for metric in metrics if metric is not Metric.COUNT)
    return metrics
