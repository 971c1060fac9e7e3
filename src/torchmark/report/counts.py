"""Counts as plain text, in the layout that torch.utils.benchmark users know."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from torchmark.model.environment import Environment
from torchmark.model.task import TaskSpec
from torchmark.report.printable import count

# The line width that torch prints tensors with, where the user has not set another.
DEFAULT_LINE_WIDTH = 80
# Names are not cut to less than this, however long the numbers before them.
SHORTEST_NAME = 40
# A table longer than this shows its first and last nine rows.
MOST_ROWS = 18


def describe_functions(
    rows: Sequence[tuple[int, str]], *, inclusive: bool, line_width: int = DEFAULT_LINE_WIDTH, truncate: bool = True
) -> str:
    """A row for each function, and the total of exclusive counts.

    >>> print(describe_functions([(20, "a.c:f"), (3, "a.c:g")], inclusive=False))
      20  a.c:f
       3  a.c:g
    <BLANKLINE>
    Total: 23
    """
    # The sign counts twice, as it does for the reference.
    width = max((len(str(n)) + (n < 0) for n, _ in rows), default=0)
    longest = max(line_width - width - 4, SHORTEST_NAME)
    lines = [f"  {n:>{width}}  {_shorten(name, longest)}" for n, name in rows]
    if truncate and len(lines) > MOST_ROWS:
        half = MOST_ROWS // 2
        lines[half:-half] = ["...".rjust(width + 2)]
    if not inclusive:
        lines += ["", f"Total: {sum(n for n, _ in rows)}"]
    return "\n".join(lines)


def _shorten(name: str, longest: int) -> str:
    if len(name) <= longest:
        return name
    start = (longest - 5) // 2
    return f"{name[:start]} ... {name[len(name) - (longest - 5 - start) :]}"


def describe_counts(
    spec: TaskSpec, number: int, *, stmt: tuple[int, int], baseline: tuple[int, int], debug_symbols: bool
) -> str:
    """Task, counts of statement and baseline (all, and without noisy functions), runs and threads."""
    lines = [
        spec.summarize(),
        f"{'':>27}All{'':>10}Noisy symbols removed",
        f"    Instructions: {stmt[0]:>12}{'':>15}{stmt[1]:>12}",
        f"    Baseline:     {baseline[0]:>12}{'':>15}{baseline[1]:>12}",
        f"{number} runs per measurement, {count(spec.num_threads, 'thread')}",
    ]
    if not debug_symbols:
        lines += [
            "Warning: PyTorch was not built with debug symbols.",
            "         Source information may be limited. Rebuild with",
            "         REL_WITH_DEB_INFO=1 for more detailed results.",
        ]
    return "\n".join(lines)


def describe_layouts(totals: Sequence[int], spread: float | None) -> str:
    """In how many layouts a count was taken, and how far apart they are.

    >>> describe_layouts([100, 102, 101], 0.0198)
    'Median of 3 memory layouts, 100 to 102 (2.0%)'
    """
    if spread is None:
        return "Counted in one memory layout"
    return f"Median of {len(totals)} memory layouts, {min(totals)} to {max(totals)} ({spread:.1%})"


@dataclasses.dataclass(frozen=True)
class CountRow:
    """One statement in a table of counts; numbers are per run."""

    name: str
    threads: int
    number: int
    instructions: float
    baseline: float | None
    allocations: float | None
    tensor_allocations: float | None
    cycles: float | None
    layouts: int
    spread: float | None
    environment: Environment | None


def render_counts(rows: Sequence[CountRow], line_width: int = DEFAULT_LINE_WIDTH) -> str:
    """A table with a row for each statement, and below it what the numbers mean."""
    columns = [("instructions", [f"{row.instructions:,.0f}" for row in rows])]
    if any(row.spread is not None for row in rows):
        columns.append(("spread", [f"{row.spread or 0:.1%}" for row in rows]))
    if _has_baseline(rows):
        columns.append(("baseline", [f"{row.baseline or 0:,.0f}" for row in rows]))
    columns.append(("mallocs", [show_few(row.allocations) for row in rows]))
    columns.append(("tensors", [show_few(row.tensor_allocations) for row in rows]))
    if any(row.cycles is not None for row in rows):
        columns.append(("est. cycles", [f"{row.cycles or 0:,.0f}" for row in rows]))
    if len({row.threads for row in rows}) > 1:
        columns.insert(0, ("threads", [str(row.threads) for row in rows]))
    widths = [max(len(head), *map(len, cells)) for head, cells in columns]
    room = max(line_width - sum(width + 2 for width in widths), SHORTEST_NAME // 2)
    names = [_shorten(row.name, room) for row in rows]
    name_width = max(map(len, names))
    lines = [_line("", name_width, [head for head, _ in columns], widths)]
    for i, name in enumerate(names):
        lines.append(_line(name, name_width, [cells[i] for _, cells in columns], widths))
    return "\n".join([*lines, "", *_explain(rows)])


def _has_baseline(rows: Sequence[CountRow]) -> bool:
    return any(row.baseline is not None for row in rows)


def _line(name: str, name_width: int, cells: Sequence[str], widths: Sequence[int]) -> str:
    numbers = "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    return f"{name:<{name_width}}{numbers}"


def show_few(n: float | None) -> str:
    """A number of allocations: whole where it is; a dash where none were counted.

    >>> show_few(3.0), show_few(2.97), show_few(None)
    ('3', '2.97', '–')
    """
    return "–" if n is None else f"{n:,.2f}".removesuffix(".00")


def _explain(rows: Sequence[CountRow]) -> list[str]:
    first = rows[0]
    how = "in one memory layout" if first.layouts == 1 else f"the median of {first.layouts} memory layouts"
    lines = [f"Per run, from {count(first.number, 'run')}; {how}."]
    if _has_baseline(rows):
        lines.append("The baseline is the empty loop.")
    if first.environment is not None:
        lines.append(name_environment(first.environment))
    return lines


def name_environment(environment: Environment) -> str:
    """What counts were taken with, on one line."""
    parts = [f"torch {environment.torch_version}", f"Python {environment.python_version}"]
    if environment.valgrind is not None:
        parts.append(environment.valgrind.replace("valgrind-", "Valgrind "))
    if environment.cpu_capability is not None:
        parts.append(environment.cpu_capability)
    return ", ".join(parts)


# What stands before a function whose source file is not known.
UNKNOWN_FILE = "???:"
# The changes that a person reads through; the rest is added up.
MOST_CHANGES = 20


def render_difference(
    changes: Sequence[tuple[float, str, bool]], *, from_name: str, to_name: str, line_width: int = DEFAULT_LINE_WIDTH
) -> str:
    """Which functions cost more or less, the largest changes first; those known to vary by themselves have a mark."""
    shown, rest = changes[:MOST_CHANGES], changes[MOST_CHANGES:]
    texts = [f"{change:+,.1f}" for change, _, _ in shown]
    total = f"{sum(change for change, _, _ in changes):+,.1f}"
    width = max(map(len, [total, *texts]))
    longest = max(line_width - width - 6, SHORTEST_NAME)
    lines = [f"Instructions per run from  {from_name}  to  {to_name}"]
    for text, (_, function, noisy) in zip(texts, shown, strict=True):
        lines.append(
            f"  {text:>{width}}  {'~ ' if noisy else ''}{_shorten(function.removeprefix(UNKNOWN_FILE), longest)}"
        )
    if rest:
        lines.append(f"  {sum(change for change, _, _ in rest):>+{width},.1f}  in {count(len(rest), 'other function')}")
    lines.append(f"  {total:>{width}}  in all")
    if any(noisy for _, _, noisy in shown):
        lines.append("~ varies with the layout of memory")
    return "\n".join(lines)
