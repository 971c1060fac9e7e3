"""`FunctionCounts`: instructions by function, with the arithmetic that makes two of them comparable."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, overload

from torchmark.callgrind.symbols import is_known_for_noise
from torchmark.errors import UsageError
from torchmark.model.line import name_value
from torchmark.report.counts import DEFAULT_LINE_WIDTH, describe_functions
from torchmark.report.notebook import render_panel, show_functions


class FunctionCount(NamedTuple):
    """How many instructions a function took."""

    count: int  # type: ignore[assignment]  # as the reference names it, although a tuple has a method of that name
    function: str

    def __repr__(self) -> str:
        return name_value(self, f"count={self.count}, function={self.function!r}")

    def _repr_html_(self) -> str:
        return render_panel(show_functions([(self.count, self.function, False)], inclusive=True))


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class FunctionCounts:
    """Counts of functions, the largest first.

    >>> counts = FunctionCounts((FunctionCount(20, "a.c:f"), FunctionCount(3, "a.c:g")), inclusive=False)
    >>> counts[0].function, (counts - counts).sum(), (counts * 2).sum()
    ('a.c:f', 0, 46)
    """

    _data: tuple[FunctionCount, ...]
    inclusive: bool
    truncate_rows: bool = True
    _linewidth: int | None = None
    _noisy: frozenset[str] | None = None
    """The functions that were seen to vary with the layout of memory; None where nobody looked."""

    def __iter__(self) -> Iterator[FunctionCount]:
        yield from self._data

    def __len__(self) -> int:
        return len(self._data)

    @overload
    def __getitem__(self, item: int) -> FunctionCount: ...

    @overload
    def __getitem__(self, item: slice) -> FunctionCounts: ...

    def __getitem__(self, item: int | slice) -> FunctionCount | FunctionCounts:
        if isinstance(item, slice):
            return dataclasses.replace(self, _data=self._data[item], truncate_rows=False, _linewidth=None)
        return self._data[item]

    def __add__(self, other: FunctionCounts) -> FunctionCounts:
        return self._merge(other, lambda count: count)

    def __sub__(self, other: FunctionCounts) -> FunctionCounts:
        return self._merge(other, lambda count: -count)

    def __mul__(self, other: float) -> FunctionCounts:
        return self._make((FunctionCount(int(c * other), fn) for c, fn in self._data), self._noisy)

    __rmul__ = __mul__

    def transform(self, map_fn: Callable[[str], str]) -> FunctionCounts:
        """Rename functions; counts of those that get the same name are added."""
        noisy = None if self._noisy is None else frozenset(map(map_fn, self._noisy))
        return self._make((FunctionCount(c, map_fn(fn)) for c, fn in self._data), noisy)

    def filter(self, filter_fn: Callable[[str], bool]) -> FunctionCounts:
        """Keep the functions whose name satisfies a condition."""
        kept = tuple(entry for entry in self._data if filter_fn(entry.function))
        return FunctionCounts(kept, self.inclusive, _noisy=self._noisy)

    def sum(self) -> int:
        """The total. Of inclusive counts it says little: what is called is counted again."""
        return sum(c for c, _ in self._data)

    def denoise(self) -> FunctionCounts:
        """Without noisy functions: those seen to vary across layouts; where nobody looked, those known to by name."""
        noisy = self._noisy
        if noisy is None:
            return self.filter(lambda fn: not is_known_for_noise(fn))
        return self.filter(lambda fn: fn not in noisy)

    def _merge(self, other: FunctionCounts, sign: Callable[[int], int]) -> FunctionCounts:
        if not isinstance(other, FunctionCounts):
            return NotImplemented
        if self.inclusive != other.inclusive:
            raise _MixedCounts("Cannot merge inclusive and exclusive counts.")
        # What only one side has seen to vary is noise in the difference too.
        known = [noisy for noisy in (self._noisy, other._noisy) if noisy is not None]
        noisy = frozenset().union(*known) if known else None
        entries = (*self._data, *(FunctionCount(sign(c), fn) for c, fn in other._data))
        return self._make(entries, noisy)

    def _make(self, entries: Iterable[FunctionCount], noisy: frozenset[str] | None) -> FunctionCounts:
        totals: dict[str, int] = {}
        for c, fn in entries:
            totals[fn] = totals.get(fn, 0) + c
        merged = sorted((FunctionCount(c, fn) for fn, c in totals.items() if c), reverse=True)
        return FunctionCounts(tuple(merged), self.inclusive, _noisy=noisy)

    def __repr__(self) -> str:
        text = describe_functions(
            self._data,
            inclusive=self.inclusive,
            line_width=self._linewidth or _torch_line_width(),
            truncate=self.truncate_rows,
        )
        return f"<torchmark.FunctionCounts object at {id(self):#x}>\n{text}"

    def _repr_html_(self) -> str:
        noisy = self._noisy or frozenset()
        rows = [(c, fn, fn in noisy) for c, fn in self._data]
        return render_panel(show_functions(rows, inclusive=self.inclusive, truncate=self.truncate_rows))


class _MixedCounts(UsageError, AssertionError):
    """The reference asserts here, and scripts may rely on that."""


def _torch_line_width() -> int:
    """What the user has told torch, if torch is here at all."""
    printing = getattr(sys.modules.get("torch"), "_tensor_str", None)
    width = getattr(getattr(printing, "PRINT_OPTS", None), "linewidth", DEFAULT_LINE_WIDTH)
    return int(width)
