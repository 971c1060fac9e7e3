"""The few conditions that, taken together, explain most of how effects differ: a beam search.

What is explained is a share of the sum of squares: how much closer effects lie to the mean of their own side, inside or
outside, than to the mean of all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from torchmark.analysis.candidates import Column, Floats, Mask, Pool, make_pool, order_to_read
from torchmark.model.rule import Condition

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


def find_conjunction(columns: Sequence[Column], effects: Floats) -> tuple[Condition, ...]:
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
        """The inputs for which all of these hold."""
        return np.asarray(self.pool.holds[list(chosen)].all(axis=0), dtype=bool)

    def extend(self, beam: Sequence[tuple[int, ...]]) -> Floats:
        """What each of these explains together with each condition (conjunctions × conditions)."""
        inside = np.array([self.inside(chosen) for chosen in beam], dtype=float)
        counts, sums = self.pool.add_up(inside), self.pool.add_up(inside * self.effects)
        # A condition that only leaves out an input or two is made for them, not found. Those without a value do not
        # count: else "k2 is not 7" would stand for "dim is 3".
        leaves_out = np.einsum("bi,fi->bf", inside, self.pool.present)[:, self.pool.positions] - counts
        return self._explain(counts, sums, leaves_out)

    def _explain(self, counts: Floats, sums: Floats, leaves_out: Floats) -> Floats:
        others = len(self.effects) - counts
        enough = (counts >= self.least) & (others >= self.least) & (leaves_out >= self.least)
        # Effects add up to zero, so the sum of those outside is that of those inside, negated.
        explained = sums * sums / np.where(enough, counts * others, 1.0)
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
                position, relation, _ = self.pool.candidates[chosen[place]].stretch
                alike = np.array([c.stretch[:2] == (position, relation) for c in self.pool.candidates])
                explained = np.where(alike[None, :], self.extend([others]), -np.inf)
                if np.isfinite(explained).any():
                    new = self.pick([others], explained)[-1]
                    chosen = (*chosen[:place], new, *chosen[place + 1 :])
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
        bests = [start + explained[:, start:end].argmax(axis=1) for start, end in self.pool.stretches]
        found = np.array(bests)
        values = explained[np.arange(len(beam))[None, :], found]
        kept: dict[tuple[int, ...], None] = {}
        for flat in np.argsort(-values, axis=None, kind="stable"):
            stretch, row = divmod(int(flat), len(beam))
            if len(kept) == BEAM or not np.isfinite(values[stretch, row]):
                break
            kept[tuple(sorted((*beam[row], int(found[stretch, row]))))] = None
        return list(kept)
