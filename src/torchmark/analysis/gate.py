"""The gate: which judgements stop a change from going in, and which ask to be accepted. Improvements never stop it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

from torchmark.analysis.contrast import CaseId, identify
from torchmark.analysis.judge import is_instruction_change
from torchmark.analysis.limits import find_limit
from torchmark.model.case import Case
from torchmark.model.gate import (
    FailOn,
    GateResult,
    Growth,
    Improvement,
    Limit,
    Policy,
    Regression,
    StaleEntry,
    Standing,
    Witness,
)
from torchmark.model.judgement import Judgement, Side, Verdict

REGRESSED = 3
# Nothing that was compared stops, but less was compared than was asked for.
INCOMPLETE = 1


def hold_gate(
    judgements: Sequence[Judgement],
    missing: Sequence[Case],
    ledger: Mapping[CaseId, Standing | StaleEntry],
    policy: Policy,
) -> GateResult:
    """What stops. Where the ledger has a standing, a count is held against what was accepted, and not against base."""
    standings = {key: one for key, one in ledger.items() if isinstance(one, Standing)}
    regressions = [
        regression
        for judgement in judgements
        for regression in _check(judgement, standings.get(identify(judgement.case)), policy)
    ]
    if FailOn.MISSING in policy.fail_on:
        regressions += [Regression(case, FailOn.MISSING) for case in missing]
    return GateResult(
        tuple(regressions),
        tuple(Improvement(one.case, one.accepted, one.head) for one in standings.values() if one.head < one.accepted),
        tuple(one for one in ledger.values() if isinstance(one, StaleEntry)),
        tuple(one.case for one in judgements if _is_accepted(one, standings.get(identify(one.case)))),
        exit_code=REGRESSED if regressions else 0,
    )


def look_for_gaps(
    result: GateResult,
    judgements: Sequence[Judgement],
    unmeasured: Sequence[Case],
    ledger: Mapping[CaseId, Standing | StaleEntry],
    policy: Policy,
) -> GateResult:
    """The same, with what a gate could not look at: it lets nothing through that was not compared.

    `unmeasured` are cases that base has results of and head has not, though it should.
    """
    nothing = all(one.time is None and one.count is None for one in judgements)
    if not policy.fail_on:
        return dataclasses.replace(result, nothing_compared=nothing)
    told = {identify(one.case) for one in result.regressions}
    found = {identify(case): case for case in (*(one.case for one in judgements if _is_lost(one)), *unmeasured)}
    lost = tuple(case for key, case in found.items() if key not in told)
    idle = () if nothing else tuple(_find_idle_limits(judgements, ledger, policy))
    code = INCOMPLETE if nothing or lost or idle else 0
    return dataclasses.replace(
        result, exit_code=result.exit_code or code, nothing_compared=nothing, lost=lost, idle_limits=idle
    )


def _is_lost(judgement: Judgement) -> bool:
    """Whether head failed where base did not, or cannot be compared although nothing failed in base."""
    failed = {one.side for one in judgement.failures}
    return Side.BASE not in failed and (Side.HEAD in failed or (judgement.time is None and judgement.count is None))


def _find_idle_limits(
    judgements: Sequence[Judgement], ledger: Mapping[CaseId, Standing | StaleEntry], policy: Policy
) -> Iterator[Limit]:
    counted = any(one.count is not None for one in judgements)
    known = {
        Witness.TIME: any(one.time is not None for one in judgements),
        Witness.ALLOCATIONS: counted,
        Witness.INSTRUCTIONS: counted or any(isinstance(one, Standing) for one in ledger.values()),
    }
    if FailOn.SLOWER in policy.fail_on:
        yield from (limit for limit in policy.limits if not known[limit.witness])


def _is_accepted(judgement: Judgement, standing: Standing | None) -> bool:
    if standing is None or judgement.count is None:
        return False
    return judgement.count.delta > 0 and standing.head == standing.accepted


def _check(judgement: Judgement, standing: Standing | None, policy: Policy) -> Iterator[Regression]:
    """Every reason for which a case stops."""
    if FailOn.SLOWER in policy.fail_on:
        yield from _check_slower(judgement, standing, policy.limits)
    if FailOn.UNDECIDED in policy.fail_on and judgement.verdict is Verdict.UNDECIDED:
        yield Regression(judgement.case, FailOn.UNDECIDED)
    # What failed in base alone has become better.
    if FailOn.FAILED in policy.fail_on and any(one.side is Side.HEAD for one in judgement.failures):
        yield Regression(judgement.case, FailOn.FAILED)


def _check_slower(judgement: Judgement, standing: Standing | None, limits: Sequence[Limit]) -> list[Regression]:
    found = [
        regression
        for regression in (
            _check_instructions(judgement, standing, find_limit(limits, Witness.INSTRUCTIONS, judgement.case)),
            _check_time(judgement, standing, find_limit(limits, Witness.TIME, judgement.case)),
            _check_allocations(judgement, find_limit(limits, Witness.ALLOCATIONS, judgement.case)),
        )
        if regression is not None
    ]
    bounded = standing is not None or any(find_limit(limits, witness, judgement.case) for witness in Witness)
    if judgement.verdict is Verdict.SLOWER and not found and not bounded:
        return [Regression(judgement.case, FailOn.SLOWER, functions=_grown(judgement))]
    return found


def _check_instructions(judgement: Judgement, standing: Standing | None, limit: Limit | None) -> Regression | None:
    """More than the limit allows; without a limit, whatever the verdict rests on alone."""
    case, count = judgement.case, judgement.count
    if standing is not None:
        limit = limit or Limit(Witness.INSTRUCTIONS)
        if limit.admits(standing.accepted, standing.head):
            return None
        both = standing.accepted, standing.head
        functions = standing.functions
        return Regression(case, FailOn.SLOWER, Witness.INSTRUCTIONS, *both, limit, accepted=True, functions=functions)
    if count is None:
        return None
    if limit is None:
        stops = judgement.verdict is Verdict.SLOWER and not _is_slower_by_clock(judgement) and count.delta > 0
    else:
        stops = not limit.admits(count.base.value, count.head.value)
    if not stops:
        return None
    both = count.base.value, count.head.value
    return Regression(case, FailOn.SLOWER, Witness.INSTRUCTIONS, *both, limit, functions=_grown(judgement))


def _is_slower_by_clock(judgement: Judgement) -> bool:
    """What the clock alone calls slower may be another verdict in the end, and is none of the gate's business then."""
    time = judgement.time
    return judgement.verdict is Verdict.SLOWER and time is not None and time.verdict is Verdict.SLOWER


def _check_time(judgement: Judgement, standing: Standing | None, limit: Limit | None) -> Regression | None:
    time, count = judgement.time, judgement.count
    if time is None or not _is_slower_by_clock(judgement):
        return None
    if standing is not None and count is not None and is_instruction_change(count) > 0:
        # Whoever accepts instructions accepts the time they take.
        return None
    ratio = math.exp(time.log_ratio)
    if limit is not None and limit.admits(1.0, ratio):
        return None
    both = time.base_s, time.base_s * ratio
    return Regression(judgement.case, FailOn.SLOWER, Witness.TIME, *both, limit, functions=_grown(judgement))


def _check_allocations(judgement: Judgement, limit: Limit | None) -> Regression | None:
    count = judgement.count
    if limit is None or count is None or limit.admits(count.base_allocations, count.head_allocations):
        return None
    both = count.base_allocations, count.head_allocations
    return Regression(judgement.case, FailOn.SLOWER, Witness.ALLOCATIONS, *both, limit)


def _grown(judgement: Judgement) -> tuple[Growth, ...]:
    """By name, because two functions of one name are one to whoever reads it."""
    if judgement.explanation is None:
        return ()
    deltas: dict[str, float] = {}
    for change in judgement.explanation.functions:
        deltas[change.function] = deltas.get(change.function, 0.0) + change.delta
    return tuple(Growth(name, -delta) for delta, name in sorted((-d, name) for name, d in deltas.items() if d > 0))
