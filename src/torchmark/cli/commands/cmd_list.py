"""`torchmark list`: the benchmarks of suites, files and folders, as a tree."""

from __future__ import annotations

import click

from torchmark.cli.cases import cases_argument, load_cases, print_faults, report_empty_selection, selection_options
from torchmark.cli.options import json_option, offer_json, terminal_width
from torchmark.cli.output import echo
from torchmark.define.selection import Selection
from torchmark.report.as_json import to_json_list
from torchmark.report.text.plan import render_cases, summarise_cases


@click.command("list")
@cases_argument
@selection_options
@json_option
def command(names: tuple[str, ...], selection: Selection, json_file: str | None) -> int:
    """List the benchmarks of a suite, a file, or all files bench_*.py of a folder.

    Without a name it is the standard suite. EXPR has words, and, or, not and parentheses; a word is found in any part
    of a label, runtime, language or tag. An option that is repeated selects what fits any of its values; different
    options have to fit all.

    \b
    torchmark list standard -k "nn and not c++"
    torchmark list benchmarks/ -k '"nn Modules" or Conv2d' --runtime eager
    """
    loaded = load_cases(names, selection)
    if offer_json(lambda: to_json_list(loaded.cases, loaded.faults), json_file) and loaded.cases:
        width = terminal_width()
        echo(render_cases(loaded.cases, width))
        echo(f"\n{summarise_cases(loaded.cases, len(loaded.found), width)}")
    if not loaded.cases:
        return report_empty_selection(loaded)
    print_faults(loaded.faults)
    return loaded.exit_code
