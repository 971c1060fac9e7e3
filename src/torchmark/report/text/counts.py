"""Counts as text, functions by cost, and where a difference in instructions comes from."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from torchmark.analysis.verdict.explain import NAMELESS, OTHER, split_name
from torchmark.model.caveats import Caveat
from torchmark.model.environment import Environment
from torchmark.model.judgement import Explanation, FunctionChange, StageChange
from torchmark.model.plan import Case, Target
from torchmark.model.task import TaskSpec
from torchmark.report.caveats import describe_advice, describe_fact
from torchmark.report.text.table import INDENT, TextColumn, TextRow, TextTable
from torchmark.report.text.terminal import (
    DEFAULT_WIDTH,
    ELLIPSIS,
    LEAST_WIDTH,
    count,
    cut_middle,
    measure,
    printable,
    wrap,
)
from torchmark.report.text.units import format_share_cell

# Names are not cut to less than this, however long the numbers before them.
SHORTEST_NAME = 40
# A table longer than this shows its first and last nine rows.
MOST_ROWS = 18


def describe_functions(
    rows: Sequence[tuple[int, str]], *, inclusive: bool, line_width: int = DEFAULT_WIDTH, truncate: bool = True
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


def render_counts(rows: Sequence[CountRow], line_width: int = DEFAULT_WIDTH) -> str:
    shown = {"instructions", "mallocs", "tensors"}
    shown |= {"threads"} if len({row.threads for row in rows}) > 1 else set()
    shown |= {"spread"} if any(row.spread is not None for row in rows) else set()
    shown |= {"baseline"} if _has_baseline(rows) else set()
    shown |= {"est. cycles"} if any(row.cycles is not None for row in rows) else set()
    name = TextColumn("name", "", left=True, least=LEAST_NAME)
    columns = [name, *(TextColumn(key) for key in _fill_counts(rows[0]) if key in shown)]
    texts = [TextRow({"name": row.name, **_fill_counts(row)}) for row in rows]
    return "\n".join([*TextTable(columns, texts, line_width, name="name").lines(), "", *_explain(rows)])


def _fill_counts(row: CountRow) -> dict[str, str]:
    """All columns in their order."""
    return {
        "threads": str(row.threads),
        "instructions": f"{row.instructions:,.0f}",
        "spread": f"{row.spread or 0:.1%}",
        "baseline": f"{row.baseline or 0:,.0f}",
        "mallocs": format_few(row.allocations),
        "tensors": format_few(row.tensor_allocations),
        "est. cycles": f"{row.cycles or 0:,.0f}",
    }


def describe_caveats(names: Sequence[str], caveats: Sequence[Sequence[Caveat]]) -> Iterator[str]:
    notes = [(name, caveat) for name, own in zip(names, caveats, strict=True) for caveat in own]
    told = [(name, describe_fact(caveat)) for name, caveat in notes]
    facts = Counter(fact for _, fact in told)
    # A fact that all results share is one of the machine, and is said once.
    whose = (("" if facts[fact] == len(names) else f"{name}: ", fact) for name, fact in told)
    yield from dict.fromkeys(f"NOTE: {name}{fact}" for name, fact in whose)
    yield from dict.fromkeys(describe_advice(caveat, "shell", ()) for _, caveat in notes)


def _has_baseline(rows: Sequence[CountRow]) -> bool:
    return any(row.baseline is not None for row in rows)


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
    lines += ["The baseline is the empty loop."] if _has_baseline(rows) else []
    return [*lines, name_environment(first.environment)] if first.environment is not None else lines


def name_environment(environment: Environment) -> str:
    parts = [f"torch {environment.torch_version}", f"Python {environment.python_version}"]
    parts += [] if environment.valgrind is None else [environment.valgrind.replace("valgrind-", "Valgrind ")]
    parts += [] if environment.cpu_capability is None else [environment.cpu_capability]
    return ", ".join(parts)


# What stands before a function whose source file is not known.
UNKNOWN_FILE = "???:"
# The changes that a person reads through; the rest is added up.
MOST_CHANGES = 20

# What one statement costs more than another in a function, which is named; whether that is noise.
Change: TypeAlias = tuple[float, str, bool]


def render_difference(
    changes: Sequence[Change], *, from_name: str, to_name: str, line_width: int = DEFAULT_WIDTH
) -> str:
    shown, rest = changes[:MOST_CHANGES], changes[MOST_CHANGES:]
    rows = [(change, _name(function, noisy=noisy)) for change, function, noisy in shown]
    if rest:
        rows.append((sum(change for change, _, _ in rest), f"in {count(len(rest), 'other function')}"))
    rows.append((sum(change for change, _, _ in changes), "in all"))
    texts = [TextRow({"change": f"{change:+,.1f}", FUNCTION: name}) for change, name in rows]
    table = _lay_out((TextColumn("change", ""),), texts, line_width - len(INDENT), head="")
    lines = [f"Instructions per run from  {from_name}  to  {to_name}", *(INDENT + line for line in table.lines())]
    if any(noisy for _, _, noisy in shown):
        lines.append(VARIES)
    return "\n".join(lines)


def _lay_out(columns: Sequence[TextColumn], rows: Sequence[TextRow], width: int, head: str = "function") -> TextTable:
    """Columns of functions, of which the last one before the names gives way."""
    name = TextColumn(FUNCTION, head, left=True, least=LEAST_NAME)
    gives_way = [column.key for column in columns[1:]][-1:]
    return TextTable([*columns, name], rows, width, name=FUNCTION, gives_way=gives_way, shorten=fit_name)


# As many as a person reads through; the rest is added up.
MOST_FUNCTIONS = 25
# With less than this for names, the last column of numbers gives way.
LEAST_NAME = 20
HEADS = ("self", "share", "with callees")
FUNCTION = "function"
NOISY = "~ "
VARIES = "~ varies with the layout of memory"


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
    lines = [(_cells(row, total), _name(row.name, noisy=row.noisy)) for row in shown]
    if rest:
        others = sum(row.exclusive for row in rest)
        lines.append(((f"{others:,.1f}", format_part(others, total)), f"in {count(len(rest), 'other function')}"))
    lines.append(((f"{total:,.1f}", format_part(total, total)), "in all"))
    texts = [TextRow({FUNCTION: name, **dict(zip(HEADS, cells, strict=False))}) for cells, name in lines]
    table = _lay_out([*map(TextColumn, HEADS)], texts, width)
    legend = [VARIES] if any(row.noisy for row in shown) else []
    return "\n".join([*wrap(f"Instructions per run of {printable(title)}", width, 2), *table.lines(), *legend])


def _cells(row: FunctionRow, total: float) -> tuple[str, ...]:
    return f"{row.exclusive:,.1f}", format_part(row.exclusive, total), f"{row.inclusive:,.1f}"


def format_part(part: float, total: float) -> str:
    return format_share_cell(part / total) if total > 0 and part >= 0 else ""


def _name(text: str, *, noisy: bool) -> str:
    return (NOISY if noisy else "") + printable(text.removeprefix(UNKNOWN_FILE))


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


SIDES = ("base", "head", "change")


def _stage_lines(stages: Sequence[StageChange], width: int) -> list[str]:
    rows = [(stage.stage, (stage.base, stage.head, stage.delta)) for stage in stages if abs(stage.delta) >= VISIBLE]
    texts = [
        TextRow({"stage": name, "base": f"{base:,.1f}", "head": f"{head:,.1f}", "change": f"{delta:+,.1f}"})
        for name, (base, head, delta) in [*rows, ("in all", _add_up(stages))]
    ]
    name, *sides = TextColumn("stage", "instructions per run", left=True), *map(TextColumn, SIDES)
    table = TextTable([name, *sides], texts, width, gives_way=SIDES)
    # The changes matter most, and one side without the other tells nothing.
    return (TextTable([name, *sides[2:]], texts, width) if table.left_out else table).lines()


def _function_lines(explanation: Explanation, width: int, most: int) -> list[str]:
    changed = [function for function in explanation.functions if function.delta]
    shown, rest = changed[:most], changed[most:]
    rows = [(change.delta, change.stage, printable(change.function)) for change in shown]
    if rest:
        rows.append((_add_up(rest)[2], "", f"in {count(len(rest), 'other function')}"))
    rows.append((_add_up(changed)[2], "", "in all"))
    texts = [TextRow({"change": f"{delta:+,.1f}", "stage": stage, FUNCTION: name}) for delta, stage, name in rows]
    return _lay_out((TextColumn("change"), TextColumn("stage", left=True)), texts, width).lines()


def fit_name(name: str, width: int) -> str:
    """A function's name in at most so many columns: template arguments go first, the innermost before the others."""
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
    base, head = sum(change.base for change in changes), sum(change.head for change in changes)
    return base, head, head - base
