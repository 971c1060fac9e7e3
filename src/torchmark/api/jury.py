"""Referees of several places decide together: each works in its own place, and what is called a change all decide.

False discoveries are controlled over all bouts, wherever these are held. What a place that is lost has not decided is
held elsewhere before that, so that it counts among all others.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from torchmark.analysis.sequential import CONFIRM_RATE
from torchmark.api.abreast import Note, be_silent, run_abreast
from torchmark.api.contest import Lost, Timing
from torchmark.errors import PlaceLost
from torchmark.model.bout import Bout
from torchmark.stats.multiple import benjamini_hochberg

# A change is looked for on fresh layouts, and once more in more visits: visits are off now and then, and what is there
# shall not be lost by that. Both share the rate of false discoveries.
CONFIRMATIONS = 2

Told: TypeAlias = tuple[Hashable, Timing | Lost]


class Juror(Protocol):
    """Who works in one place, when told to; `api.referee.Referee` is the real one. Only `pursue` touches the place."""

    @property
    def is_busy(self) -> bool:
        """Whether there is more to pursue, after the changes that it has seen were settled."""

    @property
    def p_values(self) -> tuple[float, ...]:
        """Of the changes that were looked for on fresh layouts, and are not settled."""

    def pursue(self, bouts: Mapping[Hashable, Bout], attempt: int, note: Note) -> Iterator[tuple[Hashable, Timing]]:
        """Look at these, and look for all changes on fresh layouts. Gives what is final by then, as soon as it is.

        PlaceLost is raised if there is no such place any more.
        """

    def settle(self, accepted: Sequence[bool]) -> None:
        """Which of the changes that p values were given of may be called so."""

    def conclude(self) -> Iterator[tuple[Hashable, Timing]]:
        """All that was not told yet."""

    def give_up(self, lost: Lost) -> Iterator[Told]:
        """The same where the place is lost: only what is final is known, and nothing is left to pursue or to settle."""

    def leave(self) -> None:
        """Begin nothing more, for nobody waits for it. Said from another thread."""


class Bench(NamedTuple):
    """What is to be decided in one place."""

    referee: Juror
    keys: Sequence[Hashable]
    prepare: Callable[[], Mapping[Any, Bout | Timing]]
    """Makes a bout of each, or tells what is known of it without one. Called where the referee works."""


def deal_no_more(lost: Mapping[Hashable, Lost]) -> Sequence[Bench]:
    """What is lost stays lost."""
    return ()


def decide_together(
    benches: Sequence[Bench],
    deal_again: Callable[[Mapping[Hashable, Lost]], Sequence[Bench]] = deal_no_more,
    note: Note = be_silent,
) -> Generator[Told, None, None]:
    """What the clock says of each, as soon as that is final; each is told once.

    A single referee works in the caller's thread, several have one each. `deal_again` hears what was lost with its
    place, and says where to hold it instead; what it leaves out is told to be lost.
    """
    referees: dict[Juror, None] = {}
    for attempt in range(CONFIRMATIONS):
        busy = [Bench(referee, (), dict) for referee in referees if referee.is_busy]
        stage = busy if attempt else benches
        while stage:
            referees |= dict.fromkeys(bench.referee for bench in stage)
            lost: dict[Hashable, Lost] = {}
            with contextlib.closing(_hold(stage, attempt, note)) as held:
                for key, told in held:
                    if isinstance(told, Lost):
                        lost[key] = told
                    else:
                        yield key, told
            stage = deal_again(lost) if lost else ()
            taken = {key for bench in stage for key in bench.keys}
            yield from ((key, one) for key, one in lost.items() if key not in taken)
        _settle(tuple(referees))
    for referee in referees:
        yield from referee.conclude()


def _hold(stage: Sequence[Bench], attempt: int, note: Note) -> Generator[Told, None, None]:
    """One stage, in all places at once."""

    def leave() -> None:
        for bench in stage:
            bench.referee.leave()

    return run_abreast([functools.partial(_pursue, bench, attempt) for bench in stage], note, leave)


def _pursue(bench: Bench, attempt: int, note: Note) -> Iterator[Told]:
    """One stage in one place."""
    prepared: Mapping[Hashable, Bout | Timing] = {}
    try:
        prepared = bench.prepare()
        yield from ((key, one) for key, one in prepared.items() if isinstance(one, Timing))
        bouts = {key: one for key, one in prepared.items() if isinstance(one, Bout)}
        yield from bench.referee.pursue(bouts, attempt, note)
    except PlaceLost as error:
        lost = Lost(str(error))
        yield from bench.referee.give_up(lost)
        yield from ((key, lost) for key in bench.keys if key not in prepared)


def _settle(referees: Sequence[Juror]) -> None:
    """Which changes that were seen again are believed, of all together."""
    p_values = [p for referee in referees for p in referee.p_values]
    accepted = iter(benjamini_hochberg(p_values, CONFIRM_RATE / CONFIRMATIONS))
    for referee in referees:
        referee.settle([next(accepted) for _ in referee.p_values])
