from __future__ import annotations

import pytest

from torchmark.analysis.summarise import doubt_count, estimate_cycles, spread
from torchmark.model.caveat import OtherInstructionSet, SeveralThreads, UnstableCount
from torchmark.model.environment import Environment


@pytest.mark.parametrize(("totals", "expected"), [([100], 0), ([100, 101, 99], 0.02), ([0, 0], 0), ([100, 110], 0.1)])
def test_the_spread_is_a_share_of_the_median(totals: list[int], expected: float) -> None:
    assert spread(totals) == expected


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
    return Environment(
        python="python",
        python_version="3",
        torch_version="2",
        cpu_capability=counted,
        native_capability=native,
        valgrind="valgrind-3",
    )


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
