"""How results came about, in two sentences for those who have never seen such a page."""

from __future__ import annotations

from collections.abc import Sequence

from torchmark.model.plan import Metric, Sampling
from torchmark.report.printable import count
from torchmark.report.units import format_time


def word_method(samplings: Sequence[Sampling], *, in_turns: bool = False) -> tuple[str, ...]:
    """A sentence on times and one on counts; `samplings` are those of all parties, the last of which is told.

    >>> word_method([Sampling((Metric.WALL,))])
    ('Times are medians of blocks of runs, in a process of its own for each case, for 200 ms or more.',)
    """
    sampling = samplings[-1]
    texts = []
    if Metric.WALL in sampling.metrics:
        text = "Times are medians of blocks of runs, in a process of its own for each case, "
        text += f"for {format_time(sampling.min_run_time_s)} or more"
        text += f", in {count(sampling.repeat, 'round')}" if sampling.repeat > 1 else ""
        if len(samplings) > 1:
            text += "; the sides were timed " + ("case by case" if in_turns else "one after the other")
        texts.append(f"{text}.")
    if Metric.COUNT in sampling.metrics:
        texts.append(
            "Instructions are counted by Valgrind's Callgrind, exactly, as the median of "
            f"{count(len(sampling.layouts), 'layout')} of memory; flame graphs are of the same counts, "
            "shared out among callers."
        )
    return tuple(texts)
