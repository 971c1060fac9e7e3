"""Comparisons whose answer is known: a build against itself, and against itself with a slowdown of a known size."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from torchmark.analysis.verdict.visits import Reduced, choose_pace, reduce_visit
from torchmark.compare.experiment import DEFAULTS, PairSite, SequentialComparison, Settings
from torchmark.errors import WorkerError
from torchmark.model.gate import Trial
from torchmark.model.job import PairedCase, PairedSide, RunTime, Visit
from torchmark.model.job import Place as JobPlace
from torchmark.report.text.failures import describe_failure
from torchmark.runner.paired_workers import Failures
from torchmark.stats.distribution import quantile

# What people compare most: a small operator, about a microsecond.
STMT = "torch.add(x, y)"
SETUP = "x, y = torch.ones(4, 4), torch.ones(4, 4)"
# An assignment of one local variable to another takes the interpreter one to three nanoseconds.
SLOWING = "z = x"
# As many make the difference that one of them is known by, from so many visits of each layout.
MANY = 100
GAUGES = 2


def make_part(slowing: int = 0) -> PairedSide:
    """The statement, with so many assignments behind it."""
    return PairedSide("\n".join([STMT, *[SLOWING] * slowing]), SETUP, JobPlace("/"))


def gauge_slowing(place: PairSite) -> float:
    """Seconds that one assignment adds where the machine is fast: the ratio is of blocks in turns, which spells of the
    machine leave alone, and the fastest of the visits tells what it is a ratio of."""
    paired_case = PairedCase(make_part(), make_part(MANY))
    pace = choose_pace(_gauge(place, paired_case).head_s)
    visits = [_reduce(place.visit(layout, paired_case, pace)) for layout in place.layouts for _ in range(GAUGES)]
    ratio = quantile(sorted(visit.log_ratio for visit in visits), 0.5)
    return max(math.expm1(ratio), 1e-6) * min(visit.base_s for visit in visits) / MANY


def _reduce(outcome: Visit | Failures) -> Reduced:
    if not isinstance(outcome, Visit):
        raise WorkerError(f"The self-test cannot run here: {describe_failure(outcome[0].failure)}", kind="selftest")
    return reduce_visit(outcome)


def _gauge(place: PairSite, paired_case: PairedCase) -> RunTime:
    gauged = place.gauge(paired_case)
    if not isinstance(gauged, RunTime):
        raise WorkerError(f"The self-test cannot run here: {describe_failure(gauged[0].failure)}", kind="selftest")
    return gauged


def choose_slowings(place: PairSite, sizes_s: Sequence[float]) -> dict[int, float]:
    """How many assignments come closest to these sizes, and what size they really have."""
    each = gauge_slowing(place)
    counts = dict.fromkeys(max(1, round(size / each)) for size in sizes_s)
    return {count: count * each for count in counts}


def gauge_statement(place: PairSite) -> float:
    """Seconds of one run of the statement."""
    return _gauge(place, PairedCase(make_part(), make_part())).base_s


def run_trials(
    place: PairSite,
    slowings: Mapping[int, float],
    schedule: Iterable[int],
    settings: Settings = DEFAULTS,
    seed: int = 0,
) -> Iterator[Trial]:
    """Make one comparison after the other.

    `schedule` has, for each trial, how many assignments to put in; 0 for none. It should be in random order, so that
    all sizes meet the same machine. Layouts have been started.
    """
    for number, count in enumerate(schedule):
        paired_case = PairedCase(make_part(), make_part(count))
        began = time.monotonic()
        experiment = SequentialComparison(place, settings, seed=seed + number)
        ((_, timing),) = experiment.decide({STMT: paired_case})
        if timing.evidence is None:
            problem = describe_failure(timing.failures[0].failure) if timing.failures else "nothing was measured."
            raise WorkerError(f"A trial of the self-test failed: {problem}", kind="selftest")
        yield Trial(
            slowings[count] if count else 0.0,
            timing.evidence.verdict,
            timing.evidence.log_ratio,
            time.monotonic() - began,
        )
