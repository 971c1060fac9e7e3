"""Places where nothing runs: what a visit shows is a function."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from torchmark.compare.experiment import Timing
from torchmark.errors import PlaceLost
from torchmark.model.job import BlockPlan, PairedCase, PairedSide, Place, RunTime, SideBlocks, Visit
from torchmark.model.judgement import Side, SideFailure, Verdict
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.plan import Case
from torchmark.runner.paired_workers import Failures
from torchmark.runner.spec import Match
from torchmark.stats import intervals

RAISED = (SideFailure(Side.BASE, Failure(FailureKind.RAISED, "no such operator")),)
RUN_S = 1e-6

Effect = Callable[[int, int], float]
"""From the number of a layout and that of the visit there to the log-ratio."""


def part(name: str) -> PairedSide:
    return PairedSide(name, "pass", Place("/"))


def paired_case(name: str) -> PairedCase:
    return PairedCase(part(name), part(name))


class FakePlace:
    """Where nothing runs: what a visit shows is a function, and time passes by the visit."""

    def __init__(self, effects: Mapping[str, Effect | Failures], match: Match = Match(alike=True)) -> None:  # noqa: B008
        self.effects = effects
        self.visits: Counter[tuple[str, int]] = Counter()
        self.log: list[str] = []
        self.now = 0.0
        self.is_closed = False
        self._layouts: list[int] = []
        self._match = match

    @property
    def layouts(self) -> tuple[int, ...]:
        return tuple(self._layouts)

    @property
    def match(self) -> Match:
        return self._match

    def prepare(self, pairs: Sequence[tuple[Case, Case]]) -> Sequence[PairedCase | Failures]:
        return [paired_case(head.args.stmt) for _, head in pairs]

    def close(self) -> None:
        self.is_closed = True

    def start(self, layouts: Iterable[int], note: Callable[[int], None] = lambda _: None) -> None:
        self._layouts += layouts
        self.now += 10

    def gauge(self, one: PairedCase) -> RunTime | Failures:
        effect = self.effects[one.base.stmt]
        return effect if isinstance(effect, tuple) else RunTime(RUN_S, RUN_S)

    def visit(self, layout: int, one: PairedCase, pace: BlockPlan) -> Visit | Failures:
        name = one.base.stmt
        effect = self.effects[name]
        assert not isinstance(effect, tuple)
        self.log.append(name)
        number = self.visits[name, layout]
        self.visits[name, layout] += 1
        self.now += 0.03
        ratio = effect(layout, number)
        nothing = (0,) * pace.pairs
        block_s = pace.number * RUN_S
        base = SideBlocks((block_s,) * pace.pairs, nothing, nothing)
        return Visit(pace.number, base, SideBlocks((block_s * (1 + ratio),) * pace.pairs, nothing, nothing))


def noise(seed: int, sd: float = 0.002) -> Effect:
    chance = random.Random(seed)
    return lambda layout, number: chance.gauss(0, sd)


def shifted(by: float, seed: int = 1) -> Effect:
    plain = noise(seed)
    return lambda layout, number: by + plain(layout, number)


def verdict(timing: Timing) -> Verdict:
    assert timing.evidence is not None
    return timing.evidence.verdict


class MortalPlace(FakePlace):
    """A place that is lost as soon as a visit of this kind is asked for."""

    def __init__(self, effects: Mapping[str, Effect | Failures], dies: Callable[[str, int], bool]) -> None:
        super().__init__(effects)
        self._dies = dies
        self.is_gone = False

    def start(self, layouts: Iterable[int], note: Callable[[int], None] = lambda _: None) -> None:
        self._check()
        super().start(layouts, note)

    def gauge(self, one: PairedCase) -> RunTime | Failures:
        self._check()
        return super().gauge(one)

    def visit(self, layout: int, one: PairedCase, pace: BlockPlan) -> Visit | Failures:
        self.is_gone = self.is_gone or self._dies(one.base.stmt, layout)
        self._check()
        return super().visit(layout, one, pace)

    def _check(self) -> None:
        if self.is_gone:
            raise PlaceLost("Node 7 does not answer.")


def steady(name: str, by: float = 0.0, sd: float = 0.002) -> Effect:
    """The same for the same visit, wherever it takes place."""
    return lambda layout, number: by + random.Random(f"{name} {layout} {number}").gauss(0, sd)


def showing(p: float, layouts: int = 6) -> Effect:
    """A change that the first layouts show, and fresh ones with exactly this p value."""
    t = intervals.quantile(1 - p, layouts - 1)
    mean = math.copysign(0.03, t)
    # Half of the layouts so far above the mean, half so far below: the standard error is then mean / t.
    apart = mean / t * math.sqrt(layouts - 1)

    def effect(layout: int, number: int) -> float:
        side = (-1) ** layout
        return math.expm1(0.03 + 0.0001 * side if layout < layouts else mean + apart * side)

    return effect
