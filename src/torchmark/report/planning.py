"""What a run would do, before it does: what, where, how often, and for how long."""

from __future__ import annotations

from torchmark.analysis.estimate import Estimate
from torchmark.model.plan import Metric, Plan
from torchmark.report.cases import summarise_cases
from torchmark.report.cells import wrap
from torchmark.report.printable import count
from torchmark.report.units import format_time
from torchmark.report.variants import name_target

LEAST_WIDTH = 40


def render_plan(plan: Plan, expected: Estimate, cores: int, width: int, *, of: int | None = None) -> str:
    """The cases, how each is measured, where, and how long that will take. `of` is how many there were to select."""
    width = max(width, LEAST_WIDTH)
    lines = summarise_cases(plan.cases, of, width).split("\n")
    for text in (*_word_sampling(plan), _word_places(plan, cores), _word_estimate(expected)):
        lines += wrap(text, width, 2)
    return "\n".join(lines)


def _word_sampling(plan: Plan) -> list[str]:
    sampling, texts = plan.sampling, []
    if Metric.WALL in sampling.metrics:
        texts.append(f"Timed: one after the other, each for {format_time(sampling.min_run_time_s)} or more")
    if Metric.COUNT in sampling.metrics:
        texts.append(f"Counted: in {count(len(sampling.layouts), 'memory layout')}")
    if sampling.repeat > 1:
        texts.append(f"Rounds: {sampling.repeat}")
    return texts


def _word_places(plan: Plan, cores: int) -> str:
    where = f"{count(cores, 'core')}"
    if len(plan.targets) > 1:
        where += f"; {len(plan.targets)} environments: {', '.join(map(name_target, plan.targets))}"
    return f"Where: {where}"


def _word_estimate(expected: Estimate) -> str:
    results = count(expected.total, "result")
    if not expected.total:
        return "Nothing is left to measure."
    if not expected.known:
        basis = "a rough guess: none of these has been measured here"
    else:
        basis = f"from {expected.known} of {expected.total} earlier durations"
    times = f"about {format_duration(expected.clock_s)}, {format_duration(expected.cpu_s)} of processor time"
    return f"{results}: {times} ({basis})"


def format_duration(seconds: float) -> str:
    """A length of time as one speaks of it.

    >>> format_duration(0.4), format_duration(75), format_duration(3700), format_duration(200000)
    ('1 s', '75 s', '1 h 2 min', '2 d 7 h')
    """
    whole = max(round(seconds), 1)
    if whole < 100:
        return f"{whole} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"
