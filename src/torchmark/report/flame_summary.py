"""A flame graph in a few lines of text: its total, and where most of it is spent, or has changed."""

from __future__ import annotations

from torchmark.model.flame import Flame
from torchmark.report.cells import cut_middle
from torchmark.report.flame_names import label_of, origin_of
from torchmark.report.flame_numbers import gauge_of, show_percent, show_relation
from torchmark.report.flame_ranking import Spent, rank_growth, rank_own
from torchmark.report.printable import printable

MOST_FUNCTIONS = 5
# What C++ names are cut to.
LONGEST_NAME = 60


def sum_up_flame(flame: Flame) -> list[str]:
    """The total, and the functions that cost most in themselves, or whose own cost changed most."""
    gauge, root = gauge_of(flame), flame.root
    if root.base_value is None:
        lines = [f"{gauge.show(root.value)} {gauge.unit}"]
        for one in rank_own(flame)[:MOST_FUNCTIONS]:
            lines.append(f"{show_percent(one.head, root.value):>6}  {_name(one)}")
        return lines
    relation = show_relation(root.base_value, root.value)
    lines = [f"{gauge.show(root.base_value)} → {gauge.show(root.value)} {gauge.unit} ({relation})"]
    ranked = sorted(rank_growth(flame), key=lambda one: -abs(one.change))
    changes = [(gauge.show_change(one.change), _name(one)) for one in ranked[:MOST_FUNCTIONS]]
    width = max((len(change) for change, _ in changes), default=0)
    return lines + [f"{change:>{width}}  {name}" for change, name in changes]


def _name(one: Spent) -> str:
    origin = origin_of(one.frame)
    name = cut_middle(printable(label_of(one.frame)), LONGEST_NAME)
    return f"{name} ({printable(origin)})" if origin else name
