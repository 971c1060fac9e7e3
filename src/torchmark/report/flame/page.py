"""Flame graphs with a script: as SVG, as a page of their own with a table, and packed for larger pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from torchmark.analysis.flames import build_up, list_callers_first, prune
from torchmark.model.costs import Flame, FlameNode, Frame
from torchmark.report.flame.labels import (
    FAMILIES,
    colour_of,
    format_percent,
    format_relation,
    full_name,
    gauge_of,
    label_of,
    origin_of,
)
from torchmark.report.flame.picture import compose, draw, escape_text, list_heading, open_svg
from torchmark.report.html.templates import load_asset, load_templates, script_json, write_policy
from torchmark.report.text.terminal import cut_middle, printable


class Spent(NamedTuple):
    """A function with what is spent in itself at all places together, of all runs. Base has none without a base."""

    frame: Frame
    head: int
    base: int = 0

    @property
    def change(self) -> int:
        """How much more than in base."""
        return self.head - self.base


def rank_own(flame: Flame) -> list[Spent]:
    """Functions in which something is spent, the most expensive first."""
    spent = [one for one in _add_up(flame) if one.head]
    return sorted(spent, key=lambda one: (-one.head, one.frame.name, one.frame.origin))


def rank_growth(flame: Flame) -> list[Spent]:
    """Functions that cost more or less in themselves than in base: what grew most first, what shrank most last.

    Their callers are not among them: what they call is not theirs.
    """
    spent = [one for one in _add_up(flame) if one.change]
    return sorted(spent, key=lambda one: (-one.change, one.frame.name, one.frame.origin))


def _add_up(flame: Flame) -> list[Spent]:
    sums: dict[Frame, Spent] = {}
    waiting = [flame.root]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        _, head, base = sums.get(node.frame, Spent(node.frame, 0))
        sums[node.frame] = Spent(node.frame, head + node.own, base + (node.base_own or 0))
    return list(sums.values())


MOST_FUNCTIONS = 5
# What C++ names are cut to.
LONGEST_NAME = 60


def describe_flame(flame: Flame) -> list[str]:
    """The total, and the functions that cost most in themselves, or whose own cost changed most."""
    gauge, root = gauge_of(flame), flame.root
    if root.base_value is None:
        lines = [f"{gauge.show(root.value)} {gauge.unit}"]
        for one in rank_own(flame)[:MOST_FUNCTIONS]:
            lines.append(f"{format_percent(one.head, root.value):>6}  {_name(one)}")
        return lines
    relation = format_relation(root.base_value, root.value)
    lines = [f"{gauge.show(root.base_value)} → {gauge.show(root.value)} {gauge.unit} ({relation})"]
    ranked = sorted(rank_growth(flame), key=lambda one: -abs(one.change))
    changes = [(gauge.format_change(one.change), _name(one)) for one in ranked[:MOST_FUNCTIONS]]
    width = max((len(change) for change, _ in changes), default=0)
    return lines + [f"{change:>{width}}  {name}" for change, name in changes]


def _name(one: Spent) -> str:
    origin = origin_of(one.frame)
    name = cut_middle(printable(label_of(one.frame)), LONGEST_NAME)
    return f"{name} ({printable(origin)})" if origin else name


def round_to_runs(root: FlameNode, runs: int) -> FlameNode:
    """The tree of one run. Every value is still the sum of what is in it, and within two units of what it was.

    What is left of one amount by rounding goes into the next. What both sides have in common is rounded together, so
    that what did not change still has not.
    """
    return root if runs == 1 else _Rounder(runs).round(root)


class _Rounder:
    def __init__(self, runs: int) -> None:
        self._runs = runs
        # Of what is common to both sides, of what only head has, and of what only base has.
        self._carried = [0, 0, 0]

    def round(self, root: FlameNode) -> FlameNode:
        # Rounded from callers to callees, and put together from callees to callers.
        amounts = [self._round_one(node) for node in list_callers_first(root, lambda node: node.children)]

        def make(node: FlameNode, children: tuple[FlameNode, ...]) -> FlameNode:
            (own, base_own), (rest, base_rest) = amounts.pop()
            value = own + rest + sum(child.value for child in children)
            if base_own is None or base_rest is None:
                return FlameNode(node.frame, own, value, children)
            base_value = base_own + base_rest + sum(child.base_value or 0 for child in children)
            return FlameNode(
                frame=node.frame, own=own, value=value, children=children, base_own=base_own, base_value=base_value
            )

        return build_up(root, lambda node: node.children, make)

    def _round_one(self, node: FlameNode) -> tuple[tuple[int, int | None], tuple[int, int | None]]:
        """What is spent in a frame itself, and in frames that were left out below it."""
        left_out = node.value - node.own - sum(child.value for child in node.children)
        base_left_out = None
        if node.base_value is not None:
            base_left_out = node.base_value - (node.base_own or 0) - sum(c.base_value or 0 for c in node.children)
        return self._divide(node.own, node.base_own), self._divide(left_out, base_left_out)

    def _divide(self, head: int, base: int | None) -> tuple[int, int | None]:
        if base is None:
            return self._take(0, head), None
        common = self._take(0, min(head, base))
        return common + self._take(1, max(head - base, 0)), common + self._take(2, max(base - head, 0))

    def _take(self, part: int, amount: int) -> int:
        """An amount in whole units; less than one is carried on."""
        whole, self._carried[part] = divmod(self._carried[part] + amount, self._runs)
        return whole


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


def _walk(root: FlameNode, names: NameTable, runs: int) -> Iterator[int]:
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


def render_svg(flame: Flame) -> str:
    """A file on its own. It asks for nothing from outside."""
    names = NameTable(full=True)
    graph = pack_flame(flame, names, share=0.0) | {"heading": list_heading(flame)}
    call = f"torchmarkFlameAlone({script_json(names.entries)}, {script_json(graph)});"
    picture = compose(flame)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"{open_svg(picture)}<style>{escape_text(load_asset('flame.css'))}</style>\n"
        f'<g id="tmf-still">\n{draw(picture)}</g>\n'
        f"<script><![CDATA[\n{load_asset('flame.js')}{call}\n]]></script>\n</svg>\n"
    )


# As many as a person reads through.
MOST_FUNCTIONS_ON_PAGE = 25


def render_html(flame: Flame) -> str:
    """A file on its own. It asks for nothing from outside."""
    names = NameTable(full=True)
    graph = pack_flame(flame, names, share=0.0)
    picture = compose(flame)
    compared = flame.root.base_value is not None
    call = f'torchmarkFlame(document.getElementById("graph"), {script_json(names.entries)}, {script_json(graph)});'
    script = f"{load_asset('flame.js')}{call}\n"
    html: str = (
        load_templates()
        .get_template("flame.html")
        .render(
            title=printable(flame.title).strip() or "Flame graph",
            notes=list_heading(flame)[1:] if flame.title.strip() else list_heading(flame),
            unit=gauge_of(flame).unit,
            compared=compared,
            rows=_list_changes(flame) if compared else _list_spent(flame),
            still=f"{open_svg(picture)}{draw(picture)}</svg>",
            style=load_asset("flame.css") + load_asset("flame-page.css"),
            script=script,
            policy=write_policy(script),
        )
    )
    return html


def _list_spent(flame: Flame) -> list[tuple[str, str, list[str]]]:
    """The functions in which most is spent: name, origin, what and how much of all."""
    gauge = gauge_of(flame)
    return [
        (*_name_graph(one), [gauge.show(one.head), format_percent(one.head, flame.root.value)])
        for one in rank_own(flame)[:MOST_FUNCTIONS_ON_PAGE]
    ]


def _list_changes(flame: Flame) -> list[tuple[str, str, list[str]]]:
    """The functions that changed most in themselves, from what grew to what shrank: base, head, change, its share."""
    gauge = gauge_of(flame)
    ranked = rank_growth(flame)
    most = sorted(ranked, key=lambda one: -abs(one.change))[:MOST_FUNCTIONS_ON_PAGE]
    return [
        (
            *_name_graph(one),
            [
                gauge.show(one.base),
                gauge.show(one.head),
                gauge.format_change(one.change),
                format_relation(one.base, one.head),
            ],
        )
        for one in sorted(most, key=ranked.index)
    ]


def _name_graph(one: Spent) -> tuple[str, str]:
    return label_of(one.frame), origin_of(one.frame)
