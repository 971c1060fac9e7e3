"""Orders packed into parcels, the order in which parcels are given out, and the events told about them."""

from __future__ import annotations

import dataclasses
from collections import Counter, OrderedDict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from torchmark.model.case import Case
from torchmark.model.outcome import ActivityKind
from torchmark.model.plan import Metric, Order, Plan
from torchmark.model.task import Language
from torchmark.native.build import SNIPPETS_PER_UNIT
from torchmark.runner.cluster.protocol import Body, Build, MachineKind, Measure, Reply
from torchmark.runner.prepare import list_snippets


def find_group(case: Case) -> Hashable:
    """What is the same for cases that are held to compute the same."""
    return case.suite, case.label, case.autolabels.autograd


@dataclasses.dataclass(eq=False)
class Lot:
    """What stays together. `sources` are the cases whose C++ has to be compiled first."""

    sources: tuple[Case, ...] = ()
    kind: MachineKind | None = None
    """Which nodes measure it, once the first has begun."""
    outfit: object | None = None
    """What the fleet has given for its libraries, once they are there."""
    parcels: list[Parcel] = dataclasses.field(default_factory=list)
    """Those that wait until it is compiled."""
    undone: int = 0
    """How many results of it are still to come."""

    @property
    def is_ready(self) -> bool:
        """Whether nothing is left to compile."""
        return not self.sources or self.outfit is not None


@dataclasses.dataclass(eq=False)
class Parcel:
    """What one post does in one go: orders, or anything else that has an answer. Orders are none for what is built."""

    lot: Lot
    alone: bool
    """Whether it needs a node for itself."""
    body: Body | None = None
    orders: tuple[Order, ...] = ()
    cases: tuple[Case, ...] = ()
    lost_posts: int = 0
    lost_nodes: tuple[str, ...] = ()
    lost_answers: int = 0
    refusals: tuple[str, ...] = ()
    """Which nodes said that they cannot do it."""
    is_bound: bool = False
    """Whether its cases are compared with each other, so that all of them stay in one place."""
    is_told: bool = False
    """Whether it is known that it has begun."""
    is_copied: bool = False
    """Whether a second one does it, too."""
    is_done: bool = False

    @property
    def is_build(self) -> bool:
        """Whether it is what others wait for, and has no result of its own."""
        return isinstance(self.body, Build)

    @property
    def size(self) -> int:
        """How many results it has."""
        return len(self.orders) or 1

    def write(self) -> Body:
        """What is to be sent."""
        if self.body is not None:
            return self.body
        return Measure(self.orders, self.cases, () if self.lot.outfit is None else (self.lot.outfit,))

    def split(self) -> list[Parcel]:
        """One for each case, so that what ends its post does not take others with it again."""
        by_case: dict[Case, list[Order]] = {}
        for order in self.orders:
            by_case.setdefault(order.case, []).append(order)
        if self.is_bound or len(by_case) < 2:
            return [self]
        return [
            dataclasses.replace(self, orders=tuple(orders), cases=self._find_cases(case))
            for case, orders in by_case.items()
        ]

    def _find_cases(self, case: Case) -> tuple[Case, ...]:
        """A case, and what it is held to before it: the first of its group that can be checked."""
        group = find_group(case) if case.check is not None else None
        witnesses = [one for one in self.cases if one.check is not None and find_group(one) == group]
        return tuple(dict.fromkeys((*witnesses[:1], case)))


class Board:
    """All that is not done, by what it needs. Every method takes the same time, however much there is."""

    def __init__(self, parcels: Iterable[Parcel]) -> None:
        self._free: dict[bool, deque[Parcel]] = {False: deque(), True: deque()}
        self._bound: dict[tuple[MachineKind, bool], deque[Parcel]] = {}
        self._to_build: OrderedDict[Lot, Parcel] = OrderedDict()
        self._pending: Counter[bool] = Counter()
        self._building: Counter[MachineKind] = Counter()
        self._lots: dict[MachineKind, dict[Lot, None]] = {}
        for parcel in parcels:
            self._pending[parcel.alone] += parcel.size
            parcel.lot.undone += parcel.size
            if parcel.lot.is_ready:
                self._free[parcel.alone].append(parcel)
            else:
                parcel.lot.parcels.append(parcel)
                self._want_built(parcel.lot)

    def count(self, alone: bool) -> int:
        """How many results have not been asked for yet."""
        return self._pending[alone]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to send."""
        return not any(self._pending.values())

    def take(self, kind: MachineKind, *, alone: bool, building: bool = True) -> Parcel | None:
        """The next parcel for a node of this kind: what others wait for first, then what such nodes have begun.

        Where others had better compile, it does no `building`.
        """
        if not alone and building and self._to_build:
            lot, build = self._to_build.popitem(last=False)
            self._bind(lot, kind)
            self._building[kind] += 1
            return build
        queue = self._bound.get((kind, alone))
        if queue:
            return self._hand_out(queue.popleft())
        free = self._free[alone]
        while free:
            parcel = free.popleft()
            if parcel.lot.kind in (None, kind):
                self._bind(parcel.lot, kind)
                return self._hand_out(parcel)
            self._queue(parcel)
        return None

    def has(self, kind: MachineKind, *, alone: bool, building: bool = True) -> bool:
        """Whether there may be something to take."""
        if not alone and building and self._to_build:
            return True
        return bool(self._bound.get((kind, alone)) or self._free[alone])

    def is_building(self, kind: MachineKind) -> bool:
        """Whether more will come for such nodes when something is compiled."""
        return self._building[kind] > 0

    def give_back(self, parcel: Parcel) -> None:
        """It was lost on its way; somebody else has to do it, soon."""
        if parcel.is_build:
            self._end_building(parcel.lot)
            self._to_build[parcel.lot] = parcel
            self._to_build.move_to_end(parcel.lot, last=False)
            return
        self._pending[parcel.alone] += parcel.size
        if not parcel.lot.is_ready:
            parcel.lot.parcels.append(parcel)
        elif parcel.lot.kind is None:
            self._free[parcel.alone].appendleft(parcel)
        else:
            self._bound.setdefault((parcel.lot.kind, parcel.alone), deque()).appendleft(parcel)

    def equip(self, lot: Lot, outfit: object) -> None:
        """The libraries of a lot are there: what waited for them can be done."""
        self._end_building(lot)
        lot.outfit = outfit
        waiting, lot.parcels = lot.parcels, []
        for parcel in waiting:
            self._queue(parcel)

    def abandon(self, lot: Lot) -> list[Parcel]:
        """It cannot be compiled: those that waited for that."""
        self._end_building(lot)
        waiting, lot.parcels = lot.parcels, []
        for parcel in waiting:
            self._pending[parcel.alone] -= parcel.size
        return waiting

    def release(self, kind: MachineKind) -> None:
        """There are no nodes of this kind any more: others have to do what these have begun, from the start."""
        for lot in self._lots.pop(kind, {}):
            lot.kind = lot.outfit = None
            if lot.sources:
                self._want_built(lot)
        self._building.pop(kind, None)
        for alone in (False, True):
            for parcel in self._bound.pop((kind, alone), ()):
                if parcel.lot.is_ready:
                    self._free[alone].append(parcel)
                else:
                    parcel.lot.parcels.append(parcel)

    def finish(self, parcel: Parcel) -> None:
        """Its results are there."""
        parcel.lot.undone -= parcel.size
        if parcel.lot.undone == 0:
            self._to_build.pop(parcel.lot, None)
            self._unbind(parcel.lot)

    def _want_built(self, lot: Lot) -> None:
        if lot not in self._to_build:
            self._to_build[lot] = Parcel(lot, alone=False, body=Build(lot.sources))

    def _bind(self, lot: Lot, kind: MachineKind) -> None:
        self._unbind(lot)
        lot.kind = kind
        self._lots.setdefault(kind, {})[lot] = None

    def _unbind(self, lot: Lot) -> None:
        if lot.kind is not None:
            self._lots[lot.kind].pop(lot, None)

    def _end_building(self, lot: Lot) -> None:
        if lot.kind is not None:
            self._building[lot.kind] -= 1

    def _queue(self, parcel: Parcel) -> None:
        assert parcel.lot.kind is not None
        self._bound.setdefault((parcel.lot.kind, parcel.alone), deque()).append(parcel)

    def _hand_out(self, parcel: Parcel) -> Parcel:
        self._pending[parcel.alone] -= parcel.size
        return parcel


@dataclasses.dataclass(frozen=True)
class Sent:
    """A parcel is under way for the first time."""

    parcel: Parcel


@dataclasses.dataclass(frozen=True)
class Returned:
    """A parcel has been answered."""

    parcel: Parcel
    reply: Reply


@dataclasses.dataclass(frozen=True)
class GivenUp:
    """A parcel has no answer and will have none: whatever it runs on ends."""

    parcel: Parcel
    message: str


@dataclasses.dataclass(frozen=True)
class SetAside:
    """A node is not used."""

    node: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Done:
    """Something that had to be done besides, and for how long."""

    kind: ActivityKind
    seconds: float
    size: int = 0


Told: TypeAlias = Sent | Returned | GivenUp | SetAside | Done

# What is lost with its node is done again: so it is little. What is sent takes a millisecond: so it is not too little.
ORDERS_PER_PARCEL = 16


def pack(plan: Plan, orders: Sequence[Order], *, together: bool = False) -> list[Parcel]:
    """Parcels for all of these orders, in their order; a single one with `together`."""
    witnesses = _find_witnesses(plan)
    if together:
        cases = _add_witnesses((order.case for order in orders), witnesses)
        whole = _make_parcel(Lot(_list_sources(cases)), orders, cases)
        return [dataclasses.replace(whole, is_bound=True)] if orders else []
    groups: dict[Hashable, list[Order]] = {}
    for order in orders:
        groups.setdefault((find_group(order.case), order.metric, order.round), []).append(order)
    lots = _make_lots(orders, witnesses)
    return [
        _make_parcel(lots[find_group(some[0].case)], some, _add_witnesses((order.case for order in some), witnesses))
        for group in groups.values()
        for some in _cut(group)
    ]


def _make_parcel(lot: Lot, orders: Sequence[Order], cases: tuple[Case, ...]) -> Parcel:
    alone = any(order.metric is Metric.WALL for order in orders)
    return Parcel(lot, alone=alone, orders=tuple(orders), cases=cases)


def _cut(orders: Iterable[Order]) -> Iterator[tuple[Order, ...]]:
    """Pieces that are not too large. Orders of one case stay together: both sides of a pair are in one place."""
    by_case: dict[Case, list[Order]] = {}
    for order in orders:
        by_case.setdefault(order.case, []).append(order)
    piece: list[Order] = []
    for own in by_case.values():
        if piece and len(piece) + len(own) > ORDERS_PER_PARCEL:
            yield tuple(piece)
            piece = []
        piece += own
    if piece:
        yield tuple(piece)


def _find_witnesses(plan: Plan) -> dict[Hashable, Case]:
    """What the others of a group are held to: the first that can be checked."""
    found: dict[Hashable, Case] = {}
    for case in plan.cases:
        if case.check is not None:
            found.setdefault(find_group(case), case)
    return found


def _add_witnesses(cases: Iterable[Case], witnesses: Mapping[Hashable, Case]) -> tuple[Case, ...]:
    """Cases, each once, and what they are held to before them."""
    cases = tuple(cases)
    needed = (witnesses[find_group(case)] for case in cases if case.check is not None)
    return tuple(dict.fromkeys((*needed, *cases)))


def _make_lots(orders: Sequence[Order], witnesses: Mapping[Hashable, Case]) -> dict[Hashable, Lot]:
    """A lot for each group; those with C++ share one, as many as are compiled together."""
    groups: dict[Hashable, dict[Case, None]] = {}
    for order in orders:
        groups.setdefault(find_group(order.case), {})[order.case] = None
    lots: dict[Hashable, Lot] = {}
    batch: list[Hashable] = []
    sources: list[Case] = []
    for group, cases in groups.items():
        own = _list_sources(_add_witnesses(cases, witnesses))
        if not own:
            lots[group] = Lot()
            continue
        if batch and _count_snippets(sources) + _count_snippets(own) > SNIPPETS_PER_UNIT:
            lots |= dict.fromkeys(batch, Lot(tuple(sources)))
            batch, sources = [], []
        batch.append(group)
        sources += own
    return lots | dict.fromkeys(batch, Lot(tuple(sources)))


def _list_sources(cases: Iterable[Case]) -> tuple[Case, ...]:
    return tuple(case for case in cases if case.args.language == Language.CPP)


def _count_snippets(cases: Iterable[Case]) -> int:
    return sum(1 for case in cases for _ in list_snippets(case))
