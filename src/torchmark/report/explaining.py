"""Where a difference in instructions comes from, as two small tables: stages of a call, and functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchmark.analysis.naming import NAMELESS, split_name
from torchmark.analysis.stages import OTHER
from torchmark.model.judgement import Explanation, FunctionChange, StageChange
from torchmark.report.cells import ELLIPSIS, cut_middle, measure, pad, wrap
from torchmark.report.functions import LEAST_NAME, LEAST_WIDTH
from torchmark.report.printable import count, printable
from torchmark.report.units import show_share

# As many as are read at a glance, below one case of many.
MOST_FUNCTIONS = 8
# Of a difference, what functions that are not listed may have of it, all their changes added up without their signs.
LITTLE = 0.01
# Half of the last digit that is shown.
VISIBLE = 0.05
# A larger share of instructions that no name is known for can hide the change of a stage.
NOTABLE_NAMELESS = 0.05


def render_explanation(explanation: Explanation, width: int, *, most: int = MOST_FUNCTIONS) -> str:
    """The stages that differ, then the functions that differ most; each table ends with the whole difference."""
    width = max(width, LEAST_WIDTH)
    lines = [*_stage_lines(explanation.stages, width), "", *_function_lines(explanation, width, most)]
    lines += _tell_nameless("base", [(function, function.base) for function in explanation.functions], width)
    lines += _tell_nameless("head", [(function, function.head) for function in explanation.functions], width)
    return "\n".join(lines)


def _stage_lines(stages: Sequence[StageChange], width: int) -> list[str]:
    total = _add_up(stages)
    shown = [(stage.stage, (stage.base, stage.head, stage.delta)) for stage in stages if abs(stage.delta) >= VISIBLE]
    rows: list[tuple[str, tuple[str, ...]]] = [("instructions per run", ("base", "head", "change"))]
    rows += [(name, _show(numbers)) for name, numbers in [*shown, ("in all", total)]]
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


def _tell_nameless(side: str, costs: Sequence[tuple[FunctionChange, float]], width: int) -> list[str]:
    """What could not be placed because a library has no symbols, where that is much."""
    total = sum(cost for _, cost in costs)
    nameless = sum(cost for change, cost in costs if change.function.startswith(NAMELESS) and change.stage == OTHER)
    if not total or nameless / total < NOTABLE_NAMELESS:
        return []
    share = show_share(nameless / total)
    return wrap(f"Note: {share} of {side}'s instructions are in functions whose names its libraries lack.", width, 2)


def plain_explanation(explanation: Explanation, most: int | None = None) -> dict[str, Any]:
    """An explanation for JSON. What `functions` leaves out is summed up in `rest`, with how many functions that is.

    Without `most`, as many functions as leave next to nothing of the difference to the rest.
    """
    number = _count_telling(explanation.functions) if most is None else most
    shown, rest = explanation.functions[:number], explanation.functions[number:]
    return {
        **_plain_numbers(explanation.functions),
        "stages": [{"stage": stage.stage, **_plain_numbers([stage])} for stage in explanation.stages],
        "functions": [{"function": f.function, "stage": f.stage, **_plain_numbers([f])} for f in shown],
        "rest": {"functions": len(rest), **_plain_numbers(rest)},
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


def _plain_numbers(changes: Sequence[FunctionChange | StageChange]) -> dict[str, float]:
    return dict(zip(("base", "head", "delta"), _add_up(changes), strict=True))


def _add_up(changes: Sequence[FunctionChange | StageChange]) -> tuple[float, float, float]:
    """Instructions of base, of head, and how many more that is."""
    base, head = sum(change.base for change in changes), sum(change.head for change in changes)
    return base, head, head - base


def _show(numbers: tuple[float, float, float]) -> tuple[str, ...]:
    base, head, delta = numbers
    return f"{base:,.1f}", f"{head:,.1f}", f"{delta:+,.1f}"
