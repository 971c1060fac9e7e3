"""`torchmark doctor`: what this machine has and lacks for good measurements."""

from __future__ import annotations

import click
from rich.console import Console

from torchmark.analysis.diagnose import diagnose
from torchmark.cli.options import is_standard_output, json_option, use_colour, write_json
from torchmark.cli.output import echo
from torchmark.report.as_json import to_json_findings
from torchmark.report.text.machine import print_findings
from torchmark.runner.machine import probe_machine


@click.command("doctor")
@json_option
def command(json_file: str | None) -> int:
    """Say what this machine has and lacks for good measurements, each with what to do about it."""
    machine = probe_machine()
    findings = diagnose(machine)
    if json_file is not None:
        write_json(to_json_findings(machine, findings), json_file)
    if not is_standard_output(json_file):
        console = Console(highlight=False)
        with console.capture() as captured:
            print_findings(findings, console)
        echo(captured.get(), nl=False, styled=use_colour())
    return 0
