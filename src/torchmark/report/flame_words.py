"""What is said around a flame graph: its heading, and what its colours mean."""

from __future__ import annotations

from typing import NamedTuple

from torchmark.model.flame import Flame, Method, Node
from torchmark.report.flame_names import FAMILIES, SHADES, family_of
from torchmark.report.flame_numbers import ARROW, Gauge, gauge_of, show_percent, show_relation
from torchmark.report.printable import printable

METHODS = {
    Method.CALLERS: "Exact: every instruction was counted with all its callers.",
    Method.CALL_GRAPH: "Counted exactly by function; what a function calls is shared among its callers in proportion.",
    Method.SAMPLING: "Sampled: widths are how often a function was seen.",
}
WIDTHS = (
    "A frame is as wide as it is on the larger side; the number before a name is the change in the function itself."
)
# The first family is the root: its own cost belongs to no function.
OTHER = "other"


class Key(NamedTuple):
    """A colour, by the class of its style, and what it stands for."""

    style: str
    text: str


def list_heading(flame: Flame) -> list[str]:
    """Title, total, how it was found out, and the note; what is not known is left out."""
    lines = [flame.title, _tell_total(flame), flame.note]
    return [line for line in (printable(line).strip() for line in lines) if line]


def _tell_total(flame: Flame) -> str:
    gauge, root = gauge_of(flame), flame.root
    if root.base_value is None:
        return f"{gauge.show(root.value)} {gauge.unit}. {METHODS[flame.method]}"
    return f"{_tell_change(root.base_value, root.value, gauge)} {gauge.unit}. {METHODS[flame.method]} {WIDTHS}"


def _tell_change(base: int, head: int, gauge: Gauge) -> str:
    change = "" if base == head else f"{gauge.show_change(head - base)}, "
    return f"{gauge.show(base)} {ARROW} {gauge.show(head)} ({change}{show_relation(base, head)})"


def list_keys(flame: Flame) -> list[Key]:
    """The colours that occur, with their shares of what was spent; of a difference, what red and blue are."""
    if flame.root.base_value is not None:
        return [
            Key("tmf-more5", "more in itself than in base"),
            Key("tmf-none", "the same"),
            Key("tmf-less5", "less in itself"),
            Key("tmf-none tmf-gone", "only in base"),
        ]
    sums = dict.fromkeys(range(len(FAMILIES)), 0)
    waiting: list[Node] = [flame.root]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        sums[family_of(node.frame)] += node.own
    return [
        Key(f"tmf-c{family * SHADES}", f"{FAMILIES[family] if family else OTHER} {show_percent(own, flame.root.value)}")
        for family, own in sums.items()
        if own
    ]
