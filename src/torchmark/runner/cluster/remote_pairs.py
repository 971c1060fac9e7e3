"""Nodes that time pairs, as the driver sees them: what it asks a node for, and losing that node."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from torchmark.errors import PlaceLost
from torchmark.model.job import BlockPlan, PairedCase, RunTime, Visit
from torchmark.model.plan import Case, Target
from torchmark.model.task import Language
from torchmark.runner.cluster.nodes import SILENCE_S, Member
from torchmark.runner.cluster.protocol import (
    Build,
    Built,
    Fleet,
    Lost,
    PairsTimed,
    PreparePairs,
    Request,
    RequestRefused,
    TimePairs,
    share_libraries,
)
from torchmark.runner.paired_workers import Failures
from torchmark.runner.spec import Match

T = TypeVar("T")

UNEXPECTED = "It returned something else than was asked for."


class LibraryStore:
    """Compiled C++ by the kind of nodes it is for: whoever needs it first has it compiled, the others wait for that."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._lock = threading.Lock()
        self._locks: dict[object, threading.Lock] = {}
        self._library_sets: dict[object, list[object]] = {}
        self._made: set[tuple[object, Case]] = set()

    def share_libraries(
        self, kind: object, cases: Iterable[Case], build: Callable[[Build], Built]
    ) -> tuple[object, ...]:
        """What the fleet has given for libraries that have all of these cases."""
        with self._lock:
            lock = self._locks.setdefault(kind, threading.Lock())
        with lock:
            sources = [case for case in cases if case.args.language == Language.CPP]
            missing = tuple(case for case in sources if (kind, case) not in self._made)
            if missing:
                self._library_sets.setdefault(kind, []).append(share_libraries(self._fleet, build(Build(missing))))
                self._made.update((kind, case) for case in missing)
            return tuple(self._library_sets.get(kind, ())) if sources else ()


class RemotePairs:
    """A node, alone. PlaceLost is raised once it is gone."""

    def __init__(
        self,
        fleet: Fleet,
        member: Member,
        library_store: LibraryStore,
        *,
        targets: tuple[Target, Target],
        together: bool,
        timeout_s: float,
    ) -> None:
        """`targets` are base and head; the rest is as for `PairedWorkers`."""
        self._fleet = fleet
        self._member = member
        self._library_store = library_store
        self._targets = targets
        self._together = together
        self._timeout_s = timeout_s
        self._is_closed = False
        self.layouts: tuple[int, ...] = ()
        self.match = Match(alike=True)

    def prepare(self, pairs: Sequence[tuple[Case, Case]]) -> tuple[PairedCase | Failures, ...]:
        """What both sides of each pair run. C++ comes compiled, if another node of its kind was faster."""
        kind = self._member.kind or self._member.listed.id
        cases = dict.fromkeys(case for pair in pairs for case in pair)
        library_sets = self._library_store.share_libraries(kind, cases, lambda request: self._ask(request, Built))
        base, head = self._targets
        asked = PreparePairs(
            pairs=tuple(pairs),
            base=base,
            head=head,
            together=self._together,
            timeout_s=self._timeout_s,
            library_sets=library_sets,
        )
        prepared: tuple[PairedCase | Failures, ...] = self._read(asked, tuple)
        return prepared

    def start(self, layouts: Iterable[int], note: Callable[[int], None] = lambda _: None) -> None:
        """Have more of them, one after the other so that it can be told how far it is."""
        for done, layout in enumerate(layouts, start=1):
            self._read(TimePairs("start", ((layout,),)), type(None))
            note(2 * done)

    def gauge(self, paired_case: PairedCase) -> RunTime | Failures:
        gauged: RunTime | Failures = self._read(TimePairs("gauge", (paired_case,)), (RunTime, tuple))
        return gauged

    def visit(self, layout: int, paired_case: PairedCase, pace: BlockPlan) -> Visit | Failures:
        visit: Visit | Failures = self._read(TimePairs("visit", (layout, paired_case, pace)), (Visit, tuple))
        return visit

    def close(self) -> None:
        if not self._is_closed and "_actor" in self.__dict__:
            self._fleet.close_actor(self._actor)
        self._is_closed = True

    @functools.cached_property
    def _actor(self) -> int:
        return self._fleet.open_actor(self._member.listed.id, alone=True)

    def _read(self, request: PreparePairs | TimePairs, expected: type | tuple[type, ...]) -> Any:
        reply = self._ask(request, PairsTimed)
        if not isinstance(reply.result, expected):
            raise PlaceLost(f"{self._member.name}: {UNEXPECTED}")
        self.layouts, self.match = reply.layouts, reply.match
        return reply.result

    def _ask(self, request: Request, expected: type[T]) -> T:
        if self._is_closed:
            raise PlaceLost(f"The node {self._member.name} was let go of.")
        reply = self._fleet.ask(self._actor, request, SILENCE_S)
        if isinstance(reply, (Lost, RequestRefused)):
            raise PlaceLost(f"{self._member.name}: {reply.message}")
        if not isinstance(reply, expected):
            raise PlaceLost(f"{self._member.name}: {UNEXPECTED}")
        return reply
