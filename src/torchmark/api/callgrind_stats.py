"""`CallgrindStats` and `FunctionCounts`: instructions by function, and the arithmetic that compares them."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, overload

from torchmark.analysis.summarise import doubt_count, estimate_cycles, spread
from torchmark.callgrind.profiles import is_known_for_noise, standardise
from torchmark.errors import UsageError
from torchmark.model.caveats import Caveat
from torchmark.model.costs import Profile, Tally
from torchmark.model.environment import Environment
from torchmark.model.plain import AS_MAPPING, to_plain
from torchmark.model.schemas import begin_document
from torchmark.model.task import TaskSpec, name_value
from torchmark.report.caveats import describe_caveat
from torchmark.report.html.fragments import NotebookPanel, render_counts_panel, render_functions_panel, render_panel
from torchmark.report.text.counts import (
    Change,
    CountRow,
    FunctionRow,
    describe_counts,
    describe_functions,
    describe_layouts,
)
from torchmark.report.text.grid import to_json_caveat
from torchmark.report.text.terminal import DEFAULT_WIDTH, one_line, wrap
from torchmark.store.plain import check_schema, from_plain, pick_fields, take


class FunctionCount(NamedTuple):
    """How many instructions a function took."""

    count: int  # type: ignore[assignment]  # as the reference names it, although a tuple has a method of that name
    function: str

    def __repr__(self) -> str:
        return name_value(self, f"count={self.count}, function={self.function!r}")

    def _repr_html_(self) -> str:
        return render_panel(render_functions_panel([(self.count, self.function, False)], inclusive=True))


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
        return render_panel(render_functions_panel(rows, inclusive=self.inclusive, truncate=self.truncate_rows))


class _MixedCounts(UsageError, AssertionError):
    """The reference asserts here, and scripts may rely on that."""


def _torch_line_width() -> int:
    """What the user has told torch, if torch is here at all."""
    printing = getattr(sys.modules.get("torch"), "_tensor_str", None)
    width = getattr(getattr(printing, "PRINT_OPTS", None), "linewidth", DEFAULT_WIDTH)
    return int(width)


@dataclasses.dataclass(frozen=True)
class _CountTable:
    """Counts of functions as they are in JSON."""

    inclusive: bool
    noisy: frozenset[str] | None
    functions: tuple[tuple[int, str], ...]

    def as_counts(self) -> FunctionCounts:
        return FunctionCounts(tuple(map(FunctionCount._make, self.functions)), self.inclusive, _noisy=self.noisy)


_TABLES = ("baseline_inclusive_stats", "baseline_exclusive_stats", "stmt_inclusive_stats", "stmt_exclusive_stats")


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class CallgrindStats:
    """Instructions of `number_per_run` runs of one task, by function, with and without what functions call.

    A count is taken in several layouts of memory. The tables are those of the layout with the median count;
    `layouts` has the counts of all. The baseline is the empty loop.
    """

    task_spec: TaskSpec
    number_per_run: int
    built_with_debug_symbols: bool
    baseline_inclusive_stats: FunctionCounts
    baseline_exclusive_stats: FunctionCounts
    stmt_inclusive_stats: FunctionCounts
    stmt_exclusive_stats: FunctionCounts
    stmt_callgrind_out: str | None
    layouts: tuple[int, ...] = ()
    """The total of each layout; empty for statistics from elsewhere."""
    events: tuple[tuple[str, int], ...] = dataclasses.field(default=(), metadata=AS_MAPPING)
    """The totals of all events that were counted; more than instructions where caches were simulated."""
    allocations: int | None = None
    """Calls into the malloc family, in all runs."""
    tensor_allocations: int | None = None
    """Calls of torch's CPU allocator, in all runs."""
    environment: Environment | None = None
    optimised_away: bool = False
    """Whether the compiler left nothing of the statement, so that an empty loop was counted."""

    # --- what came out -------------------------------------------------------------------------------

    def stats(self, inclusive: bool = False) -> FunctionCounts:
        """Counts by function for all runs; the harness's share is in them."""
        return self.stmt_inclusive_stats if inclusive else self.stmt_exclusive_stats

    def counts(self, *, denoise: bool = False, net: bool = False) -> int:
        """Instructions of all runs together; `net` takes off what the empty loop costs.

        `denoise` leaves out functions that vary with the layout of memory. It changes nothing for C++.
        """
        stmt, baseline = self.stmt_exclusive_stats, self.baseline_exclusive_stats
        if net and not len(baseline):
            raise UsageError(
                "There is no baseline to take off: this is C++, or was counted with collect_baseline=False."
            )
        if denoise:
            stmt, baseline = stmt.denoise(), baseline.denoise()
        return stmt.sum() - (baseline.sum() if net else 0)

    def delta(self, other: CallgrindStats, inclusive: bool = False) -> FunctionCounts:
        """What this task costs more than another, by function."""
        if self.number_per_run != other.number_per_run:
            raise UsageError(
                f"Counts of {self.number_per_run} and of {other.number_per_run} runs cannot be subtracted: "
                "count both with the same number."
            )
        return self.stats(inclusive) - other.stats(inclusive)

    def as_standardized(self) -> CallgrindStats:
        """With names that do not depend on where things were built or installed, to compare two environments."""
        tables = {name: getattr(self, name).transform(standardise) for name in _TABLES}
        return dataclasses.replace(self, **tables, stmt_callgrind_out=None)

    @property
    def spread(self) -> float | None:
        """How far apart the layouts are, as a share of the median; None where there is only one."""
        return spread(self.layouts) if len(self.layouts) > 1 else None

    @property
    def estimated_cycles(self) -> int | None:
        """A rough idea of cycles, from simulated caches and branches; None where nothing was simulated."""
        return estimate_cycles(dict(self.events))

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """The reasons to doubt this count."""
        threads = self.task_spec.num_threads
        return doubt_count(self.layouts, threads, self.environment, optimised_away=self.optimised_away)

    # --- in and out ----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, from which `from_dict` makes an equal result."""
        counts = {name: getattr(self, name) for name in _TABLES}
        tables: dict[str, Any] = {n: _CountTable(c.inclusive, c._noisy, tuple(c)) for n, c in counts.items()}
        return {**begin_document("callgrind"), **to_plain(dataclasses.replace(self, **tables))}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CallgrindStats:
        """The result that `to_dict` gave this for; StoreError says what is wrong with anything else."""
        check_schema(data, "callgrind")
        tables = {name: from_plain(_CountTable, take(data, name, dict), name).as_counts() for name in _TABLES}
        return from_plain(cls, {**pick_fields(cls, data), **tables}, "")

    def __repr__(self) -> str:
        stmt, baseline = self.stmt_exclusive_stats, self.baseline_exclusive_stats
        text = describe_counts(
            self.task_spec,
            self.number_per_run,
            stmt=(stmt.sum(), stmt.denoise().sum()),
            baseline=(baseline.sum(), baseline.denoise().sum()),
            debug_symbols=self.built_with_debug_symbols,
        )
        lines = [f"<torchmark.CallgrindStats object at {id(self):#x}>", text]
        if self.layouts:
            lines.append(describe_layouts(self.layouts, self.spread))
        for caveat in self.caveats:
            lines += wrap(f"NOTE: {describe_caveat(caveat, 'python')}", DEFAULT_WIDTH, 6)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return render_panel(self._render_panel(self.task_spec))

    def _render_panel(self, spec: TaskSpec | None) -> NotebookPanel:
        number, noisy = self.number_per_run, self.stmt_exclusive_stats._noisy or frozenset()
        inclusive = {fn: c for c, fn in self.stmt_inclusive_stats}
        rows = [FunctionRow(fn, c / number, inclusive.get(fn, c) / number, fn in noisy) for c, fn in self.stats()]
        notes = [describe_caveat(caveat, "python") for caveat in self.caveats]
        if not self.built_with_debug_symbols:
            notes.append("PyTorch was not built with debug symbols: source files of its functions may be missing.")
        return render_counts_panel(spec, make_row(self), rows, notes)


def make_row(result: CallgrindStats) -> CountRow:
    """What was counted, per run, for a table of several statements."""
    number, baseline = result.number_per_run, result.baseline_exclusive_stats
    allocations, tensors, cycles = result.allocations, result.tensor_allocations, result.estimated_cycles
    return CountRow(
        name=one_line(result.task_spec.stmt),
        threads=result.task_spec.num_threads,
        number=number,
        instructions=result.counts() / number,
        baseline=baseline.sum() / number if len(baseline) else None,
        allocations=None if allocations is None else allocations / number,
        tensor_allocations=None if tensors is None else tensors / number,
        cycles=None if cycles is None else cycles / number,
        layouts=len(result.layouts),
        spread=result.spread,
        environment=result.environment,
    )


def to_json_stats(result: CallgrindStats) -> dict[str, Any]:
    """What was counted with what follows from it, for JSON."""
    return {
        **result.to_dict(),
        "instructions_per_run": result.counts() / result.number_per_run,
        "estimated_cycles": result.estimated_cycles,
        "spread": result.spread,
        "caveats": [to_json_caveat(caveat) for caveat in result.caveats],
    }


def list_changes(one: CallgrindStats, two: CallgrindStats) -> list[Change]:
    """What a run of the second costs more than one of the first, by function; the largest changes first."""
    changes = two.as_standardized().delta(one.as_standardized())
    steady = {entry.function for entry in changes.denoise()}
    rows = [(entry.count / one.number_per_run, entry.function, entry.function not in steady) for entry in changes]
    return sorted(rows, key=lambda row: -abs(row[0]))


def make_stats(
    spec: TaskSpec, tally: Tally, environment: Environment | None, *, compiled: bool = False
) -> CallgrindStats:
    """The result of a counting, from what the worker's profiles come to. `compiled` is for C++."""
    noisy = None if tally.noisy is None else frozenset(tally.noisy)
    if compiled:
        # The noise that the reference removes is the interpreter's; C++ has none of it.
        noisy = frozenset()
    return CallgrindStats(
        task_spec=spec,
        number_per_run=tally.number,
        built_with_debug_symbols=environment is not None and environment.debug_symbols,
        baseline_inclusive_stats=_table(tally.baseline_profile, inclusive=True, noisy=noisy),
        baseline_exclusive_stats=_table(tally.baseline_profile, inclusive=False, noisy=noisy),
        stmt_inclusive_stats=_table(tally.profile, inclusive=True, noisy=noisy),
        stmt_exclusive_stats=_table(tally.profile, inclusive=False, noisy=noisy),
        stmt_callgrind_out=tally.text,
        layouts=tally.totals,
        events=tally.events,
        allocations=tally.allocations,
        tensor_allocations=tally.tensor_allocations,
        environment=environment,
        optimised_away=tally.optimised_away,
    )


def _table(profile: Profile | None, *, inclusive: bool, noisy: frozenset[str] | None) -> FunctionCounts:
    if profile is None:
        return FunctionCounts((), inclusive, _noisy=noisy)
    costs = profile.inclusive if inclusive else profile.exclusive
    entries = (FunctionCount(cost[0], function.label) for function, cost in costs.items() if cost[0])
    return FunctionCounts(tuple(sorted(entries, reverse=True)), inclusive, _noisy=noisy)
