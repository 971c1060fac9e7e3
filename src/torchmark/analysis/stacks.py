"""Stacks from a trace: every instruction with all its callers, in Python and in compiled code.

Callgrind names a function by the chain of its callers, innermost first: `f'g'h`. A part of digits alone says that the
function before it was entered again through itself.
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from torchmark.analysis.naming import NAMELESS, is_nameless, library
from torchmark.model.costs import INSTRUCTIONS, PythonFunction
from torchmark.model.flame import Frame, FrameKind, Method, Stack, Stacks, Trace, Unit

# The names of the instrument in `callgrind/frames.c`: what finds the number of a Python function, what stands for it.
_FINDER = "torchmark_eval"
_TRAMPOLINE = re.compile(r"torchmark_python_([0-3]+)$")
_EVALUATION = "_PyEval_EvalFrameDefault"
# The loops around statements, in Python and in C++.
_PYTHON_LOOP = "_torchmark_loop"
_COMPILED_LOOP = re.compile(r"torchmark_loop_[0-9a-f]{32}\b")

STATEMENT = Frame("statement", FrameKind.OTHER)
# What runs between the two readings of the clock beside the loop.
AROUND = Frame("around the loop", FrameKind.OTHER)
# What has more callers than are kept.
DEEPER = Frame("too deep for all callers", FrameKind.OTHER)
# Python functions beyond those that are told apart.
FURTHER = Frame("further functions", FrameKind.PYTHON)
# No loop, and so many callers: then the outermost are missing.
DEEP = 900
# Recursion goes through so many functions at most that it is recognised: from one call of a module of torch's to the
# next there are eight, with overrides some twenty.
LONGEST_ROUND = 24

_INSTALLED = re.compile(r"\A.*/(?:(?:site|dist)-packages/|lib/python3\.\d+/(?=\w))")


class Read(NamedTuple):
    """The stacks of a trace, and what the instrument that made Python visible cost, which is not in them."""

    stacks: Stacks
    instrument: int


def read_stacks(trace: Trace) -> Read:
    """All of a trace by stack. What is in the stacks and what the instrument cost add up to the profile's total."""
    event = trace.profile.events.index(INSTRUCTIONS)
    binaries = {function.name.partition("'")[0]: function.binary for function in trace.profile.exclusive}
    python = [_describe(function) for function in trace.functions]
    namer = _Namer(binaries, python)
    values: collections.Counter[tuple[Frame, ...]] = collections.Counter()
    instrument = 0
    for function, costs in trace.profile.exclusive.items():
        chain = [part for part in function.name.split("'") if not part.isdigit()]
        frames = namer.name(chain[::-1])
        if frames is None:
            instrument += costs[event]
        elif costs[event]:
            values[frames] += costs[event]
    return Read(_gather(values.items(), trace.number), instrument)


def leave_out_native(stacks: Stacks) -> Stacks:
    """Python functions alone: what compiled code spends counts as that of the function that called it."""
    values: collections.Counter[tuple[Frame, ...]] = collections.Counter()
    for frames, value in stacks.stacks:
        values[fold(frame for frame in frames if frame.kind is not FrameKind.NATIVE)] += value
    return dataclasses.replace(stacks, stacks=sort_stacks(values.items()))


class _Namer:
    """Makes frames of chains of names, outermost first."""

    def __init__(self, binaries: Mapping[str, str], python: Sequence[Frame]) -> None:
        self._binaries = binaries
        self._python = python
        self._native: dict[str, Frame] = {}

    def name(self, chain: Sequence[str]) -> tuple[Frame, ...] | None:
        """The frames of a chain; None if it ends in the instrument."""
        root, start = self._find_loop(chain)
        frames = [root]
        parts = iter(chain[start:])
        for part in parts:
            if part == _FINDER:
                trampoline = next(parts, None)
                frame = self._find_python(trampoline)
                # The evaluation of a function is the function: what it costs is the function's own.
                evaluation = next(parts, None)
                if frame is None or evaluation is None:
                    return None
                frames.append(frame)
                if evaluation != _EVALUATION:
                    frames.append(self._find_native(evaluation))
            else:
                frames.append(self._find_native(part))
        return fold(frames)

    def _find_loop(self, chain: Sequence[str]) -> tuple[Frame, int]:
        """What the chain begins with, and where it goes on."""
        for i, part in enumerate(chain):
            if _COMPILED_LOOP.match(part):
                return STATEMENT, i + 1
            if self._find_python(part) == STATEMENT:
                # Not before the evaluation: the trampoline's own cost is the instrument's.
                inside = chain[i + 1 : i + 2] == [_EVALUATION]
                return STATEMENT, i + 2 if inside else i - 1
        return (DEEPER if len(chain) > DEEP else AROUND), 0

    def _find_python(self, part: str | None) -> Frame | None:
        found = _TRAMPOLINE.match(part or "")
        if found is None:
            return None
        number = int(found[1], 4)
        return self._python[number] if number < len(self._python) else FURTHER

    def _find_native(self, part: str) -> Frame:
        if part not in self._native:
            binary = self._binaries.get(part)
            origin = "" if binary is None else library(binary)
            self._native[part] = Frame(NAMELESS if is_nameless(part) else part, FrameKind.NATIVE, origin)
        return self._native[part]


def _describe(function: PythonFunction) -> Frame:
    name = function.name
    if name == _PYTHON_LOOP:
        return STATEMENT
    # What a setup defines is local to the function around it.
    name = name.removeprefix(f"{_PYTHON_LOOP}.<locals>.")
    return Frame(name, FrameKind.PYTHON, f"{_INSTALLED.sub('', function.file)}:{function.line}")


def fold(frames: Iterable[Frame]) -> tuple[Frame, ...]:
    """A function that calls itself is one frame, and one that does so through others is there once with these."""
    folded: list[Frame] = []
    for frame in frames:
        folded.append(frame)
        for length in range(1, min(LONGEST_ROUND, len(folded) // 2) + 1):
            if folded[-1 - length] == frame and folded[-length:] == folded[-2 * length : -length]:
                del folded[-length:]
                break
    return tuple(folded)


def _gather(values: Iterable[tuple[tuple[Frame, ...], int]], number: int) -> Stacks:
    return Stacks(sort_stacks(values), Unit.INSTRUCTIONS, Method.CALLERS, number)


def sort_stacks(values: Iterable[tuple[tuple[Frame, ...], int]]) -> tuple[Stack, ...]:
    """In an order that does not depend on that of a dictionary."""
    ordered = sorted(values, key=lambda one: [(frame.name, frame.origin) for frame in one[0]])
    return tuple(Stack(*one) for one in ordered)
