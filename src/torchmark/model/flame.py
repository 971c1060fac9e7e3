"""Stacks of calls with what was spent in each, and the tree that a flame graph draws of them.

Values are whole numbers of all runs together, so that sums are exact; dividing by the number of runs is for whoever
shows them.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import NamedTuple

from torchmark.model.costs import Profile, PythonFunction


class FrameKind(enum.Enum):
    """What a frame is a call of."""

    PYTHON = "python"
    """A function of Python's; its own cost is that of the interpreter while it runs it."""
    NATIVE = "native"
    """A compiled function."""
    OTHER = "other"
    """No single function: all of it, or what is left out."""

    # Frames are keys by the hundred thousand, and an enumeration's own hash is computed in Python.
    __hash__ = object.__hash__


class Frame(NamedTuple):
    """A call of a function."""

    name: str
    kind: FrameKind = FrameKind.NATIVE
    origin: str = ""
    """The file and line of a Python function, the library of a compiled one, as far as is known."""


class FlameUnit(enum.Enum):
    """What widths are."""

    INSTRUCTIONS = "instructions"
    SAMPLES = "samples"


class Method(enum.Enum):
    """How stacks were found out."""

    CALLERS = "callers"
    """Every instruction with all its callers: exact."""
    CALL_GRAPH = "call graph"
    """From who called whom: what a function calls is shared among its callers in proportion. Sums are exact."""
    SAMPLING = "sampling"
    """By looking many times a second."""


class Stack(NamedTuple):
    """A chain of calls, outermost first, and what was spent in the innermost itself."""

    frames: tuple[Frame, ...]
    value: int


@dataclasses.dataclass(frozen=True)
class Stacks:
    """All of a profile by stack. No chain occurs twice."""

    stacks: tuple[Stack, ...]
    unit: FlameUnit
    method: Method
    number: int = 1
    """How many runs of the statement they are of."""
    seconds: float | None = None
    """How long was looked, with sampling."""

    @property
    def total(self) -> int:
        """All that was spent."""
        return sum(stack.value for stack in self.stacks)


@dataclasses.dataclass(frozen=True)
class FlameNode:
    """A frame with what was spent in it and below it. In a graph of a difference, head's, and beside it base's.

    `value` is `own` and the values of all children; the same holds for base's.
    """

    frame: Frame
    own: int
    value: int
    children: tuple[FlameNode, ...] = ()
    """The largest first, by the larger of both sides where there are two."""
    base_own: int | None = None
    base_value: int | None = None
    """None where nothing is compared; 0 for what base does not have."""


@dataclasses.dataclass(frozen=True)
class Flame:
    """A tree to draw, and what it is of. The root is of kind OTHER and stands for all."""

    root: FlameNode
    title: str
    unit: FlameUnit
    method: Method
    number: int = 1
    note: str = ""
    """A sentence or two that whoever looks at it has to know, such as of which two builds it is."""


@dataclasses.dataclass(frozen=True)
class Trace:
    """A profile whose functions are named by all their callers, and the Python functions that are among them."""

    profile: Profile
    functions: tuple[PythonFunction, ...]
    """By the numbers that stand for them in the names of callers."""
    number: int
