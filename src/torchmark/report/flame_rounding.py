"""A graph in whole units of one run: what an abridged one needs, and shorter to write."""

from __future__ import annotations

from torchmark.analysis.flame import build_up, list_callers_first
from torchmark.model.flame import Node


def round_to_runs(root: Node, runs: int) -> Node:
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

    def round(self, root: Node) -> Node:
        # Rounded from callers to callees, and put together from callees to callers.
        amounts = [self._round_one(node) for node in list_callers_first(root, lambda node: node.children)]

        def make(node: Node, children: tuple[Node, ...]) -> Node:
            (own, base_own), (rest, base_rest) = amounts.pop()
            value = own + rest + sum(child.value for child in children)
            if base_own is None or base_rest is None:
                return Node(node.frame, own, value, children)
            base_value = base_own + base_rest + sum(child.base_value or 0 for child in children)
            return Node(node.frame, own, value, children, base_own, base_value)

        return build_up(root, lambda node: node.children, make)

    def _round_one(self, node: Node) -> tuple[tuple[int, int | None], tuple[int, int | None]]:
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
