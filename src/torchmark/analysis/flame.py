"""Trees for flame graphs from stacks: one, or the difference of two. Every value is the sum of what is in it."""

from __future__ import annotations

import dataclasses

from torchmark.model.flame import Frame, FrameKind, Node, Stacks

ALL = Frame("all", FrameKind.OTHER)


def grow(stacks: Stacks) -> Node:
    """The tree of all stacks.

    >>> from torchmark.model.flame import Method, Stack, Unit
    >>> f, g = Frame("f"), Frame("g")
    >>> root = grow(Stacks((Stack((f,), 2), Stack((f, g), 3)), Unit.INSTRUCTIONS, Method.CALLERS))
    >>> root.value, root.children[0].own, root.children[0].children[0].value
    (5, 2, 3)
    """
    sapling = _Sapling()
    _add(sapling, stacks, 1)
    return _finish(ALL, sapling, compared=False)


def grow_difference(base: Stacks, head: Stacks) -> Node:
    """The tree of both, with base's values beside head's.

    Both are brought to the same number of runs first, which is the product of theirs where they differ.
    """
    sapling = _Sapling()
    times_base, times_head = (1, 1) if base.number == head.number else (head.number, base.number)
    _add(sapling, base, times_base, is_base=True)
    _add(sapling, head, times_head)
    return _finish(ALL, sapling, compared=True)


def prune(node: Node, share: float) -> Node:
    """The tree without frames that are less than this share of the root, on both sides. Values stay what they are, so
    that a frame may be more than its own and its children's."""
    return _prune(node, share * _larger(node))


def count_frames(node: Node) -> int:
    """How many frames there are."""
    return 1 + sum(map(count_frames, node.children))


class _Sapling:
    """What a node is before all stacks have been added."""

    def __init__(self) -> None:
        self.own = 0
        self.base_own = 0
        self.children: dict[Frame, _Sapling] = {}


def _add(sapling: _Sapling, stacks: Stacks, times: int, *, is_base: bool = False) -> None:
    for frames, value in stacks.stacks:
        node = sapling
        for frame in frames:
            node = node.children.setdefault(frame, _Sapling())
        if is_base:
            node.base_own += value * times
        else:
            node.own += value * times


def _finish(frame: Frame, sapling: _Sapling, *, compared: bool) -> Node:
    children = [_finish(child, below, compared=compared) for child, below in sapling.children.items()]
    children.sort(key=lambda child: (-_larger(child), child.frame.name, child.frame.origin))
    return Node(
        frame,
        sapling.own,
        sapling.own + sum(child.value for child in children),
        tuple(children),
        sapling.base_own if compared else None,
        sapling.base_own + sum(child.base_value or 0 for child in children) if compared else None,
    )


def _larger(node: Node) -> int:
    return max(node.value, node.base_value or 0)


def _prune(node: Node, least: float) -> Node:
    kept = tuple(_prune(child, least) for child in node.children if _larger(child) >= least)
    return dataclasses.replace(node, children=kept)
