"""Numbers as a reader finds them in texts, and those that stored results allow there, computed anew from raw values.

Nothing here uses the code that summarises, compares or formats, so that a wrong number cannot be right on both sides.
"""

from __future__ import annotations

import dataclasses
import math
import re
import statistics
from collections.abc import Iterable, Sequence

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_NUMBER = re.compile(r"(?<![\w.,])([+\-−±]?)(\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)(?:[ \xa0]?(%|ns\b|us\b|ms\b|s\b))?")
# A range has its unit behind the second number.
_RANGE = re.compile(r"(\d[\d,]*(?:\.\d+)?)( to | ± )(\d[\d,]*(?:\.\d+)? (ns|us|ms|s)\b)")


@dataclasses.dataclass(frozen=True)
class Shown:
    """A number in a text: its value in seconds, as a share or plain, and half of its last digit."""

    kind: str
    value: float
    half: float
    text: str
    signed: bool

    def is_one_of(self, allowed: Iterable[float], rough: Iterable[float] = ()) -> bool:
        """Whether it is one of these as far as its digits go; of rough ones, two figures are shown."""
        slack = self.half * (1 + 1e-6) + 1e-15
        return any(self._differs(one) <= slack for one in allowed) or any(
            self._differs(one) <= slack + 0.051 * abs(one) for one in rough
        )

    def _differs(self, value: float) -> float:
        return abs(self.value - value) if self.signed else abs(abs(self.value) - abs(value))


def find_numbers(text: str) -> list[Shown]:
    """All numbers of a text."""
    text = _RANGE.sub(r"\1 \4\2\3", text.replace("<.01%", "0.00%"))
    return [_read(*match.groups()) for match in _NUMBER.finditer(text)]


def _read(sign: str, digits: str, unit: str | None) -> Shown:
    number = digits.replace(",", "")
    mantissa, _, power = number.partition("e")
    decimals = len(mantissa.partition(".")[2]) - int(power or 0)
    scale, kind = (0.01, "share") if unit == "%" else (UNITS[unit], "time") if unit else (1.0, "plain")
    value = float(number) * scale * (-1 if sign in ("-", "−") and sign else 1)
    return Shown(kind, value, 0.5 * 10.0**-decimals * scale, f"{sign}{digits}{unit or ''}", sign in ("+", "-", "−"))


@dataclasses.dataclass(frozen=True)
class RawTimes:
    """What follows from the seconds of each run."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    def quantile(self, share: float) -> float:
        ordered = sorted(self.samples)
        place = share * (len(ordered) - 1)
        low = math.floor(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)

    def enclose(self) -> tuple[float, float, float] | None:
        """The narrowest pair of samples, from both ends alike, that encloses the median in 95 % of all cases."""
        n, found = len(self.samples), None
        for rank in range((n + 1) // 2):
            sure = 1 - 2 * sum(math.comb(n, i) for i in range(rank + 1)) / 2**n
            if sure >= 0.95:
                ordered = sorted(self.samples)
                found = ordered[rank], ordered[n - 1 - rank], sure
        return found

    def enclose_somehow(self) -> tuple[float, float, float]:
        """The same, or all samples with what that gives."""
        ends = min(self.samples), max(self.samples)
        return self.enclose() or (*ends, 1 - 2.0 ** (1 - len(self.samples)))

    @property
    def facts(self) -> dict[str, tuple[float, ...]]:
        """What a table of one case has, by the names of its rows."""
        found = self.enclose()
        many = len(self.samples) > 1
        return {
            "Median": (self.median,),
            "95 % interval": found[:2] if found else (),
            "Middle half": (self.quantile(0.25), self.quantile(0.75)),
            "Range": (min(self.samples), max(self.samples)),
            "Mean ± std": (statistics.fmean(self.samples), statistics.stdev(self.samples)) if many else (),
            "Samples": (len(self.samples),),
        }

    @property
    def margin(self) -> float | None:
        found = self.enclose()
        return None if found is None else max(found[1] - self.median, self.median - found[0]) / self.median

    @property
    def iqr_share(self) -> float:
        return (self.quantile(0.75) - self.quantile(0.25)) / self.median


@dataclasses.dataclass(frozen=True)
class RawCounts:
    """What follows from the instructions of each layout, and of each function."""

    number: int
    totals: tuple[int, ...]
    functions: tuple[tuple[str, int], ...]
    allocations: int
    tensors: int

    @property
    def instructions(self) -> float:
        return sorted(self.totals)[(len(self.totals) - 1) // 2] / self.number

    @property
    def spread(self) -> float:
        return (max(self.totals) - min(self.totals)) / self.number / self.instructions

    @property
    def costs(self) -> dict[str, float]:
        return {name: cost / self.number for name, cost in self.functions}

    @property
    def facts(self) -> dict[str, tuple[float, ...]]:
        return {
            "Instructions": (self.instructions,),
            "Spread": (self.spread,),
            "Counted in": (len(self.totals), self.number),
            "Allocations": (self.allocations / self.number,),
            "Tensors allocated": (self.tensors / self.number,),
        }


@dataclasses.dataclass(frozen=True)
class RawSide:
    """What was stored of a case on one side."""

    times: RawTimes | None = None
    counts: RawCounts | None = None

    @property
    def facts(self) -> dict[str, tuple[float, ...]]:
        """By the names of rows; what was not measured has none."""
        parts = [part.facts for part in (self.times, self.counts) if part is not None]
        return {name: values for part in parts for name, values in part.items() if values}


@dataclasses.dataclass(frozen=True)
class RawChange:
    """What follows from two sides that were timed one after the other, a round each."""

    base: RawTimes
    head: RawTimes

    @property
    def share(self) -> float:
        return self.head.median / self.base.median - 1

    @property
    def confidence(self) -> float:
        return max(0.0, self.base.enclose_somehow()[2] + self.head.enclose_somehow()[2] - 1)

    @property
    def ends(self) -> tuple[float, float] | None:
        """None where so few samples exclude nothing."""
        (base_low, base_high, _), (head_low, head_high, _) = self.base.enclose_somehow(), self.head.enclose_somehow()
        return (head_low / base_high - 1, head_high / base_low - 1) if self.confidence > 0 else None


class Allowed:
    """The numbers that may stand in a text, by their kind."""

    def __init__(self, *sides: RawSide) -> None:
        self.exact: dict[str, list[float]] = {"time": [], "share": [0.95], "plain": [0, 1]}
        self.rough: dict[str, list[float]] = {"time": [], "share": [], "plain": []}
        for side in sides:
            self._add_side(side)

    def _add_side(self, side: RawSide) -> None:
        if side.times is not None:
            facts = side.times.facts
            self.exact["time"] += [value for name, values in facts.items() if name != "Samples" for value in values]
            # Six samples are what an interval takes; a block has a thousand runs.
            self.exact["plain"] += [len(side.times.samples), 6, 1000]
            self.exact["share"] += [side.times.iqr_share, *filter(None, [side.times.margin])]
        if side.counts is not None:
            self.exact["plain"] += [value for values in side.counts.facts.values() for value in values]
            self.exact["share"] += [side.counts.spread]

    def compare(self, base: RawSide, head: RawSide, seconds_an_instruction: float) -> Allowed:
        """The same with what both sides give together."""
        if base.times is not None and head.times is not None:
            self._add_change(RawChange(base.times, head.times))
        if base.counts is not None and head.counts is not None:
            self._add_counts(base.counts, head.counts, seconds_an_instruction)
        return self

    def _add_change(self, change: RawChange) -> None:
        self.exact["share"] += [change.share, change.confidence, 0.05]
        self.exact["time"] += [change.base.median]
        self.rough["time"] += [change.share * change.base.median]
        # So many rounds tell how far processes are apart.
        self.exact["plain"] += [3]
        if change.ends is not None:
            bound = max(map(abs, change.ends))
            self.exact["share"] += change.ends
            self.exact["share"] += [change.ends[1] - change.share, change.share - change.ends[0]]
            self.rough["time"] += [bound * change.base.median]

    def _add_counts(self, base: RawCounts, head: RawCounts, seconds_an_instruction: float) -> None:
        delta = head.instructions - base.instructions
        self.exact["plain"] += [delta, *(total / one.number for one in (base, head) for total in one.totals)]
        self.exact["plain"] += [(head.allocations - base.allocations) / base.number]
        self.exact["plain"] += [(head.tensors - base.tensors) / base.number]
        self.exact["share"] += [delta / base.instructions]
        self.rough["time"] += [delta * seconds_an_instruction]
        deltas = [head.costs[name] - base.costs[name] for name in base.costs]
        self.exact["plain"] += deltas
        self.exact["share"] += [one / sum(deltas) for one in deltas]

    def check(self, text: str, where: str) -> int:
        """How many numbers a text has, all of which are allowed."""
        found = find_numbers(text)
        for one in found:
            assert one.is_one_of(self.exact[one.kind], self.rough[one.kind]), f"{where}: {one.text} in {text!r}"
        return len(found)


def expect(text: str, values: Sequence[float], where: str) -> int:
    """A text has exactly these numbers, in this order."""
    found = find_numbers(text)
    assert len(found) == len(values), f"{where}: {text!r} instead of {values}"
    for one, value in zip(found, values, strict=True):
        assert one.is_one_of([value]), f"{where}: {one.text} instead of {value}"
    return len(found)
