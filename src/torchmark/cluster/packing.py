"""From orders to parcels: what is compared with each other goes together, and a parcel is some seconds of work."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from torchmark.cluster.board import Lot, Parcel, find_group
from torchmark.model.case import Case
from torchmark.model.plan import Metric, Order, Plan
from torchmark.model.task import Language
from torchmark.native.build import SNIPPETS_PER_UNIT
from torchmark.runner.preparing import list_snippets

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
