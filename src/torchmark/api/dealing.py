"""Deals the entries of a comparison out to venues, has them timed there, and deals again what is lost with its venue.

Each entry is timed in one venue, both sides and all layouts: other machines have other times.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from torchmark.api.abreast import Note, be_silent
from torchmark.api.comparison import Comparison, Entry, Evidence
from torchmark.api.contest import Lost, Timing
from torchmark.api.jury import Bench, decide_together
from torchmark.api.referee import Referee, Settings
from torchmark.api.venues import Venue
from torchmark.model.bout import Bout, Gauge, Pace, Visit
from torchmark.model.judgement import Side, SideFailure
from torchmark.model.outcome import Failure, FailureKind
from torchmark.runner.arena import Failures
from torchmark.runner.backend import Stop
from torchmark.runner.layouts import Match

# Who has seen so many machines go down may be what takes them down, as one that needs more memory than they have; two
# losses in a row also happen by chance, where machines are taken away again at any time.
MOST_DEALS = 3

T = TypeVar("T")


def time_sides(
    comparison: Comparison, venues: Sequence[Venue], evidence: Evidence, stop: Stop, note: Note = be_silent
) -> Generator[Entry, None, None]:
    """Time all cases in turns; gives each as soon as there is no more to find out.

    Whoever has opened the venues closes them, after this has ended or was closed.
    """
    assert venues
    dealer = _Dealer(venues, comparison.settings, stop)
    with contextlib.closing(decide_together(dealer.deal(comparison.entries), dealer.deal_again, note)) as decided:
        for entry, told in decided:
            assert isinstance(entry, Entry)
            evidence.timed[entry] = dealer.explain(entry, told) if isinstance(told, Lost) else told
            yield entry


class _Dealer:
    """Knows which venues there still are, and how often each entry was dealt."""

    def __init__(self, venues: Sequence[Venue], settings: Settings, stop: Stop) -> None:
        self._stop = stop
        self._seats = [
            (venue, Referee(_Seat(venue), settings, stop=stop, seed=number)) for number, venue in enumerate(venues)
        ]
        self._dealt: Counter[Entry] = Counter()

    def deal(self, entries: Sequence[Entry]) -> list[Bench]:
        """Evenly, to the venues that are left; without those that were dealt too often."""
        seats = [(venue, referee) for venue, referee in self._seats if not referee.is_lost]
        if not seats:
            return []
        playable = [entry for entry in entries if self._dealt[entry] < MOST_DEALS]
        self._dealt.update(playable)
        return [
            Bench(referee, hand, functools.partial(venue.prepare, hand))
            for (venue, referee), hand in zip(seats, deal_out(playable, len(seats)), strict=True)
            if hand
        ]

    def deal_again(self, lost: Mapping[Hashable, Lost]) -> list[Bench]:
        """Once stopping is requested, nothing."""
        return [] if self._stop.requested else self.deal([entry for entry in lost if isinstance(entry, Entry)])

    def explain(self, entry: Entry, lost: Lost) -> Timing:
        """What is told of an entry that is not dealt again."""
        if self._stop.requested:
            return Timing(None)
        what = (
            f"The machine was lost on which it was timed, {MOST_DEALS} times in a row. It may take more memory than "
            "they have: compare it by itself to see."
            if self._dealt[entry] >= MOST_DEALS
            else "The machine was lost on which it was timed, and there is no other left."
        )
        failure = Failure(FailureKind.WORKER_DIED, f"{what} The last time: {lost.reason}")
        return Timing(None, failures=tuple(SideFailure(side, failure) for side in Side))


def deal_out(entries: Sequence[T], hands: int) -> list[list[T]]:
    """Shares that differ by one at most, each in the order of the entries.

    At random, the same each time: entries that lie side by side are alike, and so may be every second or fourth one, as
    where Python and C++ alternate.

    >>> [sorted(hand) == hand for hand in deal_out(range(7), 3)]
    [True, True, True]
    """
    shuffled = random.Random(0).sample(range(len(entries)), len(entries))
    return [[entries[number] for number in sorted(shuffled[hand::hands])] for hand in range(hands)]


class _Seat:
    """The place of a venue, which is asked for only when something is to be done there."""

    def __init__(self, venue: Venue) -> None:
        self._venue = venue

    @property
    def layouts(self) -> tuple[int, ...]:
        return self._venue.place.layouts

    @property
    def match(self) -> Match:
        return self._venue.place.match

    def start(self, layouts: Iterable[int], note: Callable[[int], None] = lambda _: None) -> None:
        self._venue.place.start(layouts, note)

    def gauge(self, bout: Bout) -> Gauge | Failures:
        return self._venue.place.gauge(bout)

    def visit(self, layout: int, bout: Bout, pace: Pace) -> Visit | Failures:
        return self._venue.place.visit(layout, bout, pace)
