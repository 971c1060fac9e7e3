"""Flame graphs of stacks and of counted cases: exact in their sums, and on a page no larger than there is room for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from torchmark.analysis.aligning import align
from torchmark.analysis.flame import grow, grow_difference, prune
from torchmark.analysis.unfold import unfold
from torchmark.model.costs import Tally
from torchmark.model.flame import Flame, Node, Stacks
from torchmark.model.judgement import Side

# Frames on a page, all graphs together: some 300 kB. A graph of more than the most is drawn no better on a
# screen, and one of fewer than the least tells nothing, however many cases there are.
FRAMES_A_PAGE = 36_000
MOST_FRAMES = 500
LEAST_FRAMES = 60

STRIPPED = "One side has no names for functions of {}: they are part of their callers"
ONE_SIDE = "Only {} was counted: this is not a difference"


def share_out_frames(cases: int) -> int:
    """How many frames each of so many graphs may have.

    >>> share_out_frames(10), share_out_frames(200), share_out_frames(5000)
    (500, 180, 60)
    """
    return min(max(FRAMES_A_PAGE // max(cases, 1), LEAST_FRAMES), MOST_FRAMES)


def picture(tallies: Sequence[Tally | None], title: str, most: int, note: str = "") -> Flame | None:
    """The graph of the only side that has costs by function, or the difference of both; None where nobody has them."""
    found = [unfold(one.profile, one.number) for one in tallies if one is not None and one.profile is not None]
    if not found:
        return None
    if len(found) == 2:
        return abridge(draw_difference(found[0], found[1], title, note), most)
    if len(tallies) == 2:
        side = Side.BASE if tallies[-1] is None or tallies[-1].profile is None else Side.HEAD
        note = f"{note}. {ONE_SIDE.format(side.value)}".removeprefix(". ")
    return abridge(draw_one(found[0], title, note), most)


def draw_one(stacks: Stacks, title: str, note: str = "") -> Flame:
    """The graph of one side."""
    return Flame(grow(stacks), title, stacks.unit, stacks.method, stacks.number, note)


def draw_difference(base: Stacks, head: Stacks, title: str, note: str = "") -> Flame:
    """The graph of both sides, by names that both have."""
    aligned = align(base, head)
    if aligned.stripped:
        note = f"{note}. {STRIPPED.format(', '.join(aligned.stripped))}".removeprefix(". ")
    # Of different numbers of runs, the tree is of their product.
    number = head.number if base.number == head.number else base.number * head.number
    return Flame(grow_difference(aligned.base, aligned.head), title, head.unit, head.method, number, note)


def abridge(flame: Flame, most: int) -> Flame:
    """The same with about so many of its widest frames."""
    return dataclasses.replace(flame, root=cut_down(flame.root, most))


def cut_down(root: Node, most: int) -> Node:
    """The tree with about so many of its widest frames; what has none left belongs to whoever called it."""
    widths = sorted(_list_widths(root), reverse=True)
    if len(widths) <= most or not widths[0]:
        return root
    # Half of one less: widths are whole numbers, and a share that is rounded up must not take those that just fit.
    return prune(root, (widths[most - 1] - 0.5) / widths[0])


def _list_widths(root: Node) -> Iterator[int]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield max(node.value, node.base_value or 0)
        waiting += node.children
