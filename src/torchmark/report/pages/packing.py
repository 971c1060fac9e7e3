"""Large data in little room: texts that occur often are kept once, samples as differences of whole numbers."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Sequence

from torchmark.model.case import Case
from torchmark.stats.order import quantile

# As many as can be told apart in a drawing of half a screen.
MOST_SAMPLES = 48
# Steps in which samples are kept, as a share of the median: a tenth of a pixel of a drawing that spans 1 % of it.
FIGURES = 5
# Of 64 bits, none is ever met twice among all cases that people have.
ID_DIGITS = 16


class Texts:
    """Gives every text a number; the same text has the same."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text."""
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def entries(self) -> list[str]:
        """All texts by number, once all have been asked for."""
        return list(self._numbers)


def identify_row(case: Case) -> str:
    """What a link to a case says: the same in every report, whatever else is in it."""
    text = f"{case.suite}\n{case.key}".encode(errors="surrogatepass")
    return hashlib.sha256(text).hexdigest()[:ID_DIGITS]


def pack_samples(samples: Sequence[float]) -> list[float] | None:
    """How many there are, the length of a step in seconds, and in steps the least, and how far each is from the last.

    Many samples are reduced to quantiles. None where there is nothing to draw.

    >>> pack_samples([2e-6, 1e-6, 1.5e-6])
    [3, 1e-10, 10000, 5000, 5000]
    """
    ordered = sorted(t for t in samples if math.isfinite(t) and t >= 0)
    if not ordered or ordered[-1] == 0:
        return None
    step = _choose_step(quantile(ordered, 0.5) or ordered[-1])
    steps = [round(t / step) for t in _thin_out(ordered)]
    return [len(ordered), step, steps[0], *(after - before for before, after in itertools.pairwise(steps))]


def _choose_step(median: float) -> float:
    """A power of ten of which the median has the given number of figures."""
    return float(f"1e{math.floor(math.log10(median)) - FIGURES + 1}")


def _thin_out(ordered: Sequence[float]) -> Iterable[float]:
    if len(ordered) <= MOST_SAMPLES:
        return ordered
    return (quantile(ordered, (i + 0.5) / MOST_SAMPLES) for i in range(MOST_SAMPLES))


def shorten_number(value: float) -> float | int:
    """A number with no more figures than anybody reads, for JSON; whole if it is.

    >>> shorten_number(19739.0), shorten_number(1234.5678), shorten_number(-0.0)
    (19739, 1234.57, 0)
    """
    if not math.isfinite(value):
        return 0
    short = round(value, 2) if abs(value) >= 1 else float(f"{value:.4g}")
    return int(short) if short == int(short) else short
