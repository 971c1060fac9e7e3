"""What stands between the story and the table: the largest changes, stages, what failed, as values for the template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from torchmark.model.dossier import Dossier, Entry
from torchmark.model.judgement import Judgement, Verdict
from torchmark.report.changes import show_delta
from torchmark.report.failed import sum_up
from torchmark.report.judgement_facts import say_change
from torchmark.report.pages.packing import identify_row
from torchmark.report.pages.status import SIGNS, Status, find_status
from torchmark.report.pages.story import add_up_changes, add_up_shares, find_change, is_compared
from torchmark.report.plots.palette import stage_colour
from torchmark.report.printable import printable
from torchmark.report.units import show_share
from torchmark.report.variants import Variants

# In either direction: as many as are taken in at a glance.
MOST_BARS = 8
# More names are counted.
MOST_NAMES = 12


class Tile(NamedTuple):
    """How many cases have a status."""

    status: str
    tone: str
    sign: str
    number: int


class Link(NamedTuple):
    """A case that can be jumped to."""

    name: str
    row: str


class Bar(NamedTuple):
    """A bar from the line at zero, and the interval around its end, in per cent of the width."""

    name: str
    row: str
    text: str
    tone: str
    left: float
    width: float
    zero: float = 0.0
    low: float = 0.0
    reach: float = 0.0
    colour: str = ""


class Failed(NamedTuple):
    """One reason, and whom it hit."""

    where: str
    reason: str
    cases: list[Link]
    more: int


def count_statuses(dossier: Dossier) -> list[Tile]:
    """Those that occur, in their order."""
    found = Counter(find_status(entry) for entry in dossier.entries)
    return [Tile(one.value, one.name.lower(), SIGNS[one], found[one]) for one in Status if found[one]]


def draw_changes(entries: Sequence[Entry], variants: Variants) -> list[Bar]:
    """The largest changes as bars on one scale: first all that became slower, then what became faster."""
    changed = [one.judgement for one in entries if find_status(one) in (Status.SLOWER, Status.FASTER)]
    found = [(find_change(one), one) for one in changed if one is not None]
    found.sort(key=lambda pair: -abs(pair[0][0]))
    largest = [
        pair
        for verdict in (Verdict.SLOWER, Verdict.FASTER)
        for pair in [pair for pair in found if pair[1].verdict is verdict][:MOST_BARS]
    ]
    span = _Span([edge for change, _ in largest for edge in change])
    return [_draw_change(judgement, change, span, variants) for change, judgement in largest]


class _Span:
    """Puts values between 0 and 100 per cent of a width, which has zero in it."""

    def __init__(self, values: Sequence[float]) -> None:
        self.low, self.high = min((0.0, *values)), max((0.0, *values))

    def at(self, value: float) -> float:
        return round((value - self.low) / (self.high - self.low) * 100, 2) if self.high > self.low else 0.0

    def draw(self, value: float) -> tuple[float, float]:
        """Where a bar from zero begins, and how wide it is."""
        left = self.at(min(value, 0.0))
        return left, round(self.at(max(value, 0.0)) - left, 2)


def _draw_change(judgement: Judgement, change: tuple[float, float, float], span: _Span, variants: Variants) -> Bar:
    share, low, high = change
    left, width = span.draw(share)
    return Bar(
        name=variants.name(judgement.case),
        row=identify_row(judgement.case),
        text=say_change(judgement),
        tone=judgement.verdict.value,
        left=left,
        width=width,
        zero=span.at(0.0),
        low=span.at(low),
        reach=round(span.at(high) - span.at(low), 2),
    )


def draw_stages(dossier: Dossier) -> list[Bar]:
    """What stages have of all changes, or of a single party what part of a typical case they are."""
    if is_compared(dossier):
        changed = [one for one in dossier.entries if find_status(one) in (Status.SLOWER, Status.FASTER)]
        deltas = add_up_changes(changed)
        span = _Span(list(deltas.values()))
        return [
            Bar(stage, "", show_delta(delta), "", *span.draw(delta), span.at(0.0), colour=stage_colour(stage))
            for stage, delta in deltas.items()
        ]
    bars, left = [], 0.0
    for stage, share in add_up_shares(dossier.entries).items():
        width = round(share * 100, 2)
        bars.append(Bar(stage, "", show_share(share), "", round(left, 2), width, colour=stage_colour(stage)))
        left += share * 100
    return bars


def list_failed(dossier: Dossier, variants: Variants) -> list[Failed]:
    """Each reason once, with the cases it hit, by party."""
    hit: dict[tuple[str, str], dict[Link, None]] = {}
    for entry in dossier.entries:
        link = Link(variants.name(entry.case), identify_row(entry.case))
        for party, failed in list_entry_failures(entry, dossier):
            hit.setdefault((party, failed), {})[link] = None
    return [
        Failed(party, reason, list(links)[:MOST_NAMES], max(len(links) - MOST_NAMES, 0))
        for (party, reason), links in hit.items()
    ]


def list_entry_failures(entry: Entry, dossier: Dossier) -> list[tuple[str, str]]:
    """The party and the reason on a line, for each failure of a case; those of a judgement where parties tell none."""
    found = []
    for party, summary in zip(dossier.parties, entry.exhibits, strict=True):
        failures = () if summary is None else summary.failures
        for failure in dict.fromkeys(failure for _, failure in failures):
            found.append((printable(party.name), sum_up(failure)))
    if not found and entry.judgement is not None:
        found = [(one.side.value, sum_up(one.failure)) for one in entry.judgement.failures]
    return list(dict.fromkeys(found))
