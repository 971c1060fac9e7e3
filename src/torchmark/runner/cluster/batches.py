"""Batches of orders, the queue that they are taken from, and what is reported about them."""

from __future__ import annotations

import dataclasses
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from torchmark.model.outcome import Activity, Begun
from torchmark.model.plan import Case, Metric, Order, Plan
from torchmark.model.task import Language
from torchmark.native.build import SNIPPETS_PER_UNIT
from torchmark.runner.cluster.protocol import Build, Loss, MachineKind, Measure, NodeReply, Request
from torchmark.runner.lab import find_group, find_references
from torchmark.runner.prepare import list_snippets

T = TypeVar("T")

# What ends its actor so often is to blame for it. Nodes die of other things, and answers are lost by themselves: more
# of these are needed to be sure. What so many nodes cannot do, others cannot do either.
MOST_LOSSES = {Loss.ACTOR: 3, Loss.NODE: 5, Loss.OBJECT: 5, Loss.REFUSAL: 3}
LOST = {
    Loss.ACTOR: "the process that ran it ended {times}",
    Loss.NODE: "nodes were lost while it ran there: {nodes}",
    Loss.OBJECT: "its answer was lost {times}",
    Loss.REFUSAL: "nodes cannot do it: {nodes}",
}


@dataclasses.dataclass(eq=False)
class KindGroup:
    """Batches that nodes of one kind measure. `sources` are the cases whose C++ has to be compiled first."""

    sources: tuple[Case, ...] = ()
    kind: MachineKind | None = None
    """Which nodes measure it, once the first has begun."""
    library_set: object | None = None
    """What the fleet has given for its libraries, once they are there."""
    batches: list[Batch] = dataclasses.field(default_factory=list)
    """Those that wait until it is compiled."""
    undone: int = 0
    """How many results of it are still to come."""


@dataclasses.dataclass(eq=False)
class Batch:
    """What one actor does in one go: orders, or anything else that has an answer. Orders are none for what is built."""

    kind_group: KindGroup
    alone: bool
    """Whether it needs a node for itself."""
    request: Request | None = None
    orders: tuple[Order, ...] = ()
    cases: tuple[Case, ...] = ()
    losses: tuple[tuple[Loss, str], ...] = ()
    """What it was lost with so far, and on which nodes."""
    is_bound: bool = False
    """Whether its cases are compared with each other, so that all of them stay in one place."""
    is_reported: bool = False
    """Whether it is known that it has begun."""
    is_copied: bool = False
    """Whether a second one does it, too."""
    is_done: bool = False

    @property
    def is_build(self) -> bool:
        """Whether it is what others wait for, and has no result of its own."""
        return isinstance(self.request, Build)

    @property
    def is_hopeless(self) -> bool:
        """Whether it would only be lost again."""
        counts = Counter(loss for loss, _ in self.losses)
        return any(counts[loss] >= most for loss, most in MOST_LOSSES.items())

    def describe_losses(self, last: str) -> str:
        """Why it was given up; `last` is what was said the last time."""
        parts = []
        for loss, words in LOST.items():
            nodes = [node for what, node in self.losses if what is loss]
            times = "once" if len(nodes) == 1 else f"{len(nodes)} times"
            parts += [words.format(times=times, nodes=", ".join(nodes))] if nodes else []
        return f"It was given up: {'; '.join(parts)}. The last time: {last}"

    @property
    def size(self) -> int:
        return len(self.orders) or 1

    def write(self) -> Request:
        if self.request is not None:
            return self.request
        library_set = self.kind_group.library_set
        return Measure(self.orders, self.cases, () if library_set is None else (library_set,))

    def split(self) -> list[Batch]:
        """One for each case, so that what ends its actor does not take others with it again."""
        by_case = _group(self.orders, lambda order: order.case)
        if self.is_bound or len(by_case) < 2:
            return [self]
        references = find_references(self.cases)
        return [
            dataclasses.replace(self, orders=tuple(orders), cases=_add_references([case], references))
            for case, orders in by_case.items()
        ]


class BatchQueue:
    """All that is not done, by what it needs. Every method takes the same time, however much there is."""

    def __init__(self, batches: Iterable[Batch]) -> None:
        self._queues: dict[tuple[MachineKind | None, bool], deque[Batch]] = {}
        """By the kind of the nodes that measure the kind group, if any; and by whether one is needed alone."""
        self._to_build: OrderedDict[KindGroup, Batch] = OrderedDict()
        self._pending: Counter[bool] = Counter()
        self._building: Counter[MachineKind] = Counter()
        self._kind_groups: dict[MachineKind, dict[KindGroup, None]] = {}
        for batch in batches:
            self._pending[batch.alone] += batch.size
            batch.kind_group.undone += batch.size
            self._queue(batch)
            self._want_built(batch.kind_group)

    def count(self, alone: bool) -> int:
        return self._pending[alone]

    @property
    def is_empty(self) -> bool:
        return not any(self._pending.values())

    def take(self, kind: MachineKind, *, alone: bool, building: bool = True) -> Batch | None:
        """The next batch for a node of this kind: what others wait for first, then what such nodes have begun.

        Where others had better compile, it does no `building`.
        """
        if not alone and building and self._to_build:
            kind_group, build = self._to_build.popitem(last=False)
            self._bind(kind_group, kind)
            self._building[kind] += 1
            return build
        for key in ((kind, alone), (None, alone)):
            queue = self._queues.get(key)
            while queue:
                batch = queue.popleft()
                if batch.kind_group.kind in (None, kind):
                    self._bind(batch.kind_group, kind)
                    self._pending[alone] -= batch.size
                    return batch
                self._queue(batch)
        return None

    def has(self, kind: MachineKind, *, alone: bool, building: bool = True) -> bool:
        if not alone and building and self._to_build:
            return True
        return any(self._queues.get((one, alone)) for one in (kind, None))

    def is_building(self, kind: MachineKind) -> bool:
        """Whether more will come for such nodes when something is compiled."""
        return self._building[kind] > 0

    def give_back(self, batch: Batch) -> None:
        """It was lost on its way; somebody else has to do it, soon."""
        if batch.is_build:
            self._end_building(batch.kind_group)
            self._to_build[batch.kind_group] = batch
            self._to_build.move_to_end(batch.kind_group, last=False)
            return
        self._pending[batch.alone] += batch.size
        self._queue(batch, first=True)

    def add_libraries(self, kind_group: KindGroup, library_set: object) -> None:
        """The libraries of a kind group are there: what waited for them can be done."""
        self._end_building(kind_group)
        kind_group.library_set = library_set
        waiting, kind_group.batches = kind_group.batches, []
        for batch in waiting:
            self._queue(batch)

    def abandon(self, kind_group: KindGroup) -> list[Batch]:
        """It cannot be compiled: those that waited for that."""
        self._end_building(kind_group)
        waiting, kind_group.batches = kind_group.batches, []
        for batch in waiting:
            self._pending[batch.alone] -= batch.size
        return waiting

    def release(self, kind: MachineKind) -> None:
        """There are no nodes of this kind any more: others have to do what these have begun, from the start."""
        for kind_group in self._kind_groups.pop(kind, {}):
            kind_group.kind = kind_group.library_set = None
            self._want_built(kind_group)
        self._building.pop(kind, None)
        for alone in (False, True):
            for batch in self._queues.pop((kind, alone), ()):
                self._queue(batch)

    def finish(self, batch: Batch) -> None:
        batch.kind_group.undone -= batch.size
        if batch.kind_group.undone == 0:
            self._to_build.pop(batch.kind_group, None)
            self._unbind(batch.kind_group)

    def _want_built(self, kind_group: KindGroup) -> None:
        if kind_group.sources and kind_group not in self._to_build:
            self._to_build[kind_group] = Batch(kind_group, alone=False, request=Build(kind_group.sources))

    def _bind(self, kind_group: KindGroup, kind: MachineKind) -> None:
        self._unbind(kind_group)
        kind_group.kind = kind
        self._kind_groups.setdefault(kind, {})[kind_group] = None

    def _unbind(self, kind_group: KindGroup) -> None:
        if kind_group.kind is not None:
            self._kind_groups[kind_group.kind].pop(kind_group, None)

    def _end_building(self, kind_group: KindGroup) -> None:
        if kind_group.kind is not None:
            self._building[kind_group.kind] -= 1

    def _queue(self, batch: Batch, *, first: bool = False) -> None:
        kind_group = batch.kind_group
        waiting = self._queues.setdefault((kind_group.kind, batch.alone), deque())
        if kind_group.sources and kind_group.library_set is None:
            kind_group.batches.append(batch)
        elif first:
            waiting.appendleft(batch)
        else:
            waiting.append(batch)


@dataclasses.dataclass(frozen=True)
class Returned:
    """A batch has been answered."""

    batch: Batch
    reply: NodeReply


@dataclasses.dataclass(frozen=True)
class GivenUp:
    """A batch has no answer and will have none: whatever it runs on ends."""

    batch: Batch
    message: str


Report: TypeAlias = Begun | Activity | Returned | GivenUp

# What is lost with its node is done again: so it is little. What is sent takes a millisecond: so it is not too little.
ORDERS_PER_BATCH = 16


def pack(plan: Plan, orders: Sequence[Order], *, together: bool = False) -> list[Batch]:
    """Batches for all of these orders, in their order; a single one with `together`."""
    references = find_references(plan.cases)
    if together:
        cases = _add_references([order.case for order in orders], references)
        whole = _make_batch(KindGroup(_list_sources(cases)), orders, cases)
        return [dataclasses.replace(whole, is_bound=True)] if orders else []
    groups = _group(orders, lambda order: (find_group(order.case), order.metric, order.round))
    kind_groups = _make_kind_groups(orders, references)
    return [
        _make_batch(
            kind_groups[find_group(some[0].case)], some, _add_references([order.case for order in some], references)
        )
        for group in groups.values()
        for some in _cut(group)
    ]


def _make_batch(kind_group: KindGroup, orders: Sequence[Order], cases: tuple[Case, ...]) -> Batch:
    alone = any(order.metric is Metric.WALL for order in orders)
    return Batch(kind_group, alone=alone, orders=tuple(orders), cases=cases)


def _cut(orders: Iterable[Order]) -> Iterator[tuple[Order, ...]]:
    """Pieces that are not too large. Orders of one case stay together: both sides of a pair are in one place."""
    piece: list[Order] = []
    for own in _group(orders, lambda order: order.case).values():
        if piece and len(piece) + len(own) > ORDERS_PER_BATCH:
            yield tuple(piece)
            piece = []
        piece += own
    if piece:
        yield tuple(piece)


def _group(orders: Iterable[Order], key: Callable[[Order], T]) -> dict[T, list[Order]]:
    groups: dict[T, list[Order]] = {}
    for order in orders:
        groups.setdefault(key(order), []).append(order)
    return groups


def _add_references(cases: Sequence[Case], references: Mapping[Hashable, Case]) -> tuple[Case, ...]:
    """Cases, each once, and what they are held to before them."""
    needed = (references[find_group(case)] for case in cases if case.check is not None)
    return tuple(dict.fromkeys((*needed, *cases)))


def _make_kind_groups(orders: Sequence[Order], references: Mapping[Hashable, Case]) -> dict[Hashable, KindGroup]:
    """A kind group for each group of variants; those with C++ share one, as many as are compiled together."""
    kind_groups: dict[Hashable, KindGroup] = {}
    pending_groups: list[Hashable] = []
    sources: list[Case] = []
    for group, some in _group(orders, lambda order: find_group(order.case)).items():
        own = _list_sources(_add_references([order.case for order in some], references))
        if not own:
            kind_groups[group] = KindGroup()
            continue
        if pending_groups and _count_snippets(sources) + _count_snippets(own) > SNIPPETS_PER_UNIT:
            kind_groups |= dict.fromkeys(pending_groups, KindGroup(tuple(sources)))
            pending_groups, sources = [], []
        pending_groups.append(group)
        sources += own
    return kind_groups | dict.fromkeys(pending_groups, KindGroup(tuple(sources)))


def _list_sources(cases: Iterable[Case]) -> tuple[Case, ...]:
    return tuple(case for case in cases if case.args.language == Language.CPP)


def _count_snippets(cases: Iterable[Case]) -> int:
    return sum(1 for case in cases for _ in list_snippets(case))
