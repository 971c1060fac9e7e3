"""`torchmark doctor`: what this machine has and lacks for good measurements."""

from __future__ import annotations

import click
from rich.console import Console

from torchmark.analysis.diagnose import diagnose
from torchmark.cli.options import json_option, offer_json, use_colour
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
    if offer_json(lambda: to_json_findings(machine, findings), json_file):
        console = Console(highlight=False)
        with console.capture() as captured:
            print_findings(findings, console)
        echo(captured.get(), nl=False, styled=use_colour())
    return 0
