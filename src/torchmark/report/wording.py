"""Caveats in words, with advice that fits how the measurement was made."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from torchmark.analysis.doubt import UNRELIABLE_IQR
from torchmark.model.caveat import (
    Caveat,
    Drift,
    FewSamples,
    HighOverhead,
    OptimisedAway,
    OtherInstructionSet,
    OtherPlaces,
    SeveralThreads,
    TwoModes,
    UnstableCount,
    Variation,
)
from torchmark.report.nodes import list_names
from torchmark.report.units import format_time

Face = Literal["python", "shell"]

# Of groups this close to half of the samples, another measurement may have its median in the other one.
NEARLY_HALF = 0.1
METRIC_WORDS = {"wall": "times", "count": "counts"}
_OTHERS = {
    "cpu": "another processor",
    "torch": "another torch",
    "torch_commit": "another commit of torch",
    "torch_build": "another build of torch",
    "capability": "another instruction set",
    "valgrind": "another Valgrind",
    "hash_seed": "another hash seed",
}


def word_caveat(caveat: Caveat, face: Face = "python", used: Collection[str] = ()) -> str:
    """One sentence that says what was seen and one that says what to try.

    `face` says how options are spelt; `used` names those already in use, which are not advised again.

    >>> word_caveat(FewSamples(1, 6), "shell")
    '1 sample; an interval of the median takes 6. Take more with a larger --min-run-time.'
    """
    return f"{state_fact(caveat)} {give_advice(caveat, face, used)}"


def state_fact(caveat: Caveat) -> str:
    """What was seen."""
    if isinstance(caveat, FewSamples):
        s = "" if caveat.samples == 1 else "s"
        return f"{caveat.samples} sample{s}; an interval of the median takes {caveat.wanted}."
    if isinstance(caveat, Variation):
        degree = "unreliable" if caveat.iqr_share >= UNRELIABLE_IQR else "unsteady"
        return f"The result is {degree}: the middle half of the samples spans {caveat.iqr_share:.0%} of the median."
    if isinstance(caveat, Drift):
        direction = "slower" if caveat.change > 0 else "faster"
        return f"The statement became {abs(caveat.change):.0%} {direction} while it was measured."
    if isinstance(caveat, TwoModes):
        fast, slow = format_time(caveat.fast_s), format_time(caveat.slow_s)
        return f"The samples fall into two groups, around {fast} and {slow} ({caveat.slow_share:.0%} in the slow one)."
    if isinstance(caveat, OptimisedAway):
        return "The compiler removed the statement, which has no effect: the loop was empty."
    if isinstance(caveat, UnstableCount):
        return f"The count moves by {caveat.spread:.1%} with the layout of memory."
    if isinstance(caveat, SeveralThreads):
        return f"The count is of {caveat.threads} threads together, and does not repeat exactly."
    if isinstance(caveat, OtherInstructionSet):
        return f"torch uses {caveat.native} on this machine, but {caveat.counted} under Valgrind."
    if isinstance(caveat, OtherPlaces):
        return _tell_of_others(caveat)
    return f"Starting the loop and reading the clock takes {caveat.share:.1%} of each block."


def _tell_of_others(caveat: OtherPlaces) -> str:
    which = f"{caveat.rounds} of {caveat.of} rounds of {METRIC_WORDS.get(caveat.metric, 'results')}"
    what = " and ".join(_OTHERS.get(one, f"another {one}") for one in caveat.what)
    where = f" ({list_names(caveat.nodes)})" if caveat.nodes else ""
    return f"{which} {'is' if caveat.rounds == 1 else 'are'} left out, taken with {what}{where}."


def give_advice(caveat: Caveat, face: Face, used: Collection[str]) -> str:
    """What to try; the same for many caveats of a kind."""
    if isinstance(caveat, FewSamples):
        more = "repeat() or a larger min_run_time=" if face == "python" else "a larger --min-run-time"
        return f"Take more with {more}."
    if isinstance(caveat, HighOverhead):
        if "number" in used:
            return "Give --number a larger value, or leave it out to let the block size be chosen."
        return "Run the statement more often in each block."
    if isinstance(caveat, Drift):
        return "Does it depend on what earlier runs left behind, or does the machine heat up or slow down?"
    if isinstance(caveat, TwoModes):
        near = abs(caveat.slow_share - 0.5) <= NEARLY_HALF
        group = "may lie in either" if near else f"lies in the {'slow' if caveat.slow_share > 0.5 else 'fast'}"
        return f"The median {group} group: look at the quantiles, and at what else the machine does."
    if isinstance(caveat, OptimisedAway):
        return "Use what it computes, or keep it with torchmark::keep(...)."
    if isinstance(caveat, UnstableCount):
        more = "layouts=" if face == "python" else "--layouts"
        return f"Does it depend on addresses or on what earlier runs left behind? More layouts ({more}) make it firmer."
    if isinstance(caveat, SeveralThreads):
        return "Count with one thread to see small changes."
    if isinstance(caveat, OtherInstructionSet):
        return "Counts describe other kernels than those that run outside; compare counts with counts only."
    if isinstance(caveat, OtherPlaces):
        alike = "on nodes of one kind" if caveat.nodes else "anew, without --resume,"
        return f"Run it {alike} to have all rounds in one result."
    if "adaptive" in used:
        return "Something else is using the machine; `torchmark doctor` may tell what."
    how = "--adaptive" if face == "shell" else "adaptive_autorange()"
    return f"Measure until it is steady with {how}, on a quieter machine."
