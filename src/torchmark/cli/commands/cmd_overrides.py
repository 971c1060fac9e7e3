"""`torchmark overrides`: what `__torch_function__` costs, by type and by call, against plain Tensors."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import click

from torchmark.analysis.overrides import hold_to_expectations
from torchmark.api.gate import GateOptions
from torchmark.api.override_comparison import check_types, compare_overrides, measure_overrides
from torchmark.api.runs import ComparisonRecorder
from torchmark.cli.cases import report_empty_selection
from torchmark.cli.gate_options import append_summary, gate_options
from torchmark.cli.options import (
    all_option,
    check_folder,
    format_store,
    json_option,
    offer_json,
    open_to_write,
    quiet_option,
    see_folder,
    store_option,
    terminal_width,
    use_colour,
)
from torchmark.cli.output import echo, write_bytes
from torchmark.cli.overrides_options import DEFAULT_OUTPUT, OverridesOptions, overrides_options
from torchmark.errors import ExitCode, InterpreterError, SetupError
from torchmark.processes import Terminated
from torchmark.report.as_json import to_json_overrides
from torchmark.report.text.overrides import describe_bundle, render_overrides
from torchmark.runner.machine import choose_cores


@click.command("overrides")
@overrides_options
@gate_options
@all_option("compared case")
@store_option
@quiet_option()
@json_option
def command(
    asked: OverridesOptions,
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
    asked.check()
    see_folder()
    loaded = asked.load()
    if not loaded.cases:
        return report_empty_selection(loaded)
    request = asked.make_request()
    check_types(asked.types, request.targets)
    tell, cores = functools.partial(echo, err=True), choose_cores(None)
    if not asked.compares:
        try:
            with open_to_write(store_path) as store:
                code, run, shown, rows = measure_overrides(request, loaded.cases, cores, store, quiet=quiet)
        except Terminated as ended:
            # Before there was anything to show.
            return ExitCode.SIGNALLED + ended.number
        told = run, rows, hold_to_expectations(rows)
        if offer_json(lambda: to_json_overrides(*told), json_file):
            width, colour, named = terminal_width(), use_colour(), format_store(store_path)
            echo(render_overrides(*told, width, colour=colour, shown=shown, store=named), styled=colour)
        return code
    question = asked.make_question(loaded.cases)
    recorder = ComparisonRecorder(request, lambda: open_to_write(store_path), "overrides-ab", quiet)
    try:
        changed = compare_overrides(question, cores, recorder, gate, format_store(store_path), tell)
    except InterpreterError:
        raise
    except SetupError as error:
        tell(f"torchmark: {error}")
        return ExitCode.REFUSED
    report, output = changed.report, asked.output or DEFAULT_OUTPUT
    shows_text = offer_json(report.to_dict, json_file)
    if shows_text:
        echo(report.show(terminal_width(), colour=use_colour(), all_cases=all_cases), styled=use_colour())
    append_summary(report.summarise(), gate)
    # Last: whatever goes wrong with it, the verdicts have been told.
    write_bytes(changed.pack(Path(output).stem or "overrides", store_path), output)
    if shows_text:
        drawn, slower = len(changed.traced.stacks), len(changed.slower)
        echo(f"\n{describe_bundle(output, os.path.getsize(output), drawn, slower)}")
    return report.exit_code
