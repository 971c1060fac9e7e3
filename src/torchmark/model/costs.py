"""Instructions by function, who calls whom, and flame graphs of both as values."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Sequence
from typing import NamedTuple

INSTRUCTIONS = "Ir"


class Function(NamedTuple):
    """A function as a profiler names it: the file it is in and the binary that holds it, as far as is known."""

    file: str
    name: str
    binary: str = ""

    @property
    def label(self) -> str:
        """One text for all three, as Callgrind's own tools write it.

        >>> Function("eval.c", "run", "/lib/libpython.so").label
        'eval.c:run [/lib/libpython.so]'
        """
        suffix = f" [{self.binary}]" if self.binary else ""
        return f"{self.file}:{self.name}{suffix}"


Costs = tuple[int, ...]


class Call(NamedTuple):
    """All calls from one function to another: how many, and what they cost with all that they called in turn."""

    times: int
    costs: Costs


@dataclasses.dataclass(frozen=True)
class Profile:
    """Costs by function, one number for each of `events`.

    `exclusive` is what ran in the function itself. `inclusive` adds what it called: for a function that was called, the
    sum over its calls, in which a recursive call counts once more.
    """

    events: tuple[str, ...]
    exclusive: dict[Function, Costs]
    inclusive: dict[Function, Costs]
    calls: dict[tuple[Function, Function], Call]
    trigger: str | None = None
    """The text that was given with the request for this profile."""

    def totals(self) -> Costs:
        return tuple(map(sum, zip(*self.exclusive.values()))) or (0,) * len(self.events)

    def total(self, event: str = INSTRUCTIONS) -> int:
        return self.totals()[self.events.index(event)]


def add_calls(exclusive: Sequence[Sequence[int]], calls: Iterable[tuple[int, int, Sequence[int]]]) -> list[list[int]]:
    """Inclusive costs by function, from exclusive ones and from calls: the caller, the callee, what they cost.

    What was called costs what its calls cost; a root, itself and what it called.

    >>> add_calls([[1], [2], [3]], [(0, 1, [7]), (1, 2, [3])])
    [[8], [7], [3]]
    """
    inclusive = [list(costs) for costs in exclusive]
    called: dict[int, list[int]] = {}
    for caller, callee, costs in calls:
        into = called.setdefault(callee, [0] * len(costs))
        for i, cost in enumerate(costs):
            inclusive[caller][i] += cost
            into[i] += cost
    for index, total in called.items():
        inclusive[index] = total
    return inclusive


class PythonFunction(NamedTuple):
    """A Python function as the process that ran it names it."""

    name: str
    file: str
    line: int


@dataclasses.dataclass(frozen=True)
class Counts:
    """What counting a statement gave: one profile a layout, and one of the empty loop where it was asked for."""

    number: int
    layouts: tuple[Profile, ...]
    baseline: Profile | None
    texts: tuple[str, ...] | None = None
    """The files that the layouts were read from, where they are kept."""
    optimised_away: bool = False
    """Whether the compiler left nothing of the statement, so that the loop is empty."""
    functions: tuple[PythonFunction, ...] = ()
    """Where callers are kept, the Python functions among them, by the numbers that stand for them in names."""


@dataclasses.dataclass(frozen=True)
class Tally:
    """What a count comes to, in all runs together: the layout with the median total stands for all."""

    number: int
    """How many runs were counted."""
    seeds: tuple[int, ...]
    totals: tuple[int, ...]
    """Instructions in each layout, in the order of `seeds`."""
    events: tuple[tuple[str, int], ...]
    """Totals of the chosen layout; more than instructions where caches were simulated."""
    allocations: int
    """Calls into the malloc family."""
    tensor_allocations: int
    """Calls of torch's CPU allocator."""
    baseline: int | None
    """Instructions of the empty loop, where it was counted."""
    noisy: tuple[str, ...] | None = None
    """Labels of the functions that did not cost the same in all layouts, in alphabetical order."""
    optimised_away: bool = False
    profile: Profile | None = None
    """The chosen layout by function; None where it was left out to spare memory."""
    baseline_profile: Profile | None = None
    text: str | None = None
    """The file that `profile` was read from, where it is kept."""

    @property
    def total(self) -> int:
        """Instructions of the chosen layout."""
        return dict(self.events)[INSTRUCTIONS]


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

    @property
    def total(self) -> int:
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
