"""Judgements with numbers that somebody made up, and random ones."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from hypothesis import strategies as st

from tests.made_summaries import make_case
from torchmark.analysis.verdict.judge import judge
from torchmark.model import caveats as doubts
from torchmark.model.caveats import ComparisonCaveat
from torchmark.model.judgement import (
    CaseJudgement,
    Cause,
    CountEvidence,
    LayoutVisits,
    Side,
    SideFailure,
    Spread,
    TimeEvidence,
    Verdict,
)
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.plan import AutogradMode, Case, RuntimeMode
from torchmark.model.task import Language

LACKING = Failure(
    FailureKind.RAISED,
    "It fails when it is run once.",
    "Traceback (most recent call last):\n  f(x)\nAttributeError: module 'torch' has no attribute 'f'",
)
CRASHED = Failure(FailureKind.CRASHED, "The process was ended by SIGSEGV.")
DOUBTS: tuple[ComparisonCaveat, ...] = (
    doubts.Incomparable("cpu", "Xeon", "EPYC"),
    doubts.Unmatched("libraries", ("libtorch_cpu.so",)),
    doubts.FewLayouts(2, 4),
    doubts.LayoutSensitive(0.014),
    doubts.NotInTurns(),
    doubts.NotTimed("compiles"),
    doubts.FewRounds(1, 3),
    doubts.LeftOut("base", "wall", 1, 3),
    doubts.ManyThreads(2),
    doubts.TooShort(2e-8),
    doubts.TooLong(0.05),
    doubts.SlowSpells(0.64, 1.9),
    doubts.WildPairs(0.2),
    doubts.PageFaults(0.3),
    doubts.Interrupted(0.1),
)


def make_time(
    change: float,
    half: float = 0.004,
    *,
    verdict: Verdict | None = None,
    base_s: float = 1e-6,
    layouts: int = 6,
    layout_sd: float | None = 0.002,
    confirmed: bool | None = None,
    needed_s: float | None = None,
) -> TimeEvidence:
    """A change of time as a share, with an interval whose half width is a log-ratio."""
    center = math.log1p(change)
    low, high = center - half, center + half
    if verdict is None:
        verdict = Verdict.SLOWER if low > 0 else Verdict.FASTER if high < 0 else Verdict.UNDECIDED
        verdict = Verdict.SAME if max(abs(low), abs(high)) < 0.01 and low < 0 < high else verdict
    return TimeEvidence(
        verdict=verdict,
        log_ratio=center,
        low=low,
        high=high,
        confidence=0.99,
        base_s=base_s,
        head_s=base_s * (1 + change),
        floor=0.003,
        equivalence=0.01,
        p_value=0.001,
        layouts=layouts,
        sweeps=4 if layouts else 0,
        layout_sd=layout_sd,
        fork_sd=0.003,
        confirmed=confirmed,
        seconds=0.47,
        needed_s=needed_s,
    )


def make_visits(first: Sequence[Sequence[float]], fresh: Sequence[Sequence[float]] = ()) -> tuple[LayoutVisits, ...]:
    """Visits of layouts whose changes are shares, of a statement that takes a microsecond."""
    return tuple(
        LayoutVisits(
            log_ratios=tuple(map(math.log1p, shares)),
            centre=math.log1p(statistics.median(shares)),
            fresh=is_fresh,
            base_s=(1e-6,) * len(shares),
            head_s=tuple(1e-6 * (1 + share) for share in shares),
        )
        for layouts, is_fresh in ((first, False), (fresh, True))
        for shares in layouts
    )


def make_count(
    base: float, delta: float, allocations: tuple[float, float] = (3, 3), spread: float = 0
) -> CountEvidence:
    sides = [Spread(value, value - spread, value + spread) for value in (base, base + delta)]
    return CountEvidence(sides[0], sides[1], *allocations, 1, 1)


def make_judgement(
    *label: str,
    time: TimeEvidence | None = None,
    count: CountEvidence | None = None,
    case: Case | None = None,
    base_case: Case | None = None,
    caveats: tuple[ComparisonCaveat, ...] = (),
    failures: tuple[SideFailure, ...] = (),
) -> CaseJudgement:
    """What would be said of this evidence."""
    case = case or make_case(*label)
    return judge(case, time, count, base_case=base_case, caveats=caveats, failures=failures)


def fail(*sides: Side, failure: Failure = LACKING) -> tuple[SideFailure, ...]:
    return tuple(SideFailure(side, failure) for side in sides)


_numbers = st.floats(-1e3, 1e3) | st.floats()
_counts = st.floats(0, 1e12)
random_times = st.builds(
    TimeEvidence,
    verdict=st.sampled_from(Verdict),
    log_ratio=st.floats(-3, 3) | _numbers,
    low=st.floats(-4, 0) | _numbers,
    high=st.floats(0, 4) | _numbers,
    confidence=st.sampled_from([0.95, 0.99]),
    base_s=st.floats(1e-9, 10),
    head_s=st.floats(1e-9, 10),
    floor=st.just(0.003),
    equivalence=st.just(0.01),
    layouts=st.integers(0, 40),
    sweeps=st.integers(0, 40),
    layout_sd=st.none() | st.floats(0, 1),
    confirmed=st.none() | st.booleans(),
    seconds=st.floats(0, 1e6),
    needed_s=st.none() | st.floats(0, 1e6),
)
_spreads = st.builds(Spread, _counts, _counts, _counts)
_labels = st.lists(
    st.text(min_size=1) | st.sampled_from(["加算" * 20, "a|b\n<script>", "\x1b[31m"]), min_size=1, max_size=3
)
_cases = st.builds(
    lambda label, runtime, autograd, language, threads, suite: make_case(
        *label, runtime=runtime, autograd=autograd, language=language, threads=threads, suite=suite
    ),
    _labels,
    st.sampled_from(RuntimeMode),
    st.sampled_from(AutogradMode),
    st.sampled_from(Language),
    st.integers(1, 64),
    st.sampled_from(["", "standard", "~/私の.py"]),
)
random_judgements = st.builds(
    CaseJudgement,
    case=_cases,
    verdict=st.sampled_from(Verdict),
    cause=st.sampled_from(Cause),
    time=st.none() | random_times,
    count=st.none() | st.builds(CountEvidence, _spreads, _spreads, _counts, _counts, _counts, _counts),
    caveats=st.lists(st.sampled_from(DOUBTS), max_size=4, unique=True).map(tuple),
    failures=st.lists(
        st.builds(SideFailure, st.sampled_from(Side), st.sampled_from([LACKING, CRASHED])), max_size=2
    ).map(tuple),
    base_case=st.none() | _cases,
)
