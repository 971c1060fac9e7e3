"""The verdict on a case from instructions, allocations and time. This is the rule for *faster* and *slower*."""

from __future__ import annotations

import re
from collections.abc import Iterable

from torchmark.model.caveats import ComparisonCaveat
from torchmark.model.judgement import (
    CaseJudgement,
    Cause,
    CountEvidence,
    Explanation,
    FunctionChange,
    SideFailure,
    Spread,
    TimeEvidence,
    Verdict,
)
from torchmark.model.plan import Case

# Heaps in another state move counts by up to 22 instructions a run, and by 0.3 % where glibc takes other paths.
SMALLEST_DELTA = 30.0
SMALLEST_RATIO = 0.003
# From here on other instructions are called slower or faster although the clock cannot tell, unless it is asked for
# less: where two builds have the same compiled code, counts are as good as exact down to the smallest ratio.
LARGE_RATIO = 0.01
# One a run, less a single one that a hundred runs happened not to need.
ONE_ALLOCATION = 0.99
# Added interpreter work took 12 to 15 instructions a nanosecond on a 3 GHz processor; whole calls, with their misses of
# caches, took 8.7. The lower of the first two expects rather more time.
INSTRUCTIONS_PER_NS = 12.0

SIGNS = {Verdict.SLOWER: 1, Verdict.FASTER: -1}
VERDICTS = {sign: verdict for verdict, sign in SIGNS.items()}


def expected_seconds(delta_instructions: float) -> float:
    """How much longer this many more instructions may take, for planning: it can be twice that, or nothing.

    >>> expected_seconds(120)
    1e-08
    """
    return delta_instructions / INSTRUCTIONS_PER_NS * 1e-9


def is_instruction_change(count: CountEvidence) -> int:
    """1 for more instructions, -1 for fewer, 0 where that cannot be told: see `contrast_instructions`."""
    return contrast_instructions(count.base, count.head)


def contrast_instructions(base: Spread, head: Spread) -> int:
    """1 for more instructions, -1 for fewer, 0 where the difference may come from where things lie in memory.

    A difference counts if it is large enough, and if no layout of one side reaches those of the other.
    """
    overlap = head.low <= base.high and base.low <= head.high
    delta = head.value - base.value
    if overlap or abs(delta) <= max(SMALLEST_DELTA, SMALLEST_RATIO * base.value):
        return 0
    return _sign(delta)


def find_code_change(count: CountEvidence) -> int:
    """The same for all that is counted: allocations tell where instructions do not."""
    # Nearly each tensor's memory is an allocation of the malloc family too, so these are asked last.
    more = (
        count.head_allocations - count.base_allocations,
        count.head_tensor_allocations - count.base_tensor_allocations,
    )
    by_allocations = next((_sign(one) for one in more if abs(one) >= ONE_ALLOCATION), 0)
    return is_instruction_change(count) or by_allocations


def find_steady_change(count: CountEvidence, least: float) -> int | None:
    """The same by functions whose cost does not depend on addresses alone; None where that is not known.

    They are as good as exact, whatever the heap: `least` is the share of a call from which on they count.
    """
    if count.steady_delta is None:
        return None
    return _sign(count.steady_delta) if abs(count.steady_delta) > max(SMALLEST_DELTA, least * count.base.value) else 0


def weigh_interval(estimate: float, low: float, high: float, *, floor: float, equivalence: float) -> Verdict:
    """What an interval of a log-ratio says: a change of the floor's size at least, the same, or neither."""
    if abs(estimate) >= floor and (low > 0 or high < 0):
        return VERDICTS[_sign(estimate)]
    return Verdict.SAME if -equivalence <= low and high <= equivalence else Verdict.UNDECIDED


def judge(
    case: Case,
    time: TimeEvidence | None,
    count: CountEvidence | None,
    *,
    base_case: Case | None = None,
    caveats: tuple[ComparisonCaveat, ...] = (),
    failures: tuple[SideFailure, ...] = (),
    explanation: Explanation | None = None,
    decisive: float = LARGE_RATIO,
) -> CaseJudgement:
    """What is said of a case. A kind of evidence that is not there for both sides is None; without any the case failed.

    `decisive` is the share of instructions from which on they decide alone; below the usual one, by those functions
    whose cost does not depend on addresses.
    """
    verdict, cause = _hear(time, count, decisive)
    return CaseJudgement(
        case=case,
        verdict=verdict,
        cause=cause,
        time=time,
        count=count,
        explanation=explanation,
        caveats=caveats,
        failures=failures,
        base_case=base_case,
    )


def _hear(time: TimeEvidence | None, count: CountEvidence | None, decisive: float) -> tuple[Verdict, Cause]:
    if time is not None and count is not None:
        steady = find_steady_change(count, decisive) if decisive < LARGE_RATIO else None
        code = find_code_change(count) if steady is None else steady
        # What the clock cannot tell, but rather sees the other way, instructions alone do not decide.
        # Steady ones are as good as exact: against them it has to be sure.
        is_sure = time.low > 0 or time.high < 0
        leans = is_sure or (abs(time.log_ratio) >= time.floor and not steady)
        opposed = leans and _sign(time.log_ratio) == -code
        large = (abs(count.ratio) > LARGE_RATIO or bool(steady)) and not opposed
        return _decide(code, time.verdict, large=large, confirmed=time.confirmed is True)
    if time is not None:
        return time.verdict, Cause.OPEN if time.verdict is Verdict.UNDECIDED else Cause.TIME_ALONE
    if count is not None:
        return VERDICTS.get(find_code_change(count), Verdict.SAME), Cause.COUNT_ALONE
    return Verdict.FAILED, Cause.OPEN


def _decide(code: int, clock: Verdict, *, large: bool, confirmed: bool) -> tuple[Verdict, Cause]:
    """The verdict and its cause from what counts say, as a sign, and what the clock says.

    | code      | clock              | besides       | verdict        | cause            |
    | --------- | ------------------ | ------------- | -------------- | ---------------- |
    | unchanged | same               |               | same           | unchanged        |
    | unchanged | undecided          |               | undecided      | open             |
    | unchanged | changed            | confirmed     | the clock's    | not instructions |
    | unchanged | changed            | not confirmed | undecided      | layout           |
    | changed   | same, undecided    | large         | the code's     | below resolution |
    | changed   | same, undecided    | not large, or | the clock's    | below resolution |
    |           |                    | leaning back  |                |                  |
    | changed   | changed as well    |               | the clock's    | confirmed        |
    | changed   | the other way      |               | the clock's    | trade-off        |
    """
    clock_sign = SIGNS.get(clock, 0)
    if code == 0 and clock_sign == 0:
        return clock, Cause.UNCHANGED if clock is Verdict.SAME else Cause.OPEN
    if code == 0:
        return (clock, Cause.NOT_INSTRUCTIONS) if confirmed else (Verdict.UNDECIDED, Cause.LAYOUT)
    if clock_sign == 0:
        return VERDICTS[code] if large else clock, Cause.BELOW_RESOLUTION
    return clock, Cause.CONFIRMED if clock_sign == code else Cause.TRADE_OFF


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


# By names without parameters. Seen to differ between copies of one environment in folders of other lengths: counts of
# calls through Python differed by up to 0.9 %, and without these functions by less than 0.1 %.
_UNSTEADY = re.compile(
    r"_PyType_Lookup|find_name_in_mro|assign_version_tag|_Py_dict_lookup|_?PyDict_GetItem_KnownHash|PyErr_Occurred"
    r"|(?:unicodekeys|dictkeys|lookdict)\w*|insertdict|_?PyObject_(?:Malloc|Free|Realloc)|allocate_from_new_pool"
    r"|unicode_dealloc|_Py_Dealloc|(?:__libc_|_int_)?(?:malloc|free|calloc|realloc|memalign)|unlink_chunk"
    r"|malloc_consolidate|posix_memalign|_mid_memalign|siphash13|unicode_eq|__memcmp\w*|PyType_IsSubtype"
)


def find_steady_delta(functions: Iterable[FunctionChange]) -> float:
    """How many instructions more there are in all other functions."""
    return sum(one.delta for one in functions if not _UNSTEADY.fullmatch(one.function))
