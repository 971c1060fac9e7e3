"""Conditions on inputs that may explain an effect: thresholds, single conditions, and the best conjunctions.

Apart from `rules.py`: this searches, in arrays; that decides what is stated.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array  # type: ignore[import-untyped]

from torchmark.model.inputs import Condition, Feature, Relation, Value

# Digits that tell any two floats apart.
MOST_DIGITS = 17
# The least power of ten that floats have with all their digits.
LEAST_POWER = -307


def choose_threshold(lo: float, hi: float) -> float:
    """The roundest number t with lo <= t < hi: "above t" holds for `hi` and not for `lo`.

    Zero if it lies there. Else a power of two from 1 up, for that is where kernels change their ways. Else the number
    with the fewest significant digits. Of several, the one nearest to the geometric middle. Between integers it is one.

    >>> choose_threshold(900, 1100), choose_threshold(1100, 1300), choose_threshold(0.043, 0.071)
    (1024, 1200, 0.06)
    """
    assert lo < hi
    if lo <= 0 < hi:
        return 0
    sign = -1 if lo < 0 else 1
    middle = math.sqrt(abs(lo)) * math.sqrt(abs(hi))
    for candidates in _rounder_first(middle, lo, hi):
        there = [sign * candidate for candidate in candidates if lo <= sign * candidate < hi]
        if there:
            best = min(there, key=lambda t: abs(math.log(abs(t) / middle)))
            return int(best) if isinstance(lo, int) and isinstance(hi, int) else best
    return lo


def _rounder_first(middle: float, lo: float, hi: float) -> Iterator[tuple[float, ...]]:
    """Numbers next to the middle on both sides: powers of two, then numbers of one digit, of two, and so on."""
    if middle > 0:
        exponent = math.floor(math.log2(middle))
        # One more on each side: logarithms are rounded.
        yield tuple(2**e for e in range(exponent - 1, exponent + 3) if e >= 0)
        leading = math.floor(math.log10(middle))
        lowest = 0 if isinstance(lo, int) and isinstance(hi, int) else LEAST_POWER
        least = max(lowest, leading - MOST_DIGITS + 1)
        for power in range(leading, least - 1, -1):
            below = math.floor(middle / 10.0**power)
            # From text, because 6 * 0.01 is not the float that is written 0.06.
            yield tuple(float(f"{n}e{power}") for n in (below - 1, below, below + 1, below + 2) if n > 0)


def count_digits(value: float) -> int:
    """How many significant digits a number needs; none for zero and powers of two, which come first.

    >>> count_digits(1024), count_digits(1200), count_digits(0.06), count_digits(1023)
    (0, 2, 1, 4)
    """
    if value == 0 or (abs(value) >= 1 and math.frexp(abs(value))[0] == 0.5):
        return 0
    # repr has the fewest digits that tell a float apart.
    mantissa = repr(float(abs(value))).split("e")[0]
    return len(mantissa.replace(".", "").strip("0"))


Mask = NDArray[np.bool_]
Floats = NDArray[np.floating[Any]]

# Up to so many different numbers, each is worth a condition of its own, such as "dim is 2".
FEW_VALUES = 6
# A search keeps the best condition of each stretch of a feature's thresholds: neighbours are nearly the same condition.
STRETCHES = 4

_COMPARE = {
    Relation.IS: operator.eq,
    Relation.IS_NOT: operator.ne,
    # Only numbers are compared with a threshold.
    Relation.ABOVE: operator.gt,
    Relation.AT_MOST: operator.le,
}
_READABLE = {Relation.IS: 0, Relation.ABOVE: 1, Relation.AT_MOST: 1, Relation.IS_NOT: 2}


@dataclasses.dataclass(frozen=True)
class FeatureColumn:
    """A feature as an array: strings as they are, other values as floats, and nan where there is none."""

    name: str
    values: NDArray[np.object_] | NDArray[np.float64]
    present: Mask
    is_text: bool
    is_truth: bool
    is_whole: bool

    def meets(self, condition: Condition) -> Mask:
        return np.asarray(_COMPARE[condition.relation](self.values, condition.value), dtype=bool) & self.present

    def distinct(self, among: Mask) -> list[Value]:
        """The different values of some inputs in ascending order, of the type that they came in."""
        values = sorted(set(self.values[among & self.present].tolist()))
        if self.is_text:
            return values
        finite = [value for value in values if np.isfinite(value)]
        if self.is_truth:
            return [bool(value) for value in finite]
        return [int(value) for value in finite] if self.is_whole else finite

    def take(self, inputs: NDArray[np.intp]) -> FeatureColumn:
        return dataclasses.replace(self, values=self.values[inputs], present=self.present[inputs])


def make_column(feature: Feature) -> FeatureColumn:
    known = [value for value in feature.values if value is not None]
    is_text = any(isinstance(value, str) for value in known)
    present = np.array([value is not None for value in feature.values], dtype=bool)
    if is_text:
        values: NDArray[np.object_] | NDArray[np.float64] = np.array(
            [None if value is None else str(value) for value in feature.values], dtype=object
        )
    else:
        values = np.array([np.nan if value is None else float(value) for value in feature.values], dtype=float)
    is_truth = all(isinstance(value, bool) for value in known)
    is_whole = all(isinstance(value, int) for value in known)
    return FeatureColumn(
        name=feature.name, values=values, present=present, is_text=is_text, is_truth=is_truth, is_whole=is_whole
    )


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A condition, and what decides which of two equally good ones is stated."""

    condition: Condition
    position: int
    """That of its feature in the list."""
    is_number: bool
    effort: int
    """To read it: digits of a threshold, and how it compares."""
    stretch: tuple[int, str, int]
    """Conditions that are much alike share one."""


@dataclasses.dataclass(frozen=True)
class Pool:
    """Conditions, those that share a stretch side by side, and the inputs they hold for (conditions × inputs)."""

    candidates: tuple[Candidate, ...]
    holds: Mask
    present: Mask
    """Which inputs have a value (features × inputs)."""

    @functools.cached_property
    def positions(self) -> list[int]:
        """The feature that each condition is on."""
        return [candidate.position for candidate in self.candidates]

    @functools.cached_property
    def _changes(self) -> Any:
        # Neighbours in a feature's thresholds differ in an input or two, so nearly all of this is zero.
        return csr_array(np.diff(self.holds.astype(np.int8), axis=0, prepend=np.int8(0)).astype(float))

    def add_up(self, weights: Floats) -> Floats:
        """For each row of weights, one an input, their sums over the inputs that each condition holds for.

        A product of matrices would do the same in more time, and in threads that wait for each other on a busy machine.
        """
        sums: Floats = np.cumsum(self._changes @ weights.T, axis=0).T
        return sums

    @functools.cached_property
    def stretches(self) -> list[tuple[int, int]]:
        names = [candidate.stretch for candidate in self.candidates]
        starts = [i for i, name in enumerate(names) if i == 0 or name != names[i - 1]]
        return list(zip(starts, [*starts[1:], len(names)], strict=True))


def make_pool(columns: Sequence[FeatureColumn]) -> Pool:
    """All conditions that hold for some of the inputs and not for others; of those that hold for the same, one."""
    seen: dict[bytes, tuple[Candidate, Mask]] = {}
    everything = [pair for position, column in enumerate(columns) for pair in _candidates(column, position)]
    for candidate, mask in sorted(everything, key=lambda pair: order_to_read(pair[0])):
        if mask.any() and not mask.all():
            seen.setdefault(mask.tobytes(), (candidate, mask))
    kept = sorted(seen.values(), key=lambda pair: (*pair[0].stretch, pair[0].condition.value))
    inputs = len(columns[0].values) if columns else 0
    holds = np.array([mask for _, mask in kept], dtype=bool).reshape(len(kept), inputs)
    present = np.array([column.present for column in columns], dtype=bool).reshape(len(columns), inputs)
    return Pool(tuple(candidate for candidate, _ in kept), holds, present)


def order_to_read(candidate: Candidate) -> tuple[bool, int, int]:
    """What sorts candidates: those that read best first."""
    return candidate.is_number, candidate.position, candidate.effort


def _candidates(column: FeatureColumn, position: int) -> Iterator[tuple[Candidate, Mask]]:
    for relation, value, stretch in _comparisons(column):
        condition = Condition(column.name, relation, value)
        effort = _READABLE[relation]
        if relation in (Relation.ABOVE, Relation.AT_MOST) and not isinstance(value, str):
            effort += count_digits(value)
        candidate = Candidate(
            condition=condition,
            position=position,
            is_number=not (column.is_text or column.is_truth),
            effort=effort,
            stretch=(position, relation.value, stretch),
        )
        yield candidate, column.meets(condition)


def _comparisons(column: FeatureColumn) -> Iterator[tuple[Relation, Value, int]]:
    values = column.distinct(column.present)
    if column.is_text or column.is_truth or len(values) <= FEW_VALUES:
        for index, value in enumerate(values):
            yield Relation.IS, value, index
            if not column.is_truth:
                yield Relation.IS_NOT, value, index
    if not (column.is_text or column.is_truth):
        gaps = list(itertools.pairwise(values))
        for index, (lo, hi) in enumerate(gaps):
            assert not isinstance(lo, str)
            assert not isinstance(hi, str)
            threshold = choose_threshold(lo, hi)
            yield Relation.ABOVE, threshold, index * STRETCHES // len(gaps)
            yield Relation.AT_MOST, threshold, index * STRETCHES // len(gaps)


# More than three conditions are no explanation.
MOST_CONDITIONS = 3
# Conjunctions of one length that are extended.
BEAM = 200
# A side of a rule has at least so many of the inputs that are searched. With fewer, outliers (one input in fifty or so)
# become rules; with more, rules that cover one input in twenty are blurred to reach that number.
LEAST_INPUTS = 4
LEAST_SHARE = 0.03
# What a condition has to add. As a share of all, less is not worth its words.
LEAST_GAIN = 0.05
# And as a share of what was unexplained without it: from 0.9 to 0.95 is a lot, from 0.1 to 0.15 is not.
LEAST_CUT = 0.2
# And in likelihood (inputs times the logarithm of what remains). On simulated noise of 60 to 200 inputs, the best
# single condition gains 6 in the median, 16 in one study of twenty, and more than 20 in one or two of a hundred.
LEAST_EVIDENCE = 20.0
# Conjunctions are equally good if they are as near in likelihood (the same scale) as the ends of a 95 % interval.
EQUAL = 4.0
# As a share of all, what is unexplained counts as at least this: sums are rounded.
ROUNDING = 1e-6
# Of equally good ones, so many are compared by how they read.
MOST_EQUAL = 1000


def find_conjunction(columns: Sequence[FeatureColumn], effects: Floats) -> tuple[Condition, ...]:
    """The simplest conjunction that explains effects well, or no condition if nothing explains them.

    A longer one is taken only if it explains enough more. Of equally good ones, that which reads best.
    """
    search = _Search(make_pool(columns), effects)
    if not search.pool.candidates or search.total <= 0:
        return ()
    chosen: tuple[int, ...] = ()
    beam: list[tuple[int, ...]] = [()]
    for _ in range(MOST_CONDITIONS):
        explained = search.extend(beam)
        if not np.isfinite(explained).any():
            break
        best = search.settle(search.pick(beam, explained))
        if search.pays(best, chosen):
            chosen = best
        beam = search.keep(beam, explained)
    return tuple(c.condition for c in sorted((search.pool.candidates[i] for i in chosen), key=order_to_read))


class _Search:
    """Conditions of a pool are known by their indexes here."""

    def __init__(self, pool: Pool, effects: Floats) -> None:
        self.pool = pool
        self.effects = effects - effects.mean()
        self.total = float(self.effects @ self.effects)
        self.least = max(LEAST_INPUTS, math.ceil(LEAST_SHARE * len(effects)))

    def inside(self, chosen: Sequence[int]) -> Mask:
        return np.asarray(self.pool.holds[list(chosen)].all(axis=0), dtype=bool)

    def extend(self, beam: Sequence[tuple[int, ...]]) -> Floats:
        """What each of these explains together with each condition (conjunctions × conditions)."""
        inside = np.array([self.inside(chosen) for chosen in beam], dtype=float)
        counts, sums = self.pool.add_up(inside), self.pool.add_up(inside * self.effects)
        # A condition that only leaves out an input or two is made for them, not found. Those without a value do not
        # count: else "k2 is not 7" would stand for "dim is 3".
        leaves_out = np.einsum("bi,fi->bf", inside, self.pool.present)[:, self.pool.positions] - counts
        others = len(self.effects) - counts
        enough = (counts >= self.least) & (others >= self.least) & (leaves_out >= self.least)
        # Effects add up to zero, so the sum of those outside is that of those inside, negated.
        explained: Floats = sums * sums / np.where(enough, counts * others, 1.0)
        explained *= len(self.effects)
        explained[~enough] = -np.inf
        return explained

    def explained(self, chosen: Sequence[int]) -> float:
        """What these explain, of `total`."""
        inside = self.inside(chosen)
        counts = int(inside.sum()), int((~inside).sum())
        return float(self.effects[inside].sum() ** 2) * sum(counts) / math.prod(counts) if all(counts) else 0.0

    def equal_to(self, best: float) -> float:
        """What explains at least this is as good as what explains `best`."""
        unexplained = max(self.total - best, ROUNDING * self.total)
        return self.total - unexplained * math.exp(EQUAL / len(self.effects))

    def pick(self, beam: Sequence[tuple[int, ...]], explained: Floats) -> tuple[int, ...]:
        """Of the best, the one that reads best."""
        flat = explained.ravel()
        good = np.flatnonzero(flat >= self.equal_to(float(flat.max())))
        good = good[np.argsort(-flat[good], kind="stable")[:MOST_EQUAL]]
        width = explained.shape[1]
        pairs = [((*beam[i // width], int(i % width)), float(flat[i])) for i in good]
        return min(pairs, key=lambda pair: (*self._reading(pair[0]), -pair[1]))[0]

    def _reading(self, chosen: Sequence[int]) -> tuple[int, list[int], int]:
        candidates = [self.pool.candidates[i] for i in chosen]
        numbers = sum(candidate.is_number for candidate in candidates)
        return numbers, sorted(c.position for c in candidates), sum(c.effort for c in candidates)

    def settle(self, chosen: tuple[int, ...]) -> tuple[int, ...]:
        """Each condition's threshold chosen anew with the others given, until that changes nothing."""
        for _ in range(MOST_CONDITIONS):
            before = chosen
            for place in range(len(chosen)):
                others = chosen[:place] + chosen[place + 1 :]
                kind = self.pool.candidates[chosen[place]].stretch[:2]
                alike = np.array([candidate.stretch[:2] == kind for candidate in self.pool.candidates])
                explained = np.where(alike[None, :], self.extend([others]), -np.inf)
                if np.isfinite(explained).any():
                    chosen = (*chosen[:place], self.pick([others], explained)[-1], *chosen[place + 1 :])
            if sorted(chosen) == sorted(before):
                break
        return chosen

    def pays(self, longer: tuple[int, ...], shorter: tuple[int, ...]) -> bool:
        """Whether what the longer one explains beyond the shorter is worth its further conditions."""
        if any(self._leaves_out(index, longer) < self.least for index in longer):
            return False
        further = len(longer) - len(shorter)
        before, after = (self.total - self.explained(chosen) for chosen in (shorter, longer))
        share = max(LEAST_CUT, 1 - math.exp(-LEAST_EVIDENCE / len(self.effects)))
        return before - after >= further * LEAST_GAIN * self.total and after <= before * (1 - share) ** further

    def _leaves_out(self, index: int, chosen: tuple[int, ...]) -> int:
        """How many inputs have a value and meet all other conditions, but not this one."""
        others = self.inside([i for i in chosen if i != index])
        return int((others & self.pool.present[self.pool.positions[index]] & ~self.pool.holds[index]).sum())

    def keep(self, beam: Sequence[tuple[int, ...]], explained: Floats) -> list[tuple[int, ...]]:
        """What to extend next: the best, and only one of those that are much alike."""
        found = np.array([start + explained[:, start:end].argmax(axis=1) for start, end in self.pool.stretches])
        values = explained[np.arange(len(beam))[None, :], found]
        kept: dict[tuple[int, ...], None] = {}
        for flat in np.argsort(-values, axis=None, kind="stable"):
            stretch, row = divmod(int(flat), len(beam))
            if len(kept) == BEAM or not np.isfinite(values[stretch, row]):
                break
            kept[tuple(sorted((*beam[row], int(found[stretch, row]))))] = None
        return list(kept)


def find_inside(conditions: Sequence[Condition], columns: Sequence[FeatureColumn]) -> Mask:
    """The inputs for which all conditions hold."""
    by_name = {column.name: column for column in columns}
    inside = np.ones(len(columns[0].values) if columns else 0, dtype=bool)
    for condition in conditions:
        inside &= by_name[condition.feature].meets(condition)
    return inside


def widen_gaps(conditions: tuple[Condition, ...], columns: Sequence[FeatureColumn]) -> tuple[Condition, ...]:
    """The same with each threshold chosen from all that make no difference, given the other conditions.

    Of inputs that are not contiguous, there may be none between k0 = 900 and 1300, though there are others.
    """
    for condition in conditions:
        gap = _find_gap(condition, conditions, columns)
        if gap is not None:
            conditions = _replace(conditions, condition, choose_threshold(*gap))
    return conditions


def sharpen(
    conditions: tuple[Condition, ...], columns: Sequence[FeatureColumn], more: Sequence[FeatureColumn], effects: Floats
) -> tuple[Condition, ...]:
    """The same with thresholds put where `more` inputs, with these effects, split best: within the gaps of the first.

    What holds for the inputs that conditions were made from does not change. A threshold stays as round as it is: where
    it is a power of two, an input that speaks for an odd number is an outlier more often than not.
    """
    for condition in conditions:
        gap = _find_gap(condition, conditions, columns)
        if gap is None:
            continue
        others = find_inside([c for c in conditions if c != condition], more)
        column = next(column for column in more if column.name == condition.feature)
        between = [v for v in column.distinct(others) if not isinstance(v, str) and gap[0] < v < gap[1]]
        thresholds = [choose_threshold(*pair) for pair in itertools.pairwise([gap[0], *between, gap[1]])]
        roundest = min(count_digits(threshold) for threshold in thresholds)
        thresholds = [threshold for threshold in thresholds if count_digits(threshold) == roundest]
        options = [_replace(conditions, condition, threshold) for threshold in thresholds]
        errors = [_error(effects, find_inside(option, more)) for option in options]
        conditions = options[int(np.argmin(errors))]
    return conditions


def _error(effects: Floats, inside: Mask) -> float:
    """How far effects lie from the mean of their side, by their squares."""
    return sum(float(((side - side.mean()) ** 2).sum()) for side in (effects[inside], effects[~inside]) if len(side))


def _find_gap(
    condition: Condition, conditions: Sequence[Condition], columns: Sequence[FeatureColumn]
) -> tuple[float, float] | None:
    """The values next to a threshold, of inputs that meet the other conditions."""
    if condition.relation not in (Relation.ABOVE, Relation.AT_MOST):
        return None
    others = find_inside([c for c in conditions if c != condition], columns)
    column = next(column for column in columns if column.name == condition.feature)
    meets = column.meets(condition)
    sides = column.distinct(others & meets), column.distinct(others & ~meets)
    below, above = sides if condition.relation is Relation.AT_MOST else sides[::-1]
    if not below or not above:
        return None
    lo, hi = below[-1], above[0]
    assert not isinstance(lo, str)
    assert not isinstance(hi, str)
    return lo, hi


def _replace(conditions: tuple[Condition, ...], old: Condition, threshold: float) -> tuple[Condition, ...]:
    return tuple(dataclasses.replace(old, value=threshold) if one == old else one for one in conditions)
