"""A profile: what each function cost and who called whom. Plain data; reading and judging it happens elsewhere."""

from __future__ import annotations

import dataclasses
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
        """The cost of everything."""
        return tuple(map(sum, zip(*self.exclusive.values()))) or (0,) * len(self.events)

    def total(self, event: str = INSTRUCTIONS) -> int:
        """The cost of everything in one kind of event."""
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
