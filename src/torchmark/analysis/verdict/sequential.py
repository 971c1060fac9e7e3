"""When to stop timing two sides in turns, and what may then be said; and what self-tests show about this."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence

from torchmark.analysis.verdict.judge import weigh_interval
from torchmark.model.gate import Trial
from torchmark.model.judgement import Verdict
from torchmark.stats import intervals
from torchmark.stats.distribution import quantile
from torchmark.stats.intervals import binomial_bounds
from torchmark.stats.layered import MEDIAN_FACTOR, Layered, combine_layouts, variance_of_centre

# False discoveries among changes that were seen again. Fresh layouts know nothing of why a case was chosen, so the p
# values of the chosen ones alone may be given to `benjamini_hochberg`. It accepts none above this rate: a case that
# did not change is called changed with a probability of at most alpha times this, 0.25 %; simulated, below 0.1 %.
CONFIRM_RATE = 0.05
# A layout can put either side into one of two modes, up to 3 % apart. Where layouts do not match, a quarter of them has
# head in the slow mode and base in the fast one, and another quarter the other way round. All layouts agree on one of
# these by chance with twice this to the power of their number, and no interval over them can know.
MISLEADING_LAYOUTS = 0.25
# Two copies of one build differ by 0.2 to 0.3 % in layouts that match, and by 2 to 3 ns where a run takes 1 µs.
SMALLEST_FLOOR = 0.003
SMALLEST_FLOOR_S = 3e-9
# So many standard deviations of what a build showed against itself: less happens to one in twenty by chance.
SELF_TEST_FACTOR = 2.0
# A visit takes some 25 ms, and this many of six layouts take 25 minutes: longer than anybody waits for one case.
MOST_VISITS = 10_000

Visits = Sequence[Sequence[float]]
"""For each layout the log-ratios of its visits, head against base."""


@dataclasses.dataclass(frozen=True)
class StoppingRule:
    """How often to look, and what to call a change.

    A case that did not change is called changed, and one that changed by `equivalence` or more is called the same, with
    probability of at most `alpha`; the interval of the last look holds with 1 - `alpha`. This is Bonferroni's bound,
    given that layouts are normal or have heavier tails. Looks share their data, so that simulations stay below it: with
    0.05, false alarms in 0.6 to 1.4 % of cases with six layouts, and 3.2 % with three that have modes.
    """

    alpha: float = 0.05
    looks: tuple[int, ...] = (1, 3, 5, 9)
    """Visits of each layout after which one looks."""
    floor: float = SMALLEST_FLOOR
    """A smaller log-ratio is not called a change."""
    equivalence: float = 0.01
    """An interval within plus and minus this is called the same."""

    @property
    def planned(self) -> int:
        """Looks that share alpha: one more is for all layouts together, where more were needed to decide at all."""
        return len(self.looks) + 1

    @property
    def confidence(self) -> float:
        return 1 - self.alpha / self.planned


@dataclasses.dataclass(frozen=True)
class Look:
    """What one look shows. Fewer than two layouts have no interval, and very few decide nothing."""

    verdict: Verdict
    layered: Layered | None = None


def fewest_layouts(error: float) -> int:
    """How many layouts it takes at least for what they have in common to be an accident with at most this probability.

    >>> fewest_layouts(0.05), fewest_layouts(0.01)
    (3, 4)
    """
    return max(2, math.ceil(math.log(error / 2, MISLEADING_LAYOUTS)))


def look(visits: Visits, rule: StoppingRule) -> Look:
    """What may be said now: a change, the same, or nothing yet.

    >>> look([[0.020, 0.021], [0.022, 0.022], [0.021, 0.019]], StoppingRule()).verdict
    <Verdict.SLOWER: 'slower'>
    """
    found = combine_layouts(visits, rule.confidence)
    if found is None or found.layouts < fewest_layouts(rule.alpha):
        return Look(Verdict.UNDECIDED, found)
    return Look(_weigh(found, rule, rule.floor), found)


def confirmation_p(fresh: Visits, log_ratio_sign: float) -> float:
    """How probable it is that layouts other than the first show a change of this sign as clearly, if there is none.

    1 for too few layouts to tell, which takes three.
    """
    found = combine_layouts(fresh, confidence=0.0)
    if found is None or found.layouts < fewest_layouts(CONFIRM_RATE):
        return 1.0
    t = intervals.standardise(math.copysign(1.0, log_ratio_sign) * found.estimate, found.se)
    return intervals.one_sided_p(t, found.layouts - 1)


def settle(first_visits: Visits, fresh_visits: Visits, accepted: bool, rule: StoppingRule) -> Look:
    """What stands of a change that the first layouts showed, after it was looked for in fresh ones.

    It stands if fresh ones alone confirm it, which `accepted` says, as a change above the floor, and all layouts
    together show it too.
    """
    first, fresh = (combine_layouts(visits, rule.confidence) for visits in (first_visits, fresh_visits))
    # The last look, whatever it shows; a change has to pass two tests besides.
    pooled = look([*first_visits, *fresh_visits], dataclasses.replace(rule, looks=()))
    if pooled.layered is None or pooled.verdict in (Verdict.SAME, Verdict.UNDECIDED):
        return pooled
    is_seen = accepted and fresh is not None and abs(fresh.estimate) >= rule.floor
    if is_seen and first is not None and (pooled.verdict is Verdict.SLOWER) is (first.estimate > 0):
        return pooled
    return Look(_weigh(pooled.layered, rule, math.inf), pooled.layered)


def predict_visits(look: Look, rule: StoppingRule) -> int | None:
    """After how many visits of each layout this may be decided, if the estimate stays. None where they cannot do it.

    Visits shrink their own part of the error. What layouts add stays, and may be too much by itself.
    """
    found = look.layered
    if found is None or found.layouts < fewest_layouts(rule.alpha):
        return None
    if look.verdict is not Verdict.UNDECIDED:
        return found.visits
    critical = intervals.quantile((1 + rule.confidence) / 2, found.layouts - 1)
    # Half of the widest interval that decides for a change or for the same, whichever takes less; 0 for never.
    size = abs(found.estimate)
    half_width = max(size if size >= rule.floor else 0.0, rule.equivalence - size, 0.0)
    # Variances of a layout's centre: the largest that decides, and what visits and layouts make of it now.
    enough = found.layouts * (half_width / critical) ** 2
    of_layouts = (found.layout_sd or 0.0) ** 2
    of_visits = found.layouts * found.se**2 - of_layouts
    # One visit's, as seen through the centres: the variance of visits by itself is overrated where tails are heavy.
    needed = MEDIAN_FACTOR * of_visits / variance_of_centre(found.visits)
    if needed >= MOST_VISITS * (enough - of_layouts):
        return None
    return max(found.visits + 1, math.ceil(needed / (enough - of_layouts)))


def floor_for(base_s: float, self_test_sd: float | None) -> float:
    """The smallest log-ratio to call a change where a run takes `base_s`.

    `self_test_sd` is the standard deviation of log-ratios of a build against itself on this machine, if known.

    >>> round(floor_for(1e-7, None), 4)
    0.0296
    """
    return max(SMALLEST_FLOOR, math.log1p(SMALLEST_FLOOR_S / base_s), SELF_TEST_FACTOR * (self_test_sd or 0.0))


def _weigh(found: Layered, rule: StoppingRule, floor: float) -> Verdict:
    return weigh_interval(found.estimate, found.low, found.high, floor=floor, equivalence=rule.equivalence)


CONFIDENCE = 0.95
# Found so often, an effect counts as one that can be seen.
SEEN = 0.8
# The interquartile range of a normal distribution, in standard deviations.
NORMAL_IQR = 1.349


@dataclasses.dataclass(frozen=True)
class Power:
    """How often a slowdown of one size was found."""

    injected_s: float
    trials: int
    found: int
    wrong_way: int
    """How often it was called faster, which is worse than not finding it."""
    low: float
    high: float
    """Where the true share lies."""
    seconds: float
    """Median."""

    @property
    def share(self) -> float:
        return self.found / self.trials


@dataclasses.dataclass(frozen=True)
class Trust:
    """What all trials show."""

    trials: int
    """Of a build against itself."""
    false_alarms: int
    same: int
    most_false: float
    """The true rate of false alarms lies below."""
    sd: float
    """How far log-ratios of a build against itself spread; from quartiles, so that one wild trial does not decide."""
    seconds: float
    powers: tuple[Power, ...]

    @property
    def smallest_seen_s(self) -> float | None:
        """The smallest slowdown from which on every larger one was found often enough; None if there is none."""
        seen = list(itertools.takewhile(lambda power: power.share >= SEEN, reversed(self.powers)))
        return seen[-1].injected_s if seen else None


def summarise_trials(trials: Sequence[Trial]) -> Trust:
    """What trials say; some of them are of a build against itself."""
    nulls = [trial for trial in trials if not trial.injected_s]
    sizes = sorted({trial.injected_s for trial in trials if trial.injected_s})
    false = sum(trial.verdict in (Verdict.SLOWER, Verdict.FASTER) for trial in nulls)
    ratios = sorted(trial.log_ratio for trial in nulls)
    return Trust(
        trials=len(nulls),
        false_alarms=false,
        same=sum(trial.verdict is Verdict.SAME for trial in nulls),
        most_false=binomial_bounds(false, len(nulls), CONFIDENCE)[1],
        sd=(quantile(ratios, 0.75) - quantile(ratios, 0.25)) / NORMAL_IQR if ratios else math.inf,
        seconds=_median([trial.seconds for trial in nulls]),
        powers=tuple(_find_power([trial for trial in trials if trial.injected_s == size]) for size in sizes),
    )


def _find_power(trials: Sequence[Trial]) -> Power:
    found = sum(trial.verdict is Verdict.SLOWER for trial in trials)
    low, high = binomial_bounds(found, len(trials), CONFIDENCE)
    return Power(
        injected_s=trials[0].injected_s,
        trials=len(trials),
        found=found,
        wrong_way=sum(trial.verdict is Verdict.FASTER for trial in trials),
        low=low,
        high=high,
        seconds=_median([trial.seconds for trial in trials]),
    )


def _median(values: Sequence[float]) -> float:
    return quantile(sorted(values), 0.5) if values else 0.0
