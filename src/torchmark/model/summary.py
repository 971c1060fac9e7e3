"""What is said of a set of samples; always derived from them, never stored alone. Times are seconds per run."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Interval:
    """A confidence interval; `confidence` is what it really covers, at least what was asked for."""

    low: float
    high: float
    confidence: float


@dataclasses.dataclass(frozen=True)
class Summary:
    """Order statistics, mean and spread of at least one sample."""

    samples: int
    median: float
    mean: float
    p25: float
    p75: float
    minimum: float
    maximum: float
    std: float | None
    """Sample standard deviation; None for a single sample."""
    significant_figures: int
    """Decimal places that the scatter of the middle half justifies, 1 to 4."""

    @property
    def iqr(self) -> float:
        """Distance between the quartiles."""
        return self.p75 - self.p25

    @property
    def iqr_share(self) -> float:
        """The interquartile range as a share of the median; 0 for a median of 0."""
        return self.iqr / self.median if self.median else 0.0
