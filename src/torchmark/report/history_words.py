"""What changed in a history in words, and the command that would tell more."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection

from torchmark.model.history import Difference, Ground, History, Shift, Standing
from torchmark.model.plan import Metric
from torchmark.report.cells import cut
from torchmark.report.printable import count, printable

# Of a commit, so much is told; and of texts of unknown length.
SHORT_COMMIT = 10
LONGEST = 60

_REASONS = {
    Ground.EXACT: "counts are exact",
    Ground.INSTRUCTIONS: "its instructions changed with it",
    Ground.SOFTWARE: "later runs keep it",
    Ground.SETTINGS: "measured with other settings",
    Ground.MACHINE: "nothing is compared across it",
    Ground.DEFINITION: "nothing is compared across it",
}
# Another version is another commit too.
_IMPLIED = {"torch commit": "torch"}


class Words:
    """Words shifts; `plain` in nothing but ASCII."""

    def __init__(self, *, plain: bool = False) -> None:
        self._arrow = "->" if plain else "→"

    def tell(self, shift: Shift) -> str:
        """What became different, by how much, what is held of it and why, and what else differs.

        >>> from torchmark.model.history import Difference
        >>> torch = Difference("torch", "2.12.0", "2.13.0")
        >>> Words().tell(Shift((Metric.COUNT,), 5, 4, Standing.CONFIRMED, Ground.EXACT, 1000, 1050, None, (torch,)))
        'instructions +50 (+5.0 %), confirmed: counts are exact. torch 2.12.0 → 2.13.0.'
        """
        size = f"{_tell_size(shift)}, " if shift.before is not None else ""
        whats = {one.what for one in shift.differences}
        told = [self._contrast(one) for one in shift.differences if _IMPLIED.get(one.what) not in whats]
        differences = f" {', '.join(told)}." if told else ""
        return f"{size}{shift.standing.value}: {_reason(shift)}.{differences}"

    def _contrast(self, difference: Difference) -> str:
        before, after = (_shorten(difference.what, side) for side in (difference.before, difference.after))
        return f"{printable(difference.what)} {before} {self._arrow} {after}"


def _tell_size(shift: Shift) -> str:
    share = "" if shift.share is None else f"{100 * shift.share:+.1f} %"
    if shift.metrics == (Metric.WALL,):
        return f"time {share}"
    assert shift.before is not None
    assert shift.after is not None
    return f"instructions {shift.after - shift.before:+,.0f}" + (f" ({share})" if share else "")


def _reason(shift: Shift) -> str:
    if shift.ground is Ground.OTHER_CASES and shift.common is not None:
        return f"{count(shift.others, 'other case')} shifted by {100 * math.expm1(shift.common):+.1f} % in the median"
    if shift.ground is Ground.NONE:
        if shift.common is not None:
            return f"{count(shift.others, 'other case')} did not shift with it"
        return "nothing else that was measured explains it"
    return _REASONS[shift.ground]


def _shorten(what: str, text: str | None) -> str:
    if text is None:
        return "none"
    return printable(text[:SHORT_COMMIT] if what.endswith("commit") else cut(text, LONGEST))


def spell_command(history: History, shift: Shift, interpreters: Collection[str]) -> str | None:
    """The comparison that would settle an open change; None where both runs used one interpreter, or one is gone."""
    if shift.standing is not Standing.UNCONFIRMED or shift.pythons is None:
        return None
    base, head = shift.pythons
    if base == head or not {base, head} <= set(interpreters):
        return None
    label = " / ".join(history.case.label).replace('"', '""')
    language = history.case.autolabels.as_dict["language"].lower()
    expression = f'"{label}" and {language}'
    words = ["torchmark", "ab", history.case.suite, "--base", base, "--head", head, "-k", expression]
    return shlex.join(word for word in words if word)
