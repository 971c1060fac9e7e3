"""Nodes that time pairs, as the driver sees them: what it asks a node for, and losing that node."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from torchmark.errors import PlaceLost
from torchmark.model.job import BlockPlan, PairedCase, RunTime, Visit
from torchmark.model.plan import Case, Target
from torchmark.model.task import Language
from torchmark.runner.cluster.nodes import SILENCE_S, Member
from torchmark.runner.cluster.protocol import (
    Build,
    Built,
    Fleet,
    LayoutsStarted,
    LibrarySet,
    Lost,
    OneRunTimed,
    PairsPrepared,
    PreparePairs,
    Request,
    RequestRefused,
    StartLayouts,
    TimeOneRun,
    Visited,
    VisitPair,
)
from torchmark.runner.paired_workers import Failures
from torchmark.runner.spec import Match

T = TypeVar("T")


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
                built = build(Build(missing))
                contents = {name: self._fleet.share(content) for name, content in built.contents.items()}
                self._library_sets.setdefault(kind, []).append(self._fleet.share(LibrarySet(built.by_target, contents)))
                self._made.update((kind, case) for case in missing)
            return tuple(self._library_sets.get(kind, ())) if sources else ()


class RemotePairs:
    """A node, alone. PlaceLost is raised once it is gone."""

    def __init__(self, fleet: Fleet, member: Member, library_store: LibraryStore) -> None:
        self._fleet = fleet
        self._member = member
        self._library_store = library_store
        self._known: LayoutsStarted | None = None
        self._is_closed = False

    def prepare(
        self, pairs: Sequence[tuple[Case, Case]], base: Target, head: Target, *, together: bool, timeout_s: float
    ) -> tuple[PairedCase | Failures, ...]:
        """What both sides of each pair run, made on the node."""
        kind = self._member.kind or self._member.listed.id
        cases = dict.fromkeys(case for pair in pairs for case in pair)
        library_sets = self._library_store.share_libraries(kind, cases, lambda request: self._ask(request, Built))
        asked = PreparePairs(
            pairs=tuple(pairs), base=base, head=head, together=together, timeout_s=timeout_s, library_sets=library_sets
        )
        return self._ask(asked, PairsPrepared).paired_cases

    @property
    def layouts(self) -> tuple[int, ...]:
        """Numbers of the layouts that there are."""
        return self._known.layouts if self._known is not None else ()

    @property
    def match(self) -> Match:
        """Whether both sides are laid out alike."""
        return self._known.match if self._known is not None else Match(alike=True)

    def start(self, layouts: Iterable[int], note: Callable[[int], None] = lambda _: None) -> None:
        """Have more of them, one after the other so that it can be told how far it is."""
        for done, layout in enumerate(layouts, start=1):
            self._known = self._ask(StartLayouts((layout,)), LayoutsStarted)
            note(2 * done)

    def gauge(self, paired_case: PairedCase) -> RunTime | Failures:
        """How long a run takes on each side."""
        return self._ask(TimeOneRun(paired_case), OneRunTimed).result

    def visit(self, layout: int, paired_case: PairedCase, pace: BlockPlan) -> Visit | Failures:
        """Both sides in turns."""
        return self._ask(VisitPair(layout, paired_case, pace), Visited).result

    def close(self) -> None:
        """Let go of the node."""
        if not self._is_closed and "_actor" in self.__dict__:
            self._fleet.close_actor(self._actor)
        self._is_closed = True

    @functools.cached_property
    def _actor(self) -> int:
        return self._fleet.open_actor(self._member.listed.id, alone=True)

    def _ask(self, request: Request, expected: type[T]) -> T:
        if self._is_closed:
            raise PlaceLost(f"The node {self._member.name} was let go of.")
        reply = self._fleet.ask(self._actor, request, SILENCE_S)
        if isinstance(reply, (Lost, RequestRefused)):
            raise PlaceLost(f"{self._member.name}: {reply.message}")
        if not isinstance(reply, expected):
            raise PlaceLost(f"{self._member.name}: It returned something else than was asked for.")
        return reply
