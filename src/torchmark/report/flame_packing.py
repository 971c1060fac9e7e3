"""Flame graphs as compact JSON for `assets/flame.js`, with one table of names for all graphs of a page.

names = NameTable()
graphs = [pack_flame(flame, names) for flame in flames]
table = names.entries  # complete once all graphs are packed

In the page, with the texts of flame.js and flame.css (`embedding.load_asset`) and JSON by `embedding.script_json`:
torchmarkFlame(element, table, graphs[0]) empties an element, draws into it, and follows its width. What is in a graph
and in the table is between this file and flame.js.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchmark.analysis.flame import prune
from torchmark.model.flame import Flame, Frame, Node
from torchmark.report.flame_names import FAMILIES, colour_of, full_name, label_of, origin_of
from torchmark.report.flame_numbers import gauge_of
from torchmark.report.flame_rounding import round_to_runs
from torchmark.report.printable import printable

# A number is written in digits of five bits, the lowest first; a sixth says that more follow.
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
# How many frames a frame calls is a part of its first number up to here, and a number of its own from here on.
MANY = 3


class NameTable:
    """The frames of all graphs of a page. With `full`, tooltips have names with parameters; they take twice the room.

    An entry is a label, a colour, an origin, the frames that any graph has below it, and a full name if it is another
    than the label. The first two entries are the names of colours, and the origins.
    """

    def __init__(self, *, full: bool = False) -> None:
        self._full = full
        self._numbers: dict[Frame, int] = {}
        self._origins: dict[str, int] = {"": 0}
        self._below: dict[int, dict[int, int]] = {}

    def number(self, frame: Frame) -> int:
        """The place of a frame in `entries`."""
        self._origins.setdefault(origin_of(frame), len(self._origins))
        return self._numbers.setdefault(frame, len(self._numbers) + 2)

    def number_below(self, caller: int, frame: Frame) -> int:
        """The place of a frame among those below another: a small number, for most frames call few."""
        below = self._below.setdefault(caller, {})
        return below.setdefault(self.number(frame), len(below))

    @property
    def entries(self) -> list[list[Any]]:
        """What flame.js needs to read the graphs."""
        return [list(FAMILIES), list(self._origins), *map(self._describe, self._numbers)]

    def _describe(self, frame: Frame) -> list[Any]:
        label, full = label_of(frame), full_name(frame)
        below = "".join(map(write_number, self._below.get(self._numbers[frame], ())))
        entry: list[Any] = [label, colour_of(frame), self._origins[origin_of(frame)], below]
        return [*entry, full] if self._full and full != label else entry


def pack_flame(flame: Flame, names: NameTable, share: float = 0.002) -> dict[str, Any]:
    """A graph without frames that are less than this share of it; what is left out is part of their callers.

    An abridged graph is in whole units of one run. With a share of 0 it is all there, to the last instruction.
    """
    gauge = gauge_of(flame)
    root = round_to_runs(prune(flame.root, share), gauge.runs) if share else flame.root
    runs = 1 if share else gauge.runs
    return {
        "title": printable(flame.title).strip(),
        "unit": gauge.unit,
        "runs": runs,
        "both": int(root.base_value is not None),
        "tree": "".join(map(write_number, _walk(root, names, runs))),
    }


def write_number(number: int) -> str:
    """A whole number that is not negative, in as few digits as it takes.

    >>> write_number(0), write_number(31), write_number(32)
    ('A', 'f', 'gB')
    """
    text = ""
    while number > 31:
        text += DIGITS[32 + number % 32]
        number //= 32
    return text + DIGITS[number]


def _walk(root: Node, names: NameTable, runs: int) -> Iterator[int]:
    """The numbers of all frames, callers first: which it is, how many frames follow below it, what is spent in itself
    and, where that is not all, in frames that were left out. Of two sides, head's and how much more than base's."""
    waiting = [(root, names.number(root.frame))]
    while waiting:
        node, place = waiting.pop()
        own = names.number(node.frame)
        rest = node.value - node.own - sum(child.value for child in node.children)
        base_rest = (node.base_value or 0) - (node.base_own or 0) - sum(c.base_value or 0 for c in node.children)
        calls = len(node.children)
        yield (place * (MANY + 1) + min(calls, MANY)) * 2 + bool(rest or base_rest)
        if calls >= MANY:
            yield calls - MANY
        sides = [(node.own, node.base_own), (rest, base_rest)] if rest or base_rest else [(node.own, node.base_own)]
        for head, base in sides:
            yield _shorten(head, runs)
            if node.base_value is not None:
                change = head - (base or 0)
                yield _shorten(abs(change), runs) * 2 + (change < 0)
        waiting += [(child, names.number_below(own, child.frame)) for child in reversed(node.children)]


def _shorten(value: int, runs: int) -> int:
    """Of several runs, a value that is the same in all as that of one, any other as it is, and in the last bit which
    of both."""
    if runs == 1:
        return value
    return value * 2 + 1 if value % runs else value // runs * 2
