"""`torchmark schema`: the JSON Schema of what a command writes with --json."""

from __future__ import annotations

import json

import click

from torchmark.cli.output import STANDARD_OUTPUT, write_text
from torchmark.report.schemas import SCHEMAS


@click.command("schema")
@click.argument("name", metavar="COMMAND", type=click.Choice(list(SCHEMAS)))
def command(name: str) -> int:
    """Print the JSON Schema of what a command writes with --json.

    Its title is the value of the field "schema" of such a document. A document with another "schema_version" has
    another layout; fields may be added without one.

    \b
    torchmark schema run > run.schema.json
    """
    write_text(json.dumps(SCHEMAS[name], indent=1) + "\n", STANDARD_OUTPUT)
    return 0
