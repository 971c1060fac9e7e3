"""Results laid out for comparison: a grid for each label, alternatives as rows, inputs as columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from torchmark.model.task import Summary, TaskSpec

UNSPECIFIED_ENV = "Unspecified env"
UNKNOWN_ROW = "[Unknown]"
# A row name may grow by this much to tell two tasks apart; beyond, they are numbered.
LONGEST_DISTINCTION = 40

T = TypeVar("T", bound=Hashable)
Entries = Sequence[tuple[TaskSpec, "Summary | None"]]
"""Tasks and what was measured of each; None where there are no samples."""


@dataclasses.dataclass(frozen=True)
class GridRow:
    """One alternative, under one environment and thread count; a cell a column, None where nothing was measured."""

    num_threads: int
    env: str | None
    name: str
    cells: tuple[Summary | None, ...]


@dataclasses.dataclass(frozen=True)
class Grid:
    """All results of one label. Rows are sorted by threads and environment, otherwise in the order given."""

    label: str | None
    columns: tuple[str | None, ...]
    rows: tuple[GridRow, ...]


def ordered_unique(elements: Iterable[T]) -> list[T]:
    """The elements without repetitions, in the order they first occur.

    >>> ordered_unique("abca")
    ['a', 'b', 'c']
    """
    return list(dict.fromkeys(elements))


def name_row(spec: TaskSpec) -> str:
    """What a task's row is called unless that would be ambiguous."""
    return spec.sub_label or spec.stmt or UNKNOWN_ROW


def name_env(env: str | None) -> str:
    return UNSPECIFIED_ENV if env is None else env


def has_several_envs(grid: Grid) -> bool:
    """Whether environments have to be shown to tell the rows apart."""
    return len({row.env for row in grid.rows}) > 1


def arrange(entries: Entries) -> tuple[Grid, ...]:
    """A grid for each label, in the order the labels first occur. Tasks must be distinct: merge replicates first."""
    labels = ordered_unique(spec.label for spec, _ in entries)
    return tuple(_arrange_one(label, [entry for entry in entries if entry[0].label == label]) for label in labels)


def _arrange_one(label: str | None, entries: Entries) -> Grid:
    specs = [spec for spec, _ in entries]
    names, columns = _name_rows(specs), ordered_unique(spec.description for spec in specs)
    keys = [(spec.num_threads, spec.env, names[spec]) for spec in specs]
    cells = {(key, spec.description): summary for key, (spec, summary) in zip(keys, entries, strict=True)}
    ordered = sorted(ordered_unique(keys), key=lambda key: (key[0], name_env(key[1]), key[1] is None))
    rows = (
        GridRow(num_threads, env, name, tuple(cells.get(((num_threads, env, (name, code)), one)) for one in columns))
        for num_threads, env, (name, code) in ordered
    )
    return Grid(label, tuple(columns), tuple(rows))


_Name = tuple[str, tuple[str, ...]]
"""A row's name, and where that alone would be ambiguous, the task's code beside it."""


def _name_rows(specs: Sequence[TaskSpec]) -> dict[TaskSpec, _Name]:
    """A name for each task, so that no two tasks of one label meet in a cell."""
    seen: dict[tuple[int, str | None, str, str | None], TaskSpec] = {}
    ambiguous = set()
    for spec in specs:
        name = name_row(spec)
        if seen.setdefault((spec.num_threads, spec.env, name, spec.description), spec) != spec:
            ambiguous.add(name)
    names: dict[TaskSpec, _Name] = {spec: (name_row(spec), ()) for spec in specs}
    for name in ambiguous:
        names.update(_name_apart(name, [spec for spec in specs if name_row(spec) == name]))
    return names


def _name_apart(name: str, specs: Sequence[TaskSpec]) -> dict[TaskSpec, _Name]:
    """Name tasks by the first of statement and setup that differs for all of them, else by number."""
    codes = ordered_unique(map(_code, specs))
    texts = [f"{name} [{i + 1}]" for i in range(len(codes))]
    for field, pattern in ((1, "{} (setup: {})"), (0, "{}: {}")):
        parts = [code[field] for code in codes]
        if len(set(parts)) == len(codes) and all("\n" not in one and len(one) <= LONGEST_DISTINCTION for one in parts):
            texts = [pattern.format(name, part) for part in parts]
    named = dict(zip(codes, texts, strict=True))
    return {spec: (named[_code(spec)], _code(spec)) for spec in specs}


def _code(spec: TaskSpec) -> tuple[str, ...]:
    return spec.stmt, spec.setup, spec.global_setup, repr(spec.sub_label)
