"""Brings the stacks of two builds to names and shapes that both have, so that a difference is one of costs."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import NamedTuple

from torchmark.analysis.naming import NAMELESS, plain_name
from torchmark.analysis.stacks import fold, sort_stacks
from torchmark.model.flame import Frame, FrameKind, Stacks

# A library has been stripped of its symbols if more of what it spends is in functions without a name. Some have a few
# anyway: stubs that lead from one library to another.
STRIPPED_SHARE = 0.1
# Libraries that hardly do anything are left alone.
SPENDING_SHARE = 0.01
INTERPRETER = Frame("interpreter", FrameKind.NATIVE, "python")


class Aligned(NamedTuple):
    """Both sides, and the libraries of which one of them has no names."""

    base: Stacks
    head: Stacks
    stripped: tuple[str, ...]


def align(base: Stacks, head: Stacks) -> Aligned:
    """Names without parameters and lines. Where a build was stripped, what it has no names for is part of its callers,
    in the other build too: else everything below such a function would differ."""
    base, head = (_rename(side, _shorten) for side in (base, head))
    stripped = _find_stripped(base) | _find_stripped(head)
    shared = _list_frames(base) & _list_frames(head)
    if stripped:
        base, head = (_leave_out(side, stripped, shared) for side in (base, head))
    return Aligned(base, head, tuple(sorted(stripped)))


def _shorten(frame: Frame) -> Frame:
    if frame.kind is FrameKind.PYTHON:
        return frame._replace(origin=frame.origin.rpartition(":")[0] or frame.origin)
    return frame if frame.kind is FrameKind.OTHER else frame._replace(name=plain_name(frame.name))


def _rename(stacks: Stacks, rename: Callable[[Frame], Frame]) -> Stacks:
    values: collections.Counter[tuple[Frame, ...]] = collections.Counter()
    for frames, value in stacks.stacks:
        values[fold(map(rename, frames))] += value
    return dataclasses.replace(stacks, stacks=sort_stacks(values.items()))


def _find_stripped(stacks: Stacks) -> set[str]:
    spent: collections.Counter[str] = collections.Counter()
    nameless: collections.Counter[str] = collections.Counter()
    for frames, value in stacks.stacks:
        leaf = frames[-1]
        if leaf.kind is FrameKind.NATIVE:
            spent[leaf.origin] += value
            nameless[leaf.origin] += value if leaf.name == NAMELESS else 0
    least = SPENDING_SHARE * stacks.total
    return {name for name, value in spent.items() if value > least and nameless[name] > STRIPPED_SHARE * value}


def _list_frames(stacks: Stacks) -> set[Frame]:
    return {frame for frames, _ in stacks.stacks for frame in frames}


def _leave_out(stacks: Stacks, stripped: set[str], shared: set[Frame]) -> Stacks:
    values: collections.Counter[tuple[Frame, ...]] = collections.Counter()
    for frames, value in stacks.stacks:
        # What Python's interpreter calls on its way to the next function is one thing without names.
        kept = (INTERPRETER if _is_interpreter(frame, stripped) else frame for frame in frames)
        values[fold(frame for frame in kept if _is_known(frame, stripped, shared))] += value
    return dataclasses.replace(stacks, stacks=sort_stacks(values.items()))


def _is_interpreter(frame: Frame, stripped: set[str]) -> bool:
    return frame.kind is FrameKind.NATIVE and frame.origin == INTERPRETER.origin and INTERPRETER.origin in stripped


def _is_known(frame: Frame, stripped: set[str], shared: set[Frame]) -> bool:
    if frame == INTERPRETER or frame.kind is not FrameKind.NATIVE or frame.origin not in stripped:
        return True
    return frame.name != NAMELESS and frame in shared
