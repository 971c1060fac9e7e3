"""What is said of a set of samples; always derived from them, never stored alone. Times are seconds per run."""

from __future__ import annotations

import dataclasses

from torchmark.model.case import Case
from torchmark.model.caveat import Caveat
from torchmark.model.compiling import CompileCosts
from torchmark.model.node import Node
from torchmark.model.outcome import Failure
from torchmark.model.plan import Metric, Target


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


@dataclasses.dataclass(frozen=True)
class WallSummary:
    """What the clock says of a case: all rounds together."""

    times: Summary
    interval: Interval | None
    """95 % interval of the median; None where there are too few samples. Reaches to the medians of several rounds."""
    samples_s: tuple[float, ...]
    """Seconds per run, one value a block, round after round."""
    compiling: CompileCosts | None = None
    """For `torch.compile`: of the first round."""


@dataclasses.dataclass(frozen=True)
class CountSummary:
    """What counting says of a case, per run; the median of all rounds."""

    instructions: float
    spread: float | None
    """How far the layouts of all rounds are apart, as a share of the median; None where there is only one."""
    allocations: float
    tensor_allocations: float
    baseline: float | None
    """What the empty loop costs of it."""
    number: int
    """How many runs were counted in each layout."""
    totals: tuple[int, ...]
    """Instructions of so many runs, in each layout of each round."""


@dataclasses.dataclass(frozen=True)
class CaseSummary:
    """All that a run says of one case in one target."""

    case: Case
    target: Target
    wall: WallSummary | None = None
    count: CountSummary | None = None
    failures: tuple[tuple[Metric, Failure], ...] = ()
    """Each failure once, however many rounds had it."""
    caveats: tuple[Caveat, ...] = ()
    unchecked: str | None = None
    missing: tuple[Metric, ...] = ()
    """What was asked for and has no outcome yet."""
    nodes: tuple[Node, ...] = ()
    """Those that its results are of; none where all are of the run's own machine."""
