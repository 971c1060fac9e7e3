"""Counts as text, functions by cost, and where a difference in instructions comes from."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from torchmark.analysis.verdict.explain import NAMELESS, OTHER, split_name
from torchmark.model.caveats import Caveat
from torchmark.model.environment import Environment
from torchmark.model.judgement import Explanation, FunctionChange, StageChange
from torchmark.model.plan import Case, Target
from torchmark.model.task import TaskSpec
from torchmark.report.caveats import describe_advice, describe_fact
from torchmark.report.text.terminal import ELLIPSIS, count, cut_middle, measure, pad, printable, wrap
from torchmark.report.text.units import format_share_cell

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
    columns.append(("mallocs", [format_few(row.allocations) for row in rows]))
    columns.append(("tensors", [format_few(row.tensor_allocations) for row in rows]))
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


def describe_caveats(names: Sequence[str], caveats: Sequence[Sequence[Caveat]]) -> Iterator[str]:
    """The caveats of each result as notes with its name, each once, then what to do."""
    notes = [(name, caveat) for name, own in zip(names, caveats, strict=True) for caveat in own]
    facts = [describe_fact(caveat) for _, caveat in notes]
    # A fact that all results share is one of the machine, and is said once.
    whose = [
        "" if facts.count(fact) == len(names) else f"{name}: " for (name, _), fact in zip(notes, facts, strict=True)
    ]
    yield from dict.fromkeys(f"NOTE: {name}{fact}" for name, fact in zip(whose, facts, strict=True))
    yield from dict.fromkeys(describe_advice(caveat, "shell", ()) for _, caveat in notes)


def _has_baseline(rows: Sequence[CountRow]) -> bool:
    return any(row.baseline is not None for row in rows)


def _line(name: str, name_width: int, cells: Sequence[str], widths: Sequence[int]) -> str:
    numbers = "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    return f"{name:<{name_width}}{numbers}"


def format_few(n: float | None) -> str:
    """A number of allocations: whole where it is; a dash where none were counted.

    >>> format_few(3.0), format_few(2.97), format_few(None)
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

# What one statement costs more than another in a function, which is named; whether that is noise.
Change: TypeAlias = tuple[float, str, bool]


def render_difference(
    changes: Sequence[Change], *, from_name: str, to_name: str, line_width: int = DEFAULT_LINE_WIDTH
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


@dataclasses.dataclass(frozen=True)
class FunctionTable:
    """What the functions of a case cost in one environment, per run."""

    case: Case
    target: Target
    title: str
    rows: tuple[FunctionRow, ...]


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
    return format_share_cell(part / total) if total > 0 and part >= 0 else ""


def _name(text: str) -> str:
    return printable(text.removeprefix(UNKNOWN_FILE))


def _join(cells: Sequence[str], name: str, sizes: Sequence[int], width: int) -> str:
    numbers = "  ".join(pad(cell, size, right=True) for cell, size in zip(cells, sizes, strict=False))
    return f"{numbers}  {cut_middle(name, max(width - len(numbers) - 2, 0))}".rstrip()


# As many as are read at a glance, below one case of many.
MOST_EXPLAINED_FUNCTIONS = 8
# Of a difference, what functions that are not listed may have of it, all their changes added up without their signs.
LITTLE = 0.01
# Half of the last digit that is shown.
VISIBLE = 0.05
# A larger share of instructions that no name is known for can hide the change of a stage.
NOTABLE_NAMELESS = 0.05


def render_explanation(explanation: Explanation, width: int, *, most: int = MOST_EXPLAINED_FUNCTIONS) -> str:
    """The stages that differ, then the functions that differ most; each table ends with the whole difference."""
    width = max(width, LEAST_WIDTH)
    lines = [*_stage_lines(explanation.stages, width), "", *_function_lines(explanation, width, most)]
    lines += _describe_nameless("base", [(function, function.base) for function in explanation.functions], width)
    lines += _describe_nameless("head", [(function, function.head) for function in explanation.functions], width)
    return "\n".join(lines)


def _stage_lines(stages: Sequence[StageChange], width: int) -> list[str]:
    total = _add_up(stages)
    shown = [(stage.stage, (stage.base, stage.head, stage.delta)) for stage in stages if abs(stage.delta) >= VISIBLE]
    rows: list[tuple[str, tuple[str, ...]]] = [("instructions per run", ("base", "head", "change"))]
    rows += [(name, _list_cells(numbers)) for name, numbers in [*shown, ("in all", total)]]
    sizes = [max(len(cells[i]) for _, cells in rows) for i in range(3)]
    names = max(len(name) for name, _ in rows)
    if names + sum(sizes) + 2 * len(sizes) > width:
        # The changes matter most.
        rows, sizes = [(name, cells[2:]) for name, cells in rows], sizes[2:]
    return [
        pad(name, names) + "".join(f"  {cell:>{size}}" for cell, size in zip(cells, sizes, strict=True))
        for name, cells in rows
    ]


def _function_lines(explanation: Explanation, width: int, most: int) -> list[str]:
    changed = [function for function in explanation.functions if function.delta]
    shown, rest = changed[:most], changed[most:]
    rows = [("change", "stage", "function")]
    rows += [(f"{change.delta:+,.1f}", change.stage, change.function) for change in shown]
    if rest:
        rows.append((f"{_add_up(rest)[2]:+,.1f}", "", f"in {count(len(rest), 'other function')}"))
    rows.append((f"{_add_up(changed)[2]:+,.1f}", "", "in all"))
    numbers, stages = (max(len(row[i]) for row in rows) for i in range(2))
    room = width - numbers - stages - 4
    if room < LEAST_NAME:
        return [f"{number:>{numbers}}  {fit_name(name, width - numbers - 2)}" for number, _, name in rows]
    return [f"{number:>{numbers}}  {stage:<{stages}}  {fit_name(name, room)}" for number, stage, name in rows]


def fit_name(name: str, width: int) -> str:
    """A function's name in at most so many columns: template arguments go first, the innermost before the others.

    >>> fit_name("at::sum<std::vector<int, std::allocator<int>>>::call", 36)
    'at::sum<std::vector<…>>::call'
    >>> fit_name("at::sum<std::vector<int>>::call", 17)
    'at::sum<…>::call'
    """
    name = printable(name)
    for depth in range(name.count("<"), -1, -1):
        short = _elide(name, depth)
        if measure(short) <= width:
            return short
    return cut_middle(_elide(name, 0), width)


def _elide(name: str, deepest: int) -> str:
    """A name in which dots stand for what is in more brackets than that."""
    kept: list[str] = []
    depth = 0
    for token in split_name(name):
        depth -= token == ">"
        if depth <= deepest:
            kept.append(token)
        elif kept[-1] != ELLIPSIS:
            kept.append(ELLIPSIS)
        depth += token == "<"
    return "".join(kept)


def _describe_nameless(side: str, costs: Sequence[tuple[FunctionChange, float]], width: int) -> list[str]:
    """What could not be placed because a library has no symbols, where that is much."""
    total = sum(cost for _, cost in costs)
    nameless = sum(cost for change, cost in costs if change.function.startswith(NAMELESS) and change.stage == OTHER)
    if not total or nameless / total < NOTABLE_NAMELESS:
        return []
    share = format_share_cell(nameless / total)
    return wrap(f"Note: {share} of {side}'s instructions are in functions whose names its libraries lack.", width, 2)


def to_json_explanation(explanation: Explanation, most: int | None = None) -> dict[str, Any]:
    """An explanation for JSON. What `functions` leaves out is summed up in `rest`, with how many functions that is.

    Without `most`, as many functions as leave next to nothing of the difference to the rest.
    """
    number = _count_telling(explanation.functions) if most is None else most
    shown, rest = explanation.functions[:number], explanation.functions[number:]
    return {
        **_to_json_numbers(explanation.functions),
        "stages": [{"stage": stage.stage, **_to_json_numbers([stage])} for stage in explanation.stages],
        "functions": [{"function": f.function, "stage": f.stage, **_to_json_numbers([f])} for f in shown],
        "rest": {"functions": len(rest), **_to_json_numbers(rest)},
    }


def _count_telling(functions: Sequence[FunctionChange]) -> int:
    """How many of the first leave so little to the others that they hardly matter, whatever their signs are."""
    left = sum(abs(change.delta) for change in functions)
    little = LITTLE * abs(_add_up(functions)[2])
    for number, change in enumerate(functions):
        if left <= little:
            return number
        left -= abs(change.delta)
    return len(functions)


def _to_json_numbers(changes: Sequence[FunctionChange | StageChange]) -> dict[str, float]:
    return dict(zip(("base", "head", "delta"), _add_up(changes), strict=True))


def _add_up(changes: Sequence[FunctionChange | StageChange]) -> tuple[float, float, float]:
    """Instructions of base, of head, and how many more that is."""
    base, head = sum(change.base for change in changes), sum(change.head for change in changes)
    return base, head, head - base


def _list_cells(numbers: tuple[float, float, float]) -> tuple[str, ...]:
    base, head, delta = numbers
    return f"{base:,.1f}", f"{head:,.1f}", f"{delta:+,.1f}"
