"""Where the instructions of a run go, shortened to what a person reads; what is left out is summed up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torchmark.analysis.explain import explain
from torchmark.model.costs import Tally
from torchmark.model.dossier import Breakdown
from torchmark.model.judgement import Explanation, FunctionChange, Side

# As many as people read. A call is spread over some three hundred functions, and what is left of it is summed up.
MOST_CHANGED = 10
MOST_COSTLY = 16
# Half of the last digit that is shown: what changed by less did not change to whoever reads it.
VISIBLE = 0.05


def break_down(tallies: Sequence[Tally | None], standardise: Callable[[str], str]) -> Breakdown | None:
    """Of base and head, or of the only one there is; None where neither has costs by function."""
    counted = [tally for tally in tallies if tally is not None and tally.profile is not None]
    if not counted:
        return None
    # One side has nothing to be compared with. Its numbers are explained alone, and `only` says whose they are.
    explanation = explain(counted[0], counted[-1], standardise)
    return None if explanation is None else shorten(explanation, find_only(tallies))


def find_only(tallies: Sequence[Tally | None]) -> Side | None:
    """The only side that has costs by function, HEAD of a single party; None where both sides have them."""
    has_costs = [tally is not None and tally.profile is not None for tally in tallies]
    if len(has_costs) == 2 and all(has_costs):
        return None
    return Side.HEAD if has_costs[-1] else Side.BASE


def shorten(explanation: Explanation, only: Side | None = None) -> Breakdown:
    """Those that changed most, then those that cost most, and the others together."""
    changed = [one for one in explanation.functions if abs(one.delta) >= VISIBLE][:MOST_CHANGED]
    costly = sorted(explanation.functions, key=lambda one: -max(one.base, one.head))[:MOST_COSTLY]
    shown = list(dict.fromkeys([*changed, *costly]))
    taken = set(shown)
    others = [one for one in explanation.functions if one not in taken]
    return Breakdown(tuple(shown), _sum_up(others), len(others), explanation.stages, only)


def _sum_up(functions: Sequence[FunctionChange]) -> FunctionChange | None:
    if not functions:
        return None
    return FunctionChange("", "", sum(one.base for one in functions), sum(one.head for one in functions))
