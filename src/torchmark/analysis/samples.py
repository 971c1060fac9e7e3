"""Stacks from what py-spy wrote: `outermost;…;innermost 12`, each frame with its file or library in brackets."""

from __future__ import annotations

import collections
import re

from torchmark.analysis.stacks import STATEMENT
from torchmark.model.flame import Frame, FrameKind, Method, Stack, Stacks, Unit

_COUNT = re.compile(r"[0-9]{1,18}$", re.ASCII)
_LINE = re.compile(r":\d+$")
# What runs the loop, and what the loop is; a setup runs in the latter alone.
_MEASURE, _LOOP = "_torchmark_measure", "_torchmark_loop"
_SCRIPT = "torchmark_statement.py:"


def read_samples(text: str, seconds: float) -> Stacks:
    """The stacks that are inside the loop around the statement; all others are of importing and of the setup."""
    values: collections.Counter[tuple[Frame, ...]] = collections.Counter()
    for line in text.splitlines():
        stack, _, number = line.rpartition(" ")
        frames = _read_frames(stack)
        if frames is not None and _COUNT.match(number):
            values[frames] += int(number)
    stacks = sorted(values.items(), key=lambda one: [(frame.name, frame.origin) for frame in one[0]])
    return Stacks(tuple(Stack(*one) for one in stacks), Unit.SAMPLES, Method.SAMPLING, 1, seconds)


def _read_frames(stack: str) -> tuple[Frame, ...] | None:
    frames = [_read_frame(part) for part in stack.split(";")]
    names = [frame.name for frame in frames]
    if _MEASURE not in names or _LOOP not in names:
        return None
    return (STATEMENT, *(_within(frame) for frame in frames[names.index(_LOOP) + 1 :]))


def _within(frame: Frame) -> Frame:
    origin = "<setup>" if frame.origin.startswith(_SCRIPT) else frame.origin
    return frame._replace(name=frame.name.removeprefix(f"{_LOOP}.<locals>."), origin=origin)


def _read_frame(part: str) -> Frame:
    """A frame as py-spy writes it: a Python frame has a file and a line in brackets, a compiled one a library.

    >>> _read_frame("add (torch/_tensor.py:12)").kind, _read_frame("at::add (libtorch_cpu.so)").origin
    (<FrameKind.PYTHON: 'python'>, 'libtorch_cpu.so')
    """
    name, opening, rest = part.rpartition(" (")
    origin = rest.removesuffix(")")
    # Without a library, the last brackets may be part of the name: `int (anonymous namespace)::f(int)`.
    is_name = not origin.endswith(")") and ("(" in origin or ")" in origin)
    if not opening or origin == rest or is_name:
        return Frame(part, FrameKind.NATIVE)
    kind = FrameKind.PYTHON if _LINE.search(origin) else FrameKind.NATIVE
    return Frame(name, kind, origin)
