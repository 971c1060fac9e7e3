"""Results laid out for comparison: a grid a label, alternatives as rows, inputs as columns.

No result is lost: two different tasks never share a cell.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from torchmark.model.summary import Summary
from torchmark.model.task import TaskSpec

UNSPECIFIED_ENV = "Unspecified env"
UNKNOWN_ROW = "[Unknown]"
# A row name may grow by this much to tell two tasks apart; beyond, they are numbered.
LONGEST_DISTINCTION = 40

T = TypeVar("T", bound=Hashable)


@dataclasses.dataclass(frozen=True)
class Entry:
    """A task and what was measured of it; None where there are no samples."""

    spec: TaskSpec
    summary: Summary | None


@dataclasses.dataclass(frozen=True)
class Row:
    """One alternative, under one environment and thread count; a cell a column, None where nothing was measured."""

    num_threads: int
    env: str
    name: str
    cells: tuple[Summary | None, ...]


@dataclasses.dataclass(frozen=True)
class Grid:
    """All results of one label. Rows are sorted by threads and environment, otherwise in the order given."""

    label: str | None
    columns: tuple[str | None, ...]
    rows: tuple[Row, ...]


def ordered_unique(elements: Iterable[T]) -> list[T]:
    """The elements without repetitions, in the order they first occur.

    >>> ordered_unique("abca")
    ['a', 'b', 'c']
    """
    return list(dict.fromkeys(elements))


def name_row(spec: TaskSpec) -> str:
    """What a task's row is called unless that would be ambiguous."""
    return spec.sub_label or spec.stmt or UNKNOWN_ROW


def name_env(spec: TaskSpec) -> str:
    """What a task's environment is called."""
    return UNSPECIFIED_ENV if spec.env is None else spec.env


def arrange(entries: Sequence[Entry]) -> tuple[Grid, ...]:
    """A grid for each label, in the order the labels first occur. Tasks must be distinct: merge replicates first."""
    labels = ordered_unique(entry.spec.label for entry in entries)
    return tuple(_arrange_one(label, [e for e in entries if e.spec.label == label]) for label in labels)


def _arrange_one(label: str | None, entries: Sequence[Entry]) -> Grid:
    names = _name_rows([entry.spec for entry in entries])
    columns = ordered_unique(entry.spec.description for entry in entries)
    cells = {(_row_key(e.spec, names), e.spec.description): e.summary for e in entries}
    keys = ordered_unique(_row_key(entry.spec, names) for entry in entries)
    keys.sort(key=lambda key: (key[0], UNSPECIFIED_ENV if key[1] is None else key[1], key[1] is None))
    rows = tuple(
        Row(
            num_threads=threads,
            env=UNSPECIFIED_ENV if env is None else env,
            name=name,
            cells=tuple(cells.get(((threads, env, name), column)) for column in columns),
        )
        for threads, env, name in keys
    )
    return Grid(label, tuple(columns), rows)


def _row_key(spec: TaskSpec, names: dict[TaskSpec, str]) -> tuple[int, str | None, str]:
    return spec.num_threads, spec.env, names[spec]


def _name_rows(specs: Sequence[TaskSpec]) -> dict[TaskSpec, str]:
    """A name for each task, so that no two tasks of one label meet in a cell."""
    seen: dict[tuple[int, str | None, str, str | None], TaskSpec] = {}
    ambiguous = set()
    for spec in specs:
        name = name_row(spec)
        if seen.setdefault((spec.num_threads, spec.env, name, spec.description), spec) != spec:
            ambiguous.add(name)
    names = {spec: name_row(spec) for spec in specs}
    for name in ambiguous:
        names.update(_tell_apart(name, [spec for spec in specs if name_row(spec) == name]))
    return names


def _tell_apart(name: str, specs: Sequence[TaskSpec]) -> dict[TaskSpec, str]:
    """Name tasks by the first of statement and setup that differs for all of them, else by number."""
    codes = ordered_unique(map(_code, specs))
    for field, pattern in (("stmt", "{}: {}"), ("setup", "{} (setup: {})")):
        texts = {_code(spec): getattr(spec, field) for spec in specs}
        if len(set(texts.values())) == len(codes) and all(map(_is_short, texts.values())):
            return {spec: pattern.format(name, texts[_code(spec)]) for spec in specs}
    return {spec: f"{name} [{codes.index(_code(spec)) + 1}]" for spec in specs}


def _code(spec: TaskSpec) -> tuple[str, ...]:
    return spec.stmt, spec.setup, spec.global_setup, spec.sub_label or ""


def _is_short(text: str) -> bool:
    return "\n" not in text and len(text) <= LONGEST_DISTINCTION
