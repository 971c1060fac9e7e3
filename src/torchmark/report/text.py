"""A measurement as plain text, in the layout that torch.utils.benchmark users know."""

from __future__ import annotations

from torchmark.analysis.doubt import UNRELIABLE_IQR, is_suspect
from torchmark.model.summary import Summary
from torchmark.model.task import TaskSpec
from torchmark.report.printable import count
from torchmark.report.units import choose_scale


def warn_of_spread(summary: Summary) -> str | None:
    """The warning that a wide interquartile range earns; None for a steady result."""
    if not is_suspect(summary):
        return None
    meaning = (
        "This could indicate system fluctuation."
        if summary.iqr_share < UNRELIABLE_IQR
        else "This suggests significant environmental influence."
    )
    percent = f"{summary.iqr_share * 100:.1f}%"
    return f"  WARNING: Interquartile range is {percent} of the median measurement.\n           {meaning}"


def describe_measurement(spec: TaskSpec, summary: Summary | None, number_per_run: int) -> str:
    """Task, statistics, sample counts and the warning, one below the other.

    `summary` is None for a measurement without samples.
    """
    lines = [spec.summarize()]
    if summary is not None:
        lines += _statistics(summary)
    lines.append(f"  {_sizes(spec, summary.samples if summary else 0, number_per_run)}")
    warning = warn_of_spread(summary) if summary else None
    return "\n".join([*lines, warning] if warning else lines)


def _statistics(summary: Summary) -> list[str]:
    scale = choose_scale(summary.median)
    unit, show = scale.unit, scale.show
    name = "Median: " if summary.samples > 1 else ""
    lines = [f"  {name}{show(summary.median)} {unit}"]
    if summary.samples >= 4:
        lines.append(f"  IQR:    {show(summary.iqr)} {unit} ({show(summary.p25)} to {show(summary.p75)})")
    return lines


def _sizes(spec: TaskSpec, samples: int, number_per_run: int) -> str:
    runs = count(number_per_run, "run") if samples == 1 else f"{number_per_run} runs per measurement"
    return f"{count(samples, 'measurement')}, {runs}, {count(spec.num_threads, 'thread')}"
