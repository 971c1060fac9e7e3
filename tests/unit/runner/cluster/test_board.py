"""Orders become parcels: nothing is missing, nothing is there twice, and what is compared goes together."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fleets import COUNTING, make_case
from torchmark.model.plan import Metric, Order, Plan, Sampling, Target
from torchmark.model.task import Language
from torchmark.runner.cluster import board
from torchmark.runner.cluster.board import ORDERS_PER_PARCEL, Board, Lot, find_group, pack
from torchmark.runner.cluster.protocol import MachineKind, Measure

TWO = (Target("base"), Target("head"))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    cases = tuple(
        make_case(
            f"{number}",
            draw(st.sampled_from([Language.PYTHON, Language.CPP])),
            f"g{draw(st.integers(0, 3))}",
            check=draw(st.booleans()),
        )
        for number in range(draw(st.integers(0, 40)))
    )
    metrics = draw(st.sampled_from([(Metric.WALL,), (Metric.COUNT,), (Metric.WALL, Metric.COUNT)]))
    return Plan(cases, draw(st.sampled_from([TWO, TWO[:1]])), Sampling(metrics, repeat=draw(st.integers(1, 2))))


@given(plan=plans(), together=st.booleans(), data=st.data())
def test_every_order_is_in_one_parcel_with_all_that_it_needs(plan: Plan, together: bool, data: st.DataObject) -> None:
    orders = [order for order in plan.orders if data.draw(st.booleans())] if len(plan.orders) < 40 else plan.orders
    parcels = pack(plan, orders, together=together)
    assert Counter(order for parcel in parcels for order in parcel.orders) == Counter(orders)
    firsts = {find_group(case): case for case in reversed(plan.cases) if case.check is not None}
    for parcel in parcels:
        assert parcel.alone == any(order.metric is Metric.WALL for order in parcel.orders)
        cases = [order.case for order in parcel.orders]
        needed = {firsts[find_group(case)] for case in cases if case.check is not None}
        assert set(parcel.cases) == {*cases, *needed}
        assert len(parcel.cases) == len(set(parcel.cases))
        native = {case for case in parcel.cases if case.args.language == Language.CPP}
        assert native <= set(parcel.lot.sources)
    if together:
        assert len(parcels) == bool(orders)
        return
    for parcel in parcels:
        assert len({(find_group(order.case), order.metric, order.round) for order in parcel.orders}) == 1
        assert len(parcel.orders) <= max(ORDERS_PER_PARCEL, len(plan.targets))
    homes = {(order.case, order.metric, order.round): parcel for parcel in parcels for order in parcel.orders}
    assert all(homes[order.case, order.metric, order.round] is parcel for parcel in parcels for order in parcel.orders)
    lots: dict[object, Lot] = {}
    assert all(lots.setdefault(find_group(one.orders[0].case), one.lot) is one.lot for one in parcels)


def test_what_others_are_held_to_comes_first() -> None:
    first, second = (make_case(name, group="g", check=True) for name in "ab")
    plan = Plan((first, second), sampling=COUNTING)
    (parcel,) = pack(plan, [Order(second, Target(), Metric.COUNT)])
    assert parcel.cases == (first, second)


def test_lots_with_native_code_are_as_large_as_what_is_compiled_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "SNIPPETS_PER_UNIT", 4)
    # With a check there are two snippets a case.
    cases = [make_case(str(n), Language.CPP, f"g{n}", check=n < 3) for n in range(6)]
    plan = Plan((*cases, make_case("python")), sampling=COUNTING)
    lots = list(dict.fromkeys(parcel.lot for parcel in pack(plan, plan.orders)))
    assert [[case.args.stmt for case in lot.sources] for lot in lots] == [["0", "1"], ["2", "3", "4"], ["5"], []]


# --- the board ---------------------------------------------------------------------------------------

A, B = MachineKind(("a",)), MachineKind(("b",))


def make_board(names: str, lot: Lot | None = None) -> Board:
    plan = Plan(tuple(make_case(name) for name in names), sampling=COUNTING)
    parcels = pack(plan, plan.orders)
    for parcel in parcels:
        parcel.lot = lot or parcel.lot
    return Board(parcels)


def take_name(board: Board, kind: MachineKind) -> str | None:
    parcel = board.take(kind, alone=False)
    return parcel.orders[0].case.args.stmt if parcel is not None else None


def test_parcels_are_taken_in_their_order_and_what_comes_back_first() -> None:
    board = make_board("abc")
    parcel = board.take(A, alone=False)
    assert parcel is not None
    assert take_name(board, A) == "b"
    board.give_back(parcel)
    assert [take_name(board, A) for _ in range(3)] == ["a", "c", None]


def test_what_another_kind_has_begun_is_left_to_it() -> None:
    board = make_board("ab", Lot())
    assert take_name(board, A) == "a"
    assert board.has(B, alone=False)
    assert take_name(board, B) is None
    assert not board.has(B, alone=False)
    assert not board.is_empty
    assert take_name(board, A) == "b"
    assert board.is_empty


def test_what_a_kind_has_begun_is_for_all_when_it_is_gone() -> None:
    board = make_board("ab", Lot())
    assert take_name(board, A) == "a"
    assert take_name(board, B) is None
    board.release(A)
    assert take_name(board, B) == "b"


def test_nothing_that_needs_libraries_is_taken_before_these_are_there() -> None:
    lot = Lot((make_case("native", Language.CPP),))
    board = make_board("ab", lot)
    build = board.take(A, alone=False)
    assert build is not None
    assert build.is_build
    assert board.is_building(A)
    assert not board.is_building(B)
    assert board.take(A, alone=False) is None
    assert board.count(alone=False) == 2
    board.equip(lot, "libraries")
    assert not board.is_building(A)
    parcel = board.take(A, alone=False)
    assert parcel is not None
    body = parcel.write()
    assert isinstance(body, Measure)
    assert body.outfits == ("libraries",)
    # All nodes of the kind are gone: it has to be compiled again, and those that come back wait for that.
    board.give_back(parcel)
    board.release(A)
    again = board.take(B, alone=False)
    assert again is not None
    assert again.is_build
    assert board.take(B, alone=False) is None
    board.equip(lot, "other libraries")
    assert {take_name(board, B), take_name(board, B)} == {"a", "b"}
    assert board.is_empty


def test_what_cannot_be_compiled_leaves_nothing_behind() -> None:
    lot = Lot((make_case("native", Language.CPP),))
    board = make_board("ab", lot)
    build = board.take(A, alone=False)
    assert build is not None
    board.release(A)
    for parcel in board.abandon(build.lot):
        board.finish(parcel)
    assert board.is_empty
    assert board.take(B, alone=False) is None


def test_what_is_finished_elsewhere_is_not_compiled_any_more() -> None:
    lot = Lot((make_case("native", Language.CPP),))
    board = make_board("a", lot)
    board.take(A, alone=False)
    board.equip(lot, "libraries")
    parcel = board.take(A, alone=False)
    assert parcel is not None
    board.release(A)
    assert board.has(B, alone=False)
    board.finish(parcel)
    assert not board.has(B, alone=False)
