"""Numbers of a flame graph as texts, and what is told of a frame.

`assets/flame.js` has the same functions, which give the same texts to the letter: a test compares them.
"""

from __future__ import annotations

import dataclasses
import math

from torchmark.model.flame import Flame, Node, Unit
from torchmark.report.flame_names import full_name, origin_of

MINUS = "−"
ARROW = "→"
# What changed by less than this share of the largest change of any frame is drawn as unchanged: people look for causes.
LEAST_CHANGE = 0.01
# Steps of red and of blue.
STEPS = 5


@dataclasses.dataclass(frozen=True)
class Gauge:
    """What the numbers of a graph are in, and by what they are divided to be shown."""

    unit: str
    runs: int

    def show(self, value: int) -> str:
        """A value, to a tenth where it is not whole.

        >>> Gauge("instructions per run", 100).show(123450), Gauge("samples", 1).show(7)
        ('1,234.5', '7')
        """
        whole, tenth = divmod((20 * value + self.runs) // (2 * self.runs), 10)
        return f"{whole:,}.{tenth}" if tenth else f"{whole:,}"

    def show_change(self, change: int) -> str:
        """A change with its sign."""
        return f"{MINUS if change < 0 else '+'}{self.show(abs(change))}"


def gauge_of(flame: Flame) -> Gauge:
    """Instructions are shown for one run. Samples of one run would be fractions, which tell nobody anything."""
    if flame.unit is Unit.SAMPLES:
        return Gauge("samples", 1)
    return Gauge("instructions per run", flame.number)


def show_percent(part: float, whole: float) -> str:
    """A share, with more figures the smaller it is; nothing of nothing is nothing.

    >>> show_percent(1, 8), show_percent(1, 80), show_percent(1, 800), show_percent(1, 10**6), show_percent(0, 5)
    ('13%', '1.3%', '0.1%', '<0.01%', '0%')
    """
    percent = 100 * part / whole if whole else 0.0
    if percent == 0:
        return "0%"
    if percent < 0.005:
        return "<0.01%"
    decimals = 0 if percent >= 9.95 else 1 if percent >= 0.095 else 2
    # In steps that are the same in JavaScript, where numbers are rounded by other rules.
    return f"{math.floor(percent * 10**decimals + 0.5) / 10**decimals:.{decimals}f}%"


def show_relation(base: int, head: int) -> str:
    """A change as a share of what was there before."""
    if base == head:
        return "no change"
    if not base or not head:
        return "new" if not base else "gone"
    return f"{MINUS if head < base else '+'}{show_percent(abs(head - base), base)}"


def own_change(node: Node) -> int:
    """How much more head spends in the frame itself."""
    return node.own - (node.base_own or 0) if node.base_own is not None else 0


def find_step(change: int, largest: int) -> int:
    """How strong a colour a change earns: 0 is none, and it has the change's sign.

    >>> [find_step(change, 1000) for change in (1000, 500, 10, 9, 0, -201)]
    [5, 3, 1, 0, 0, -2]
    """
    if not change or abs(change) < LEAST_CHANGE * largest:
        return 0
    step = math.ceil(STEPS * abs(change) / largest)
    return -step if change < 0 else step


def tell_frame(node: Node, parent: Node | None, root: Node, gauge: Gauge) -> list[str]:
    """What a tooltip says: the name, where it is from, what is spent in it with all that it calls, and in itself."""
    lines = [full_name(node.frame), origin_of(node.frame)]
    if node.base_value is None or node.base_own is None:
        shares = f"{show_percent(node.value, root.value)} of all"
        if parent is not None and parent is not root:
            shares += f", {show_percent(node.value, parent.value)} of its caller"
        lines.append(f"{gauge.show(node.value)} {gauge.unit}, {shares}")
        lines.append(f"in itself {gauge.show(node.own)}, {show_percent(node.own, root.value)} of all")
    else:
        lines.append(f"{_tell_change(node.base_value, node.value, gauge)} {gauge.unit}")
        lines.append(f"in itself {_tell_change(node.base_own, node.own, gauge)}")
        lines.append(
            f"{show_percent(node.base_value, root.base_value or 0)} {ARROW} "
            f"{show_percent(node.value, root.value)} of all"
        )
    return [line for line in lines if line]


def _tell_change(base: int, head: int, gauge: Gauge) -> str:
    if base == head:
        return f"{gauge.show(head)} (no change)"
    change = f"{gauge.show_change(head - base)}, {show_relation(base, head)}"
    return f"{gauge.show(base)} {ARROW} {gauge.show(head)} ({change})"
