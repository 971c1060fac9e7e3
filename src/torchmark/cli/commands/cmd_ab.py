"""`torchmark ab`: compare two builds of torch, or two statements, in turns; and a gate for what became slower."""

from __future__ import annotations

import functools
from pathlib import Path

import click

from torchmark.api.ab import TITLE, hold_against_gate
from torchmark.api.gate import GateOptions
from torchmark.api.report_data import make_live_report_data
from torchmark.api.runs import ComparisonRecorder
from torchmark.cli.ab_options import AbOptions, ab_options, open_place
from torchmark.cli.cases import print_faults, report_empty_selection
from torchmark.cli.gate_options import append_summary, gate_options
from torchmark.cli.options import (
    BackendChoice,
    all_option,
    backend_options,
    check_folder,
    cores_option,
    format_store,
    json_option,
    no_explain_option,
    offer_json,
    open_to_write,
    quiet_option,
    see_folder,
    store_option,
    terminal_width,
    use_colour,
)
from torchmark.cli.output import check_output, echo, write_text
from torchmark.compare.session import run_comparison
from torchmark.errors import ExitCode, SetupError, UsageError
from torchmark.report.html.report_page import render_report
from torchmark.runner.machine import choose_cores


@click.command("ab")
@ab_options
@cores_option
@backend_options
@gate_options
@all_option()
@no_explain_option
@click.option("--html", "page", metavar="FILE", help="Also write all of it as one HTML page.")
@quiet_option()
@store_option
@json_option
def command(
    asked: AbOptions,
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
    if not asked.timeout:
        raise UsageError("--timeout 0 would give up every case before it has begun.")
    check_output(page, "ab.html")
    see_folder()
    comparison, loaded = asked.compare(is_here=not means.is_ray)
    if comparison is None:
        assert loaded is not None
        return report_empty_selection(loaded)
    request = asked.make_request() if loaded else None
    recorder = ComparisonRecorder(request, lambda: open_to_write(store_path), quiet=quiet)
    tell = functools.partial(echo, err=True)
    try:
        with open_place(means, comparison) as place:
            found = run_comparison(comparison, usable, recorder, place)
    except SetupError as error:
        tell(f"torchmark: {error}")
        return ExitCode.REFUSED
    report = hold_against_gate(comparison, found, gate, format_store(store_path), tell)
    if offer_json(report.to_dict, json_file):
        text = report.show(terminal_width(), colour=use_colour(), all_cases=all_cases, explaining=not no_explain)
        echo(text, styled=use_colour())
    if page is not None:
        write_text(render_report(make_live_report_data(comparison, found, {}, title=TITLE)), page)
    append_summary(report.summarise(), gate)
    print_faults(loaded.faults if loaded else ())
    return report.exit_code or (ExitCode.INVALID if loaded and loaded.faults else 0)
