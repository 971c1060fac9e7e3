"""What overriding torch functions costs compared with plain Tensors, and what is expected of it. Pure."""

from __future__ import annotations

import dataclasses
import enum
import itertools
from collections.abc import Callable, Mapping, Sequence

from torchmark.analysis.verdict.explain import OVERRIDES, explain
from torchmark.model.costs import Tally
from torchmark.model.judgement import Explanation
from torchmark.model.plan import Case
from torchmark.model.run import CaseSummary

PLAIN, SUBCLASS, TENSOR_LIKE, CLASSIC = "plain", "subclass", "tensor-like", "classic"
# A type of the user's, of which nothing is expected.
GIVEN = "given"


@dataclasses.dataclass(frozen=True)
class Overhead:
    """What a call costs more than with plain Tensors; None for what was not measured of both."""

    plain: Case
    seconds: float | None
    """Between the minimum times, which are steadier than medians where the machine is busy."""
    median_seconds: float | None
    instructions: float | None
    explanation: Explanation | None
    """Where the instructions go; base is the call with plain Tensors."""


@dataclasses.dataclass(frozen=True)
class OverrideRow:
    """A call with operands of some type."""

    summary: CaseSummary
    overhead: Overhead | None
    """None for plain Tensors."""
    stages: Mapping[str, float]
    """Its own instructions by stage; empty where they are not known."""

    @property
    def case(self) -> Case:
        return self.summary.case

    @property
    def call(self) -> str:
        return self.case.label[0]

    @property
    def operands(self) -> str:
        return " / ".join(self.case.label[1:])

    def has(self, tag: str) -> bool:
        return tag in self.case.tags


def find_plain(cases: Sequence[Case]) -> dict[Case, Case]:
    """The call with plain Tensors that each is held against, where there is one; one that is plain has none."""
    by_call = {case.label[0]: case for case in cases if PLAIN in case.tags}
    others = [(case, case.label[0].rpartition(" ")[2]) for case in cases if PLAIN not in case.tags]
    return {case: by_call[call] for case, call in others if call in by_call}


def add_plain(chosen: Sequence[Case], everything: Sequence[Case]) -> tuple[Case, ...]:
    """The chosen cases and those that they are held against; call by call, in the order in which calls come."""
    plain = find_plain((*everything, *chosen))
    wanted = {*chosen, *(plain[case] for case in chosen if case in plain)}
    ordered = [case for case in dict.fromkeys((*everything, *chosen)) if case in wanted]
    calls = {call: i for i, call in enumerate(dict.fromkeys(case.label[0] for case in ordered))}
    return tuple(sorted(ordered, key=lambda case: calls[case.label[0]]))


def find_overheads(
    summaries: Sequence[CaseSummary], tallies: Mapping[Case, Tally], standardise: Callable[[str], str]
) -> tuple[OverrideRow, ...]:
    """A row for each case, in their order. `tallies` have costs by function; `standardise` is that of `explain`."""
    plain = find_plain([summary.case for summary in summaries])
    by_case = {summary.case: summary for summary in summaries}
    return tuple(
        OverrideRow(
            summary,
            _compare(by_case[plain[summary.case]], summary, tallies, standardise) if summary.case in plain else None,
            _list_stages(tallies.get(summary.case), standardise),
        )
        for summary in summaries
    )


def _compare(
    plain: CaseSummary, summary: CaseSummary, tallies: Mapping[Case, Tally], standardise: Callable[[str], str]
) -> Overhead:
    seconds = median = instructions = None
    if plain.wall is not None and summary.wall is not None:
        seconds = summary.wall.times.minimum - plain.wall.times.minimum
        median = summary.wall.times.median - plain.wall.times.median
    if plain.count is not None and summary.count is not None:
        instructions = summary.count.instructions - plain.count.instructions
    base, head = tallies.get(plain.case), tallies.get(summary.case)
    explanation = explain(base, head, standardise) if base is not None and head is not None else None
    return Overhead(
        plain=plain.case, seconds=seconds, median_seconds=median, instructions=instructions, explanation=explanation
    )


def _list_stages(tally: Tally | None, standardise: Callable[[str], str]) -> dict[str, float]:
    explanation = explain(tally, tally, standardise) if tally is not None else None
    return {stage.stage: stage.head for stage in explanation.stages} if explanation is not None else {}


# Instructions for finding out that there is nothing to override. A hundred take 10 to 30 ns; effects of about 100 ns
# are what one looks for.
NEGLIGIBLE_INSTRUCTIONS = 100.0
# "Sub-microsecond for subclasses" is what was asked of the design.
SUBCLASS_LIMIT_S = 1e-6
# "A couple of microseconds" was written of 2.1; so it is what rounds to two.
TENSOR_LIKE_LIMIT_S = 2.5e-6


class Expectation(enum.Enum):
    """What is expected."""

    PLAIN_IS_CHEAPEST = "plain_is_cheapest"
    """No call takes fewer instructions with other operands than with plain Tensors."""
    NOTHING_FOR_PLAIN = "nothing_for_plain"
    """Plain Tensors do not pay for overrides that they do not have."""
    SMALL_FOR_SUBCLASSES = "small_for_subclasses"
    COUPLE_FOR_TENSOR_LIKES = "couple_for_tensor_likes"
    ORDER = "order"
    """Subclasses pay less than Tensor-likes, and one that overrides more than one that is empty."""


@dataclasses.dataclass(frozen=True)
class Extreme:
    """A number, and the call that it is of."""

    row: OverrideRow
    value: float


@dataclasses.dataclass(frozen=True)
class OverrideFinding:
    """Whether an expectation is met: in how many of all calls, and what the smallest and the largest number is.

    Numbers are instructions for PLAIN_IS_CHEAPEST and NOTHING_FOR_PLAIN, and else seconds.
    """

    expectation: Expectation
    met: int
    of: int
    least: Extreme
    most: Extreme
    limit: float
    order: tuple[Extreme, ...] = ()
    """For ORDER, all of them from the least to the most."""

    @property
    def is_met(self) -> bool:
        return self.met == self.of


def hold_to_expectations(rows: Sequence[OverrideRow]) -> tuple[OverrideFinding, ...]:
    """What can be said of each, where anything was measured that it is about."""
    counted = [
        Extreme(row, row.overhead.instructions)
        for row in rows
        if row.overhead is not None
        and row.overhead.instructions is not None
        # Operands may be plain Tensors after all, with something around the call.
        and row.case.label[1:] != row.overhead.plain.label[1:]
        and not row.has(GIVEN)
    ]
    for_nothing = [Extreme(row, row.stages[OVERRIDES]) for row in rows if row.has(PLAIN) and row.stages]
    found = [
        _hold(Expectation.PLAIN_IS_CHEAPEST, counted, 0.0, above=True),
        _hold(Expectation.NOTHING_FOR_PLAIN, for_nothing, NEGLIGIBLE_INSTRUCTIONS),
        _hold(Expectation.SMALL_FOR_SUBCLASSES, _list_times(rows, SUBCLASS), SUBCLASS_LIMIT_S),
        _hold(Expectation.COUPLE_FOR_TENSOR_LIKES, _list_times(rows, TENSOR_LIKE), TENSOR_LIKE_LIMIT_S),
        _hold_order([row for row in rows if row.has(CLASSIC)]),
    ]
    return tuple(finding for finding in found if finding is not None)


def _list_times(rows: Sequence[OverrideRow], tag: str) -> list[Extreme]:
    return [
        Extreme(row, row.overhead.seconds)
        for row in rows
        if row.has(tag) and row.overhead is not None and row.overhead.seconds is not None
    ]


def _hold(
    expectation: Expectation, numbers: Sequence[Extreme], limit: float, *, above: bool = False
) -> OverrideFinding | None:
    if not numbers:
        return None
    met = sum(one.value >= limit if above else one.value < limit for one in numbers)
    ordered = sorted(numbers, key=lambda one: one.value)
    return OverrideFinding(expectation, met, len(numbers), least=ordered[0], most=ordered[-1], limit=limit)


def _hold_order(rows: Sequence[OverrideRow]) -> OverrideFinding | None:
    """Of the calls that have always been measured, each pair of neighbours in the order that is expected."""
    plain = [Extreme(row, 0.0) for row in rows if row.has(PLAIN)]
    expected = [*plain, *_list_times(rows, SUBCLASS), *_list_times(rows, TENSOR_LIKE)]
    if len(expected) < 2:
        return None
    met = sum(one.value <= other.value for one, other in itertools.pairwise(expected))
    ordered = tuple(sorted(expected, key=lambda one: one.value))
    least, most, pairs = ordered[0], ordered[-1], len(expected) - 1
    return OverrideFinding(Expectation.ORDER, met, pairs, least=least, most=most, limit=0.0, order=ordered)
