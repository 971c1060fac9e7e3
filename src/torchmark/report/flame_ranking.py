"""The functions of a flame graph by what is spent in themselves, or by how much that changed."""

from __future__ import annotations

from typing import NamedTuple

from torchmark.model.flame import Flame, Frame


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
