"""Stacks from an exact trace or from py-spy, and names that make the stacks of two builds comparable."""

from __future__ import annotations

import collections
import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from torchmark.analysis.verdict.explain import NAMELESS, is_nameless, library, plain_name
from torchmark.model.costs import (
    INSTRUCTIONS,
    FlameUnit,
    Frame,
    FrameKind,
    Method,
    PythonFunction,
    Stack,
    Stacks,
    Trace,
)

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


def read_stacks(trace: Trace) -> tuple[Stacks, int]:
    """All of a trace by stack, and what the instrument that made Python visible cost, which is not in them.

    Together they add up to the profile's total.
    """
    event = trace.profile.events.index(INSTRUCTIONS)
    binaries = {function.name.partition("'")[0]: function.binary for function in trace.profile.exclusive}
    namer = _Namer(binaries, [_describe(function) for function in trace.functions])
    values: collections.Counter[tuple[Frame, ...]] = collections.Counter()
    instrument = 0
    for function, costs in trace.profile.exclusive.items():
        chain = [part for part in function.name.split("'") if not part.isdigit()]
        frames = namer.name(chain[::-1])
        if frames is None:
            instrument += costs[event]
        elif costs[event]:
            values[frames] += costs[event]
    return Stacks(_sort(values), FlameUnit.INSTRUCTIONS, Method.CALLERS, trace.number), instrument


def leave_out_native(stacks: Stacks) -> Stacks:
    """Python functions alone: what compiled code spends counts as that of the function that called it."""
    return _convert(stacks, lambda frames: (frame for frame in frames if frame.kind is not FrameKind.NATIVE))


def _convert(stacks: Stacks, convert: Callable[[tuple[Frame, ...]], Iterable[Frame]]) -> Stacks:
    """The same with other frames; stacks that have become equal are one."""
    values: collections.Counter[tuple[Frame, ...]] = collections.Counter()
    for frames, value in stacks.stacks:
        values[fold(convert(frames))] += value
    return dataclasses.replace(stacks, stacks=_sort(values))


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
                frame = self._find_python(next(parts, None))
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
            origin = library(self._binaries[part]) if part in self._binaries else ""
            self._native[part] = Frame(NAMELESS if is_nameless(part) else part, FrameKind.NATIVE, origin)
        return self._native[part]


def _describe(function: PythonFunction) -> Frame:
    if function.name == _PYTHON_LOOP:
        return STATEMENT
    # What a setup defines is local to the function around it.
    name = function.name.removeprefix(f"{_PYTHON_LOOP}.<locals>.")
    return Frame(name, FrameKind.PYTHON, f"{_INSTALLED.sub('', function.file)}:{function.line}")


def fold(frames: Iterable[Frame]) -> tuple[Frame, ...]:
    """A function that calls itself is one frame, and one that does so through others is there once with these."""
    frames = tuple(frames)
    if len(set(frames)) == len(frames):
        # Of hundreds of thousands of stacks, most call nothing again.
        return frames
    folded: list[Frame] = []
    for frame in frames:
        folded.append(frame)
        for length in range(1, min(LONGEST_ROUND, len(folded) // 2) + 1):
            if folded[-1 - length] == frame and folded[-length:] == folded[-2 * length : -length]:
                del folded[-length:]
                break
    return tuple(folded)


def _sort(values: Mapping[tuple[Frame, ...], int]) -> tuple[Stack, ...]:
    """In an order that does not depend on that of a dictionary."""
    ordered = sorted(values.items(), key=lambda one: [(frame.name, frame.origin) for frame in one[0]])
    return tuple(Stack(*one) for one in ordered)


_COUNT = re.compile(r"[0-9]{1,18}$", re.ASCII)
_LINE = re.compile(r":\d+$")
# What runs the loop. A setup runs in the loop alone.
_MEASURE = "_torchmark_measure"
_SCRIPT = "torchmark_statement.py:"


def read_samples(text: str) -> Stacks:
    """The stacks that are inside the loop around the statement; all others are of importing and of the setup."""
    values: collections.Counter[tuple[Frame, ...]] = collections.Counter()
    for line in text.splitlines():
        stack, _, number = line.rpartition(" ")
        frames = [_read_frame(part) for part in stack.split(";")]
        names = [frame.name for frame in frames]
        if _MEASURE in names and _PYTHON_LOOP in names and _COUNT.match(number):
            inside = (STATEMENT, *map(_name_setup, frames[names.index(_PYTHON_LOOP) + 1 :]))
            values[inside] += int(number)
    return Stacks(_sort(values), FlameUnit.SAMPLES, Method.SAMPLING)


def _name_setup(frame: Frame) -> Frame:
    origin = "<setup>" if frame.origin.startswith(_SCRIPT) else frame.origin
    return frame._replace(name=frame.name.removeprefix(f"{_PYTHON_LOOP}.<locals>."), origin=origin)


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
    return Frame(name, FrameKind.PYTHON if _LINE.search(origin) else FrameKind.NATIVE, origin)


# A library has been stripped of its symbols if more of what it spends is in functions without a name. Some have a few
# anyway: stubs that lead from one library to another.
STRIPPED_SHARE = 0.1
# Libraries that hardly do anything are left alone.
SPENDING_SHARE = 0.01
INTERPRETER = Frame("interpreter", FrameKind.NATIVE, "python")


def align(base: Stacks, head: Stacks) -> tuple[Stacks, Stacks, tuple[str, ...]]:
    """Names without parameters and lines; with the libraries of which one side has no names.

    What one build has no names for is part of its callers, in the other build too: else everything below such a
    function would differ.
    """
    base, head = (_convert(side, lambda frames: map(_shorten, frames)) for side in (base, head))
    stripped = _find_stripped(base) | _find_stripped(head)
    if stripped:
        shared = _list_frames(base) & _list_frames(head)
        base, head = (_convert(side, lambda frames: _leave_out(frames, stripped, shared)) for side in (base, head))
    return base, head, tuple(sorted(stripped))


@functools.lru_cache(maxsize=50_000)
def _shorten(frame: Frame) -> Frame:
    if frame.kind is FrameKind.PYTHON:
        return frame._replace(origin=frame.origin.rpartition(":")[0] or frame.origin)
    return frame if frame.kind is FrameKind.OTHER else frame._replace(name=plain_name(frame.name))


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


def _leave_out(frames: Iterable[Frame], stripped: set[str], shared: set[Frame]) -> Iterator[Frame]:
    for frame in frames:
        if frame.kind is not FrameKind.NATIVE or frame.origin not in stripped:
            yield frame
        elif frame.origin == INTERPRETER.origin:
            # What Python's interpreter calls on its way to the next function is one thing without names.
            yield INTERPRETER
        elif frame.name != NAMELESS and frame in shared:
            yield frame
