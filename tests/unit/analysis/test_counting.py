from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.analysis.counting import doubt_count, estimate_cycles, find_noisy, middle, spread
from torchmark.model.caveat import OtherInstructionSet, SeveralThreads, UnstableCount
from torchmark.model.costs import Costs, Function, Profile
from torchmark.model.environment import Environment

F, G = Function("a.c", "f"), Function("a.c", "g")


def profile(**costs: int) -> Profile:
    exclusive: dict[Function, Costs] = {Function("a.c", name): (cost,) for name, cost in costs.items()}
    return Profile(("Ir",), exclusive, exclusive, {})


@pytest.mark.parametrize(
    ("totals", "expected"),
    [([5], 0), ([5, 3], 1), ([3, 5], 0), ([30, 10, 20], 2), ([1, 4, 2, 3], 2), ([7, 7, 7], 1)],
)
def test_the_middle_is_the_median_or_the_lower_of_two(totals: list[int], expected: int) -> None:
    assert middle(totals) == expected


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=9))
def test_as_many_lie_below_the_middle_as_above(totals: list[int]) -> None:
    chosen = totals[middle(totals)]
    assert sum(t < chosen for t in totals) <= len(totals) / 2
    assert sum(t > chosen for t in totals) <= len(totals) / 2


@pytest.mark.parametrize(("totals", "expected"), [([100], 0), ([100, 101, 99], 0.02), ([0, 0], 0), ([100, 110], 0.1)])
def test_the_spread_is_a_share_of_the_median(totals: list[int], expected: float) -> None:
    assert spread(totals) == expected


def test_noisy_is_what_varies_or_is_not_always_there() -> None:
    layouts = [profile(f=10, g=5), profile(f=11, g=5), profile(f=10, g=5, h=1)]
    assert find_noisy(layouts) == {"a.c:f", "a.c:h"}
    assert find_noisy(layouts[:1]) == frozenset()


def test_cycles_weigh_misses() -> None:
    events = {
        "Ir": 1000,
        "Dr": 400,
        "Bcm": 1,
        "Bim": 1,
        "I1mr": 1,
        "D1mr": 1,
        "D1mw": 1,
        "ILmr": 1,
        "DLmr": 1,
        "DLmw": 1,
    }
    assert estimate_cycles(events) == 1000 + 5 * 10 + 3 * 100
    assert estimate_cycles({"Ir": 1000}) is None
    assert estimate_cycles({}) is None


def environment(counted: str | None, native: str | None) -> Environment:
    return Environment("python", "3", "2", counted, native, valgrind="valgrind-3")


@pytest.mark.parametrize(
    ("totals", "threads", "where", "expected"),
    [
        ([1000, 1010, 1000], 1, None, ()),
        ([1000, 1011, 1000], 1, None, (UnstableCount(0.011),)),
        ([1000], 2, None, (SeveralThreads(2),)),
        ([], 2, None, ()),
        ([], 1, environment("AVX2", "AVX512"), (OtherInstructionSet("AVX512", "AVX2"),)),
        ([], 1, environment("AVX2", "AVX2"), ()),
        ([], 1, environment("AVX2", None), ()),
    ],
)
def test_doubts(totals: list[int], threads: int, where: Environment | None, expected: tuple[object, ...]) -> None:
    assert doubt_count(totals, threads, where) == expected
