"""What overriding torch functions costs: every call against the same call with plain Tensors. Pure.

Which case is which stands in its tags: `plain` is what others are held against, those of the same call, and those whose
call has the same last word: `mixed add` is an `add`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from torchmark.analysis.explain import explain
from torchmark.model.case import Case
from torchmark.model.costs import Tally
from torchmark.model.judgement import Explanation
from torchmark.model.summary import CaseSummary

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
        """Which."""
        return self.summary.case

    @property
    def call(self) -> str:
        """What the call is labelled with."""
        return self.case.label[0]

    @property
    def operands(self) -> str:
        """What the types are labelled with."""
        return " / ".join(self.case.label[1:])

    def has(self, tag: str) -> bool:
        """Whether its case has a tag."""
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
    return Overhead(plain.case, seconds, median, instructions, explanation)


def _list_stages(tally: Tally | None, standardise: Callable[[str], str]) -> dict[str, float]:
    explanation = explain(tally, tally, standardise) if tally is not None else None
    return {stage.stage: stage.head for stage in explanation.stages} if explanation is not None else {}
