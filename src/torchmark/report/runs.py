"""Runs that are kept, as a table for people."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence

from torchmark.model.run import RunEntry
from torchmark.model.shard import name_shard
from torchmark.report.cells import cut, measure, pad
from torchmark.report.printable import printable

DEFAULT_WIDTH = 80
# The shortest beginning of an id that is shown, and what names and versions are not cut below.
SHORTEST_ID = 8
SHORTEST_TEXT = 6

_HEADINGS = ("run", "name", "when", "cases", "results", "failed", "torch", "state")
_NUMBERS = {"cases", "results", "failed"}
_GAP = "  "


def tell_state(entry: RunEntry) -> str:
    """Whether a run is complete, was stopped or is under way, in one word; of a part of a run, which part it is."""
    if entry.writer is not None:
        return "running"
    if entry.info.finished is not None:
        return "complete"
    shard = name_shard(entry.info)
    return "stopped" if shard is None else f"shard {printable(shard)}"


def render_runs(entries: Sequence[RunEntry], width: int = DEFAULT_WIDTH) -> str:
    """A row for each run. Where there is little room, the number of cases gives way, then versions and names are cut.

    Names last: they are what runs are asked for by.
    """
    length = _find_id_length([entry.info.id for entry in entries])
    rows = (_make_row(entry, length) for entry in entries)
    columns = {column[0]: column for column in zip(_HEADINGS, *rows, strict=True)}
    if _exceed(columns, width):
        del columns["cases"]
    for heading in ("torch", "name"):
        longest = max(_measure(columns[heading]) - _exceed(columns, width), SHORTEST_TEXT)
        columns[heading] = tuple(cut(text, longest) for text in columns[heading])
    lines = zip(*(_pad(column) for column in columns.values()), strict=True)
    return "\n".join(_GAP.join(line).rstrip() for line in lines)


def _exceed(columns: Mapping[str, Sequence[str]], width: int) -> int:
    """By how much a table is too wide."""
    taken = sum(_measure(column) for column in columns.values()) + len(_GAP) * (len(columns) - 1)
    return max(taken - width, 0)


def _make_row(entry: RunEntry, id_length: int) -> tuple[str, ...]:
    info = entry.info
    return (
        info.id[:id_length],
        printable(info.name),
        _show_moment(info.created),
        str(entry.cases),
        f"{info.outcomes}/{info.orders}",
        str(info.failures),
        printable(_tell_torch(entry)),
        tell_state(entry),
    )


def _tell_torch(entry: RunEntry) -> str:
    """The versions; where several targets have names, those."""
    names = [name for name in entry.targets if name]
    return ", ".join(names if len(names) > 1 else entry.torch_versions)


def _find_id_length(ids: Sequence[str]) -> int:
    """How much of each id tells it from all others."""
    ordered = sorted(ids)
    shared = (_count_shared(one, two) + 1 for one, two in itertools.pairwise(ordered))
    return max(SHORTEST_ID, *shared, 0)


def _count_shared(one: str, two: str) -> int:
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False)))


def _show_moment(moment: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
    except (OverflowError, ValueError, OSError):  # no clock has ever shown that
        return "?"


def _measure(column: Sequence[str]) -> int:
    return max(map(measure, column))


def _pad(column: Sequence[str]) -> list[str]:
    width = _measure(column)
    return [pad(text, width, right=column[0] in _NUMBERS) for text in column]
