"""`Measurement`: the result of timing, as users hold it. Raw times are kept; everything else is derived on demand."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from torchmark.analysis.grid import name_env, name_row
from torchmark.analysis.summarise import SUSPECT_IQR, find_caveats, find_median_interval, is_suspect, summarise
from torchmark.errors import StoreError, UsageError
from torchmark.model.caveats import Caveat, OptimisedAway
from torchmark.model.plain import to_plain
from torchmark.model.schemas import begin_document
from torchmark.model.task import Interval, Summary, TaskSpec, Times
from torchmark.report.caveats import describe_caveat
from torchmark.report.html.templates import render_measurement
from torchmark.report.text.measurement import describe_measurement
from torchmark.report.text.terminal import DEFAULT_WIDTH, wrap
from torchmark.stats import distribution
from torchmark.store.plain import check_schema, from_plain, pick_fields


@dataclasses.dataclass(repr=False)
class Measurement:
    """Times of one task, in seconds, and what can be said of them.

    `raw_times` are the times of whole blocks of `number_per_run` executions; `times` and all statistics are
    per execution. `metadata` is yours; torchmark never looks at it.

    >>> m = Measurement(10, [2.0, 3.0, 4.0], TaskSpec("x + y", "pass"))
    >>> m.median, m.mean, m.min
    (0.3, 0.3, 0.2)
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None
    overhead_s: float | None = None
    """Seconds that a block without any execution takes, where the method of measuring found out."""
    optimised_away: bool = False
    """Whether a compiler left nothing of the statement, so that an empty loop was timed."""

    def __post_init__(self) -> None:
        if self.number_per_run < 1:
            raise UsageError(f"A block runs its statement at least once, not {self.number_per_run} times.")

    # --- what was measured ---------------------------------------------------------------------------

    @property
    def stmt(self) -> str:
        """The statement."""
        return self.task_spec.stmt

    @property
    def setup(self) -> str:
        """What ran before it."""
        return self.task_spec.setup

    @property
    def global_setup(self) -> str:
        """C++ that stands at file scope."""
        return self.task_spec.global_setup

    @property
    def label(self) -> str | None:
        """The name of the table this belongs to."""
        return self.task_spec.label

    @property
    def sub_label(self) -> str | None:
        """The name of the row this belongs to."""
        return self.task_spec.sub_label

    @property
    def description(self) -> str | None:
        """The name of the column this belongs to."""
        return self.task_spec.description

    @property
    def env(self) -> str:
        """The environment it ran in; a fixed text where none was given."""
        return name_env(self.task_spec.env)

    @property
    def num_threads(self) -> int:
        """How many threads torch was allowed."""
        return self.task_spec.num_threads

    @property
    def title(self) -> str:
        """Label or statement, with the sub-label."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """Sub-label or statement."""
        return name_row(self.task_spec)

    # --- what came out -------------------------------------------------------------------------------

    @property
    def times(self) -> list[float]:
        """Seconds per execution, one value a block, in the order they were taken."""
        return list(self._as_times().per_run)

    @property
    def summary(self) -> Summary:
        """All statistics at once; cheaper than asking for several of them one by one."""
        return summarise(self.times)

    @property
    def median(self) -> float:
        """The middle of the samples."""
        return self.summary.median

    @property
    def mean(self) -> float:
        """The mean of the samples."""
        return self.summary.mean

    @property
    def iqr(self) -> float:
        """The distance between the quartiles."""
        return self.summary.iqr

    @property
    def std(self) -> float | None:
        """The standard deviation of the samples (n−1); None for a single one."""
        return self.summary.std

    @property
    def min(self) -> float:
        """The fastest sample."""
        return self.summary.minimum

    @property
    def max(self) -> float:
        """The slowest sample."""
        return self.summary.maximum

    @property
    def significant_figures(self) -> int:
        """How many figures of the median the scatter supports: 1 to 4. A rough guide, meant for tables."""
        return self.summary.significant_figures

    @property
    def outliers(self) -> list[float]:
        """Samples beyond Tukey's fences, in the order they were taken."""
        return distribution.find_outliers(self.times) if self.raw_times else []

    def quantile(self, q: float) -> float:
        """The q-quantile of the samples, linear between neighbours.

        >>> Measurement(1, [1.0, 2.0, 3.0, 4.0, 5.0], TaskSpec("pass", "")).quantile(0.9)
        4.6
        """
        if not 0 <= q <= 1:
            raise UsageError(f"A quantile lies between 0 and 1, not at {q!r}.")
        if not self.raw_times:
            raise UsageError("A measurement without samples has no quantiles.")
        return distribution.quantile(sorted(self.times), q)

    def median_interval(self, confidence: float = 0.95) -> Interval | None:
        """An interval that encloses the true median, whatever the distribution; None for too few samples.

        >>> m = Measurement(1, [5.0, 3.0, 4.0, 1.0, 2.0, 6.0], TaskSpec("pass", ""))
        >>> m.median_interval()
        Interval(low=1.0, high=6.0, confidence=0.96875)
        """
        return find_median_interval(self.times, confidence)

    # --- can it be trusted ---------------------------------------------------------------------------

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """The reasons to doubt this result, as values."""
        return find_caveats(self._as_times())

    @property
    def has_warnings(self) -> bool:
        """Whether the interquartile range is wide; `caveats` knows of more."""
        return bool(self.raw_times) and is_suspect(self.summary)

    def meets_confidence(self, threshold: float = SUSPECT_IQR) -> bool:
        """Whether the interquartile range is less than this share of the median."""
        return self.summary.iqr_share < threshold

    # --- together and elsewhere ----------------------------------------------------------------------

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Join replicates: one measurement for each task, in the order the tasks first occur."""
        merged: dict[TaskSpec, Measurement] = {}
        for measurement in measurements:
            one = merged.setdefault(measurement.task_spec, Measurement(1, [], measurement.task_spec))
            one.raw_times += measurement.times
            one.optimised_away |= measurement.optimised_away
        return list(merged.values())

    def to_dict(self) -> dict[str, Any]:
        """A form that survives JSON unchanged, down to the last bit of every time.

        `metadata` goes in as it is, and survives as far as it is made of what JSON has.

        >>> m = Measurement(10, [2.0], TaskSpec("x + y", "pass"))
        >>> Measurement.from_dict(m.to_dict()) == m
        True
        """
        return {**begin_document("measurement"), **to_plain(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Measurement:
        """The measurement that `to_dict` gave this for; StoreError says what is wrong with anything else."""
        check_schema(data, "measurement")
        try:
            # Without the bounds of the store: what `to_dict` gave is read whatever it is.
            return from_plain(cls, pick_fields(cls, data), "", {})
        except UsageError as error:
            raise StoreError(f"The field 'number_per_run' cannot be right: {error}") from error

    def __repr__(self) -> str:
        summary = self.summary if self.raw_times else None
        text = describe_measurement(self.task_spec, summary, self.number_per_run)
        if self.optimised_away:
            warning = f"  WARNING: {describe_caveat(OptimisedAway(), 'python')}"
            text = "\n".join([text, *wrap(warning, DEFAULT_WIDTH, 11)])
        return f"<torchmark.Measurement object at {id(self):#x}>\n{text}"

    def _repr_html_(self) -> str:
        return render_measurement(self.task_spec, self._as_times())

    def _as_times(self) -> Times:
        return Times(self.number_per_run, tuple(self.raw_times), self.overhead_s, self.optimised_away)


def make_measurement(times: Times, spec: TaskSpec) -> Measurement:
    """The result of timing a task."""
    return Measurement(
        times.number_per_run,
        list(times.raw_times),
        spec,
        overhead_s=times.overhead_s,
        optimised_away=times.optimised_away,
    )
