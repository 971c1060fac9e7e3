"""How long things take: what is usual, what is slow, and from when on nobody waits any more."""

from __future__ import annotations

import dataclasses

from torchmark.cluster.board import Parcel
from torchmark.cluster.parcels import Canary, Survey

# What starting another one that counts takes: it is worth that where each of those that are there has more to do.
START_S = 20.0
# What a result takes until some are there.
EXPECTED_S = 1.0
# What takes so many times as long as usual is given to a second node, where that has nothing else to do.
SLOW_FACTOR = 3.0
SLOW_LEAST_S = 2.0
# Starting workers and compiling take minutes at the most, however little time the run allows a case.
SILENCE_S = 1800.0
# A node ends by itself each process that takes longer than the run allows. A result takes one that measures; starting,
# preparing and checking may take so many more. Who has not answered by then does not know of time any more.
MORE_PROCESSES = 3


@dataclasses.dataclass
class _Seen:
    results: int = 0
    seconds: float = 0.0

    @property
    def mean_s(self) -> float:
        return self.seconds / self.results


class Pace:
    """What has been seen of it. `timeout_s` is what the run allows a process."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._all = _Seen()
        self._nodes: dict[str, _Seen] = {}

    def note(self, node: str, results: int, seconds: float) -> None:
        """So many results took that long there."""
        for seen in (self._all, self._nodes.setdefault(node, _Seen())):
            seen.results += results
            seen.seconds += seconds

    def forget(self, node: str) -> None:
        """It is gone."""
        self._nodes.pop(node, None)

    @property
    def usual_s(self) -> float:
        """What a result takes."""
        return self._all.mean_s if self._all.results else EXPECTED_S

    def is_another_worth_it(self, results: int, posts: int) -> bool:
        """Whether to start one more post, where so many share what is left."""
        return results * self.usual_s > START_S * posts

    def is_slow(self, parcel: Parcel, seconds: float, helper: str) -> bool:
        """Whether this node would be done sooner, though it starts only now; one that is slow itself is in no hurry."""
        own = self._nodes.get(helper)
        expected_s = max(self.usual_s, own.mean_s if own is not None else 0.0)
        return seconds > max(SLOW_LEAST_S, SLOW_FACTOR * expected_s * parcel.size)

    def is_overdue(self, doing: Parcel | Survey | Canary, seconds: float) -> bool:
        """Whether there will be no answer."""
        results = doing.size if isinstance(doing, Parcel) else 1
        return seconds > max(SILENCE_S, self._timeout_s * (results + MORE_PROCESSES))
