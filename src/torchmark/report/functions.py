"""Where the instructions of a case go: a table by function."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from torchmark.report.cells import cut_middle, pad, wrap
from torchmark.report.counts import UNKNOWN_FILE
from torchmark.report.printable import count, printable
from torchmark.report.units import show_share

LEAST_WIDTH = 40
# As many as a person reads through; the rest is added up.
MOST_FUNCTIONS = 25
# With less than this for names, the last column of numbers gives way.
LEAST_NAME = 20
HEADS = ("self", "share", "with callees")
NOISY = "~ "


@dataclasses.dataclass(frozen=True)
class FunctionRow:
    """One function: instructions per run in itself, and with all that it calls. A recursive call counts once more."""

    name: str
    exclusive: float
    inclusive: float
    noisy: bool = False
    """Whether it does not cost the same in all layouts."""


def render_functions(
    title: str, rows: Sequence[FunctionRow], width: int, *, inclusive: bool = False, most: int = MOST_FUNCTIONS
) -> str:
    """The functions that cost most, in themselves or with what they call, the rest, and the total."""
    width = max(width, LEAST_WIDTH)
    total = sum(row.exclusive for row in rows)
    ordered = sorted(rows, key=lambda row: (-(row.inclusive if inclusive else row.exclusive), row.name))
    shown, rest = ordered[:most], ordered[most:]
    lines = [(_cells(row, total), (NOISY if row.noisy else "") + _name(row.name)) for row in shown]
    if rest:
        others = sum(row.exclusive for row in rest)
        lines.append(((f"{others:,.1f}", _share(others, total), ""), f"in {count(len(rest), 'other function')}"))
    lines.append(((f"{total:,.1f}", _share(total, total), ""), "in all"))
    sizes = [max(len(head), *(len(cells[i]) for cells, _ in lines)) for i, head in enumerate(HEADS)]
    if width - sum(sizes) - 2 * len(sizes) < LEAST_NAME:
        sizes.pop()
    texts = wrap(f"Instructions per run of {printable(title)}", width, 2)
    texts += [_join(cells, name, sizes, width) for cells, name in [(HEADS, "function"), *lines]]
    if any(row.noisy for row in shown):
        texts.append(f"{NOISY}varies with the layout of memory")
    return "\n".join(texts)


def _cells(row: FunctionRow, total: float) -> tuple[str, str, str]:
    return f"{row.exclusive:,.1f}", _share(row.exclusive, total), f"{row.inclusive:,.1f}"


def _share(part: float, total: float) -> str:
    return show_share(part / total) if total > 0 and part >= 0 else ""


def _name(text: str) -> str:
    return printable(text.removeprefix(UNKNOWN_FILE))


def _join(cells: Sequence[str], name: str, sizes: Sequence[int], width: int) -> str:
    numbers = "  ".join(pad(cell, size, right=True) for cell, size in zip(cells, sizes, strict=False))
    return f"{numbers}  {cut_middle(name, max(width - len(numbers) - 2, 0))}".rstrip()
