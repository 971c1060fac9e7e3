"""Trees for flame graphs from stacks: one, or the difference of two. Every value is the sum of what is in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeVar

from torchmark.model.flame import Frame, FrameKind, Node, Stacks

T = TypeVar("T")
R = TypeVar("R")

ALL = Frame("all", FrameKind.OTHER)


def grow(stacks: Stacks) -> Node:
    """The tree of all stacks.

    >>> from torchmark.model.flame import Method, Stack, Unit
    >>> f, g = Frame("f"), Frame("g")
    >>> root = grow(Stacks((Stack((f,), 2), Stack((f, g), 3)), Unit.INSTRUCTIONS, Method.CALLERS))
    >>> root.value, root.children[0].own, root.children[0].children[0].value
    (5, 2, 3)
    """
    sapling = _Sapling(ALL)
    _add(sapling, stacks, 1)
    return _finish(sapling, compared=False)


def grow_difference(base: Stacks, head: Stacks) -> Node:
    """The tree of both, with base's values beside head's.

    Both are brought to the same number of runs first, which is the product of theirs where they differ.
    """
    sapling = _Sapling(ALL)
    times_base, times_head = (1, 1) if base.number == head.number else (head.number, base.number)
    _add(sapling, base, times_base, is_base=True)
    _add(sapling, head, times_head)
    return _finish(sapling, compared=True)


def prune(node: Node, share: float) -> Node:
    """The tree without frames that are less than this share of the root, on both sides. Values stay what they are, so
    that a frame may be more than its own and its children's."""
    least = share * _larger(node)

    def keep(node: Node) -> list[Node]:
        return [child for child in node.children if _larger(child) >= least]

    return build_up(node, keep, lambda node, kept: dataclasses.replace(node, children=kept))


def count_frames(node: Node) -> int:
    """How many frames there are."""
    return len(list_callers_first(node, lambda node: node.children))


def list_callers_first(root: T, list_below: Callable[[T], Sequence[T]]) -> list[T]:
    """All parts of a tree, each before those below it. Without recursion: chains of calls are longer than Python's."""
    found: list[T] = []
    waiting = [root]
    while waiting:
        found.append(waiting.pop())
        waiting += reversed(list_below(found[-1]))
    return found


def build_up(root: T, list_below: Callable[[T], Sequence[T]], make: Callable[[T, tuple[R, ...]], R]) -> R:
    """Another tree, in which each part is made of one of this tree's and of what was made of those below it.

    Parts are made in the opposite order of `list_callers_first`.
    """
    made: list[R] = []
    for part, below in reversed([(part, len(list_below(part))) for part in list_callers_first(root, list_below)]):
        # The first of those below was made last.
        made.append(make(part, tuple([made.pop() for _ in range(below)])))
    return made[0]


class _Sapling:
    """What a node is before all stacks have been added."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.own = 0
        self.base_own = 0
        self.children: dict[Frame, _Sapling] = {}


def _add(sapling: _Sapling, stacks: Stacks, times: int, *, is_base: bool = False) -> None:
    for frames, value in stacks.stacks:
        node = sapling
        for frame in frames:
            below = node.children.get(frame)
            if below is None:
                below = node.children[frame] = _Sapling(frame)
            node = below
        if is_base:
            node.base_own += value * times
        else:
            node.own += value * times


def _finish(sapling: _Sapling, *, compared: bool) -> Node:
    def make(sapling: _Sapling, below: tuple[Node, ...]) -> Node:
        children = sorted(below, key=lambda child: (-_larger(child), child.frame.name, child.frame.origin))
        return Node(
            sapling.frame,
            sapling.own,
            sapling.own + sum(child.value for child in children),
            tuple(children),
            sapling.base_own if compared else None,
            sapling.base_own + sum(child.base_value or 0 for child in children) if compared else None,
        )

    return build_up(sapling, lambda sapling: tuple(sapling.children.values()), make)


def _larger(node: Node) -> int:
    return max(node.value, node.base_value or 0)
