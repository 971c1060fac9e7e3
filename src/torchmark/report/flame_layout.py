"""Where the frames of a flame graph are: callers above callees, each as wide as what is spent in it."""

from __future__ import annotations

from typing import NamedTuple

from torchmark.analysis.flame import build_up
from torchmark.model.flame import Node

# Narrower frames are not drawn: they are about a pixel, and there can be many. flame.js draws them on zooming.
LEAST_WIDTH = 0.001


class Box(NamedTuple):
    """A frame's place: how deep, and from where to where as shares of the width."""

    node: Node
    parent: Node | None
    depth: int
    left: float
    width: float


class _Span(NamedTuple):
    node: Node
    size: int
    below: tuple[_Span, ...]


def lay_out(root: Node, least: float = LEAST_WIDTH) -> list[Box]:
    """The frames that are wide enough to be seen, callers first.

    Where two sides are drawn, what is spent in each frame itself is as wide as on the larger side. So nothing of either
    is hidden, and a frame is still as wide as all that is in it.
    """
    whole = build_up(root, lambda node: node.children, _measure)
    boxes: list[Box] = []
    waiting: list[tuple[_Span, Node | None, int, int]] = [(whole, None, 0, 0)]
    while waiting:
        span, parent, depth, start = waiting.pop()
        width = span.size / whole.size if whole.size else 1.0
        if width < least:
            continue
        boxes.append(Box(span.node, parent, depth, start / whole.size if whole.size else 0.0, width))
        following = []
        for below in span.below:
            following.append((below, span.node, depth + 1, start))
            start += below.size
        waiting += reversed(following)
    return boxes


def _measure(node: Node, below: tuple[_Span, ...]) -> _Span:
    left_out = node.value - node.own - sum(child.value for child in node.children)
    if node.base_value is None or node.base_own is None:
        own = node.own + left_out
    else:
        base_left_out = node.base_value - node.base_own - sum(child.base_value or 0 for child in node.children)
        own = max(node.own, node.base_own) + max(left_out, base_left_out)
    return _Span(node, own + sum(span.size for span in below), below)
