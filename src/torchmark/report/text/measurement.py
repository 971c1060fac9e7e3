"""A measurement as text, and a table of statements that were timed together."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from torchmark.analysis.summarise import SMALLEST_DIFFERENCE, UNRELIABLE_IQR, Standings, is_suspect
from torchmark.model.summary import Interval, Summary
from torchmark.model.task import TaskSpec
from torchmark.report.text.terminal import count, cut_middle, measure, one_line, pad
from torchmark.report.text.units import choose_scale, format_range, format_time, show_ratio
from torchmark.stats.intervals import PairedRatio


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


LEAST_NAME_WIDTH = 16
INDENT = "  "
GAP = "  "
TITLES = ("median", "95 % interval", "ratio", "95 % interval")


@dataclasses.dataclass(frozen=True)
class TimedRow:
    """One row: the median in seconds, and an interval of it where there are enough samples."""

    name: str
    median_s: float
    interval: Interval | None


def render_standings(heading: str, rows: Sequence[TimedRow], standings: Standings, width: int) -> list[str]:
    """The rows below a heading, in the order they are given, with the ratio to the fastest."""
    cells = [TITLES, *(_cells(row, ratio) for row, ratio in zip(rows, standings.ratios, strict=True))]
    widths = [max(map(measure, column)) for column in zip(*cells, strict=True)]
    room = width - sum(widths) - len(GAP) * len(widths) - len(INDENT)
    names = [heading, *(INDENT + name for name in name_rows([row.name for row in rows], max(room, LEAST_NAME_WIDTH)))]
    names[0] = cut_middle(heading, max(room, LEAST_NAME_WIDTH) + len(INDENT))
    name_width = max(map(measure, names))
    return [
        GAP.join(
            [pad(name, name_width), *(pad(cell, w, right=True) for cell, w in zip(line, widths, strict=True))]
        ).rstrip()
        for name, line in zip(names, cells, strict=True)
    ]


def name_rows(texts: Sequence[str], width: int) -> list[str]:
    """Texts on one line each and no wider than this; numbered where two of them would otherwise look the same.

    >>> name_rows(["x + y", "x"], 20), name_rows(["x\\ny", "x\\nz"], 20)
    (['x + y', 'x'], ['[1] x ...', '[2] x ...'])
    """
    names = [cut_middle(one_line(text), width) for text in texts]
    if len(set(names)) == len(names):
        return names
    numbers = [f"[{number}] " for number in range(1, len(texts) + 1)]
    return [n + cut_middle(one_line(text), max(width - len(n), 1)) for n, text in zip(numbers, texts, strict=True)]


def conclude(names: Sequence[str], standings: Standings) -> str:
    """One sentence: which is the fastest and by how much, or that these times cannot tell."""
    fastest, rivals = standings.fastest, standings.rivals
    if rivals:
        return _admit(names, standings)
    ratio = standings.ratios[standings.runner_up]
    low, high = _bounds(ratio)
    which = "faster" if len(names) == 2 else "the fastest"
    next_one = names[standings.runner_up] + ("" if len(names) == 2 else ", the next one,")
    much = show_ratio(math.exp(ratio.log_ratio))
    return f"{names[fastest]} is {which}: {next_one} takes {much} times as long (95 % interval {low} to {high})."


def _admit(names: Sequence[str], standings: Standings) -> str:
    among = [names[i] for i in range(len(names)) if i == standings.fastest or i in standings.rivals]
    which = "which is faster" if len(names) == 2 else f"which of {', '.join(among[:-1])} and {among[-1]} is the fastest"
    return f"These measurements cannot tell {which}: {_say_why([standings.ratios[i] for i in standings.rivals])}."


def _say_why(ratios: Sequence[PairedRatio]) -> str:
    if any(ratio.low is None for ratio in ratios):
        return "there are too few rounds in turns for an interval of the ratio"
    share = f"{SMALLEST_DIFFERENCE:.0%}".replace("%", " %")
    if len(ratios) > 1:
        return f"their ratios may be 1, or differ from it by less than {share}"
    low, high = _bounds(ratios[0])
    between = f"the ratio lies between {low} and {high}"
    excluded = ratios[0].low is not None and ratios[0].low > 0
    return f"{between}, and a difference below {share} can come from the layout of memory" if excluded else between


def _cells(row: TimedRow, ratio: PairedRatio) -> tuple[str, str, str, str]:
    interval = "" if row.interval is None else format_range(row.interval.low, row.interval.high)
    low_high = "" if ratio.low is None or not (ratio.low or ratio.high) else " to ".join(_bounds(ratio))
    return format_time(row.median_s), interval, show_ratio(math.exp(ratio.log_ratio)), low_high


def _bounds(ratio: PairedRatio) -> tuple[str, str]:
    assert ratio.low is not None
    assert ratio.high is not None
    return show_ratio(math.exp(ratio.low)), show_ratio(math.exp(ratio.high))
