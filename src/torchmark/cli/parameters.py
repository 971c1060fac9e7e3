"""Kinds of option values that several commands take."""

from __future__ import annotations

import click


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
