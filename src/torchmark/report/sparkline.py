"""A series on one line of a terminal, and marks below it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from torchmark.stats.order import quantile

BLOCKS = "▁▂▃▄▅▆▇█"
# For terminals without them, from low to high.
ASCII_BLOCKS = "_.-=+*%#"
GAP = " "


@dataclasses.dataclass(frozen=True)
class Sparkline:
    """The line, and in which of its columns each value is."""

    text: str
    columns: tuple[int, ...]

    def mark(self, marks: Mapping[int, str]) -> str:
        """A line below it, with marks at positions of the series; of two marks in one column the first is shown.

        >>> draw([1.0, 1.0, 2.0], 10).mark({2: "^"})
        '  ^'
        """
        line = [" "] * len(self.text)
        for position, mark in sorted(marks.items(), reverse=True):
            line[self.columns[position]] = mark
        return "".join(line).rstrip()


def draw(values: Sequence[float | None], width: int, *, least_span: float = 0.0, blocks: str = BLOCKS) -> Sparkline:
    """A series in at most so many columns; of values that share one it is the median, and what is missing is blank.

    Less than `least_span` from the lowest to the highest does not fill the height: noise looks as small as it is.

    >>> draw([1.0, None, 8.0, 4.5], 10).text
    '▁ █▅'
    >>> draw([1.0, 1.1, 3.0, 3.1], 2, blocks=ASCII_BLOCKS).text
    '_#'
    """
    size = min(len(values), width)
    columns = tuple(i * size // len(values) for i in range(len(values)))
    bins: list[list[float]] = [[] for _ in range(size)]
    for value, column in zip(values, columns, strict=True):
        if value is not None:
            bins[column].append(value)
    levels = [quantile(sorted(found), 0.5) if found else None for found in bins]
    return Sparkline(_draw_levels(levels, least_span, blocks), columns)


def _draw_levels(levels: Sequence[float | None], least_span: float, blocks: str) -> str:
    known = [level for level in levels if level is not None]
    if not known:
        return GAP * len(levels)
    low, span = min(known), max(max(known) - min(known), least_span)
    if not span:
        # A series that is all alike has nothing to be high or low against.
        return "".join(GAP if level is None else blocks[0] for level in levels)
    # The division comes first: the steps of the tiniest span are too many for a float.
    top = len(blocks) - 1
    return "".join(GAP if level is None else blocks[round((level - low) / span * top)] for level in levels)
