"""Inputs as text, and how far a study of inputs is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torchmark.model.inputs import FuzzedInput
from torchmark.report.progress import Tried, draw_bar, word_rate
from torchmark.report.text.failures import sort_of, sum_up_failure
from torchmark.report.text.terminal import count
from torchmark.report.text.units import format_duration


def word_input(one: FuzzedInput) -> str:
    """All tensors of an input, and their type if that is one of its features.

    >>> tensor = {"size": (64, 3), "steps": (1, 2), "order": (1, 0)}
    >>> word_input(FuzzedInput(7, {}, {"x": tensor, "y": {"size": (3,)}}, ""))
    'x 64x3 every 1,2 order 1,0; y 3'
    >>> word_input(FuzzedInput(7, {"dtype": "int8"}, {"x": {"size": (3,)}}, ""))
    'int8 x 3'
    """
    tensors = "; ".join(word_tensor(name, tensor) for name, tensor in one.tensors.items())
    # Told only where inputs differ in it.
    return f"{one.features['dtype']} {tensors}" if "dtype" in one.features else tensors


def word_tensor(name: str, tensor: Mapping[str, Any]) -> str:
    """Its size, and whatever is not as usual: steps, the order in memory, what is sparse."""
    size = tensor["size"]
    parts = [name, "x".join(map(str, size)) or "scalar"]
    if any(step != 1 for step in tensor.get("steps", ())):
        parts.append(f"every {_join(tensor['steps'])}")
    order = tensor.get("order", ())
    if tuple(order) != tuple(range(len(order))):
        parts.append(f"order {_join(order)}")
    if "sparse_dim" in tensor:
        parts.append(f"sparse in {tensor['sparse_dim']}, density {tensor['density']:.2g}")
        parts += [] if tensor["is_coalesced"] else ["uncoalesced"]
    return " ".join(parts)


def _join(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


class InputAdvance:
    """How many inputs are done, and how many of these failed."""

    def __init__(self, total: int, clock: Callable[[], float]) -> None:
        self.total = total
        self.done = 0
        self.failed = 0
        self._clock = clock
        self._start = clock()
        self._told: set[tuple[str, str, str]] = set()

    @property
    def elapsed_s(self) -> float:
        """Since the beginning."""
        return self._clock() - self._start

    def add(self, event: Tried) -> str | None:
        """Note that an input is done; the words for a failure, if it is the first of its sort."""
        one, failure = event
        self.done += 1
        if failure is None:
            return None
        self.failed += 1
        sort = sort_of(failure)
        if sort in self._told:
            return None
        self._told.add(sort)
        return f"Failed: input {one.index} ({word_input(one)}): {sum_up_failure(failure)}"

    def describe(self) -> str:
        """One line for a log."""
        text = f"{self.done} of {count(self.total, 'input')} measured"
        return f"{text}, {self.failed} failed" if self.failed else text

    def conclude(self) -> str:
        """The last line."""
        return f"{self.describe()}, in {format_duration(self.elapsed_s)}"

    def draw(self, width: int, *, fancy: bool) -> str:
        """A bar, numbers, the rate, and what remains."""
        parts = [f"{self.done}/{self.total} inputs", f"{self.failed} failed" if self.failed else ""]
        parts.append(word_rate(self.done, self.elapsed_s))
        if 0 < self.done < self.total:
            remaining = self.elapsed_s / self.done * (self.total - self.done)
            parts.append(f"about {format_duration(remaining)} left")
        return draw_bar(self.done, self.total, width, fancy=fancy) + "  ".join(filter(None, parts))

    def describe_current(self, width: int) -> str:
        """Each takes too short a time to be told."""
        return ""
