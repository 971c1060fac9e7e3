"""Options and kinds of values that several commands take."""

from __future__ import annotations

from typing import IO

import click

# Opened at once: a file that cannot be written is told before anything is measured.
json_option = click.option(
    "--json", "json_file", type=click.File("w", lazy=False), metavar="FILE", help="Write JSON; - is standard output."
)


def is_standard_output(file: IO[str] | None) -> bool:
    """Whether JSON goes where text for people would, which then has to stay away."""
    return file is not None and file.name == "<stdout>"


class PositiveIntegers(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Whole numbers above zero, separated by commas."""

    name = "N[,N...]"

    def convert(
        self, value: str | tuple[int, ...], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Parse, or say what was expected."""
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(int(part) for part in value.split(","))
        except ValueError:
            numbers = ()
        if not numbers or min(numbers) < 1:
            self.fail(f"{value!r} is not a list of whole numbers above 0, such as 1,2,4.", param, ctx)
        return numbers
