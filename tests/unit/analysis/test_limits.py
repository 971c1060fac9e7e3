from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sample_runs import ADD
from torchmark.analysis.gate import find_limit, parse_fail_on, parse_limit
from torchmark.errors import UsageError
from torchmark.model.gate import FailOn, Limit, Witness
from torchmark.report.text.gate import spell_limit

IR = Witness.INSTRUCTIONS


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("Ir:0.3%", Limit(IR, share=0.003)),
        ("ir:0", Limit(IR)),
        ("Ir:50", Limit(IR, amount=50)),
        (" Ir:.5 %@nn/* ", Limit(IR, share=0.005, pattern="nn/*")),
        ("time:2%@training/*", Limit(Witness.TIME, share=0.02, pattern="training/*")),
        ("allocations:1@a@b", Limit(Witness.ALLOCATIONS, amount=1, pattern="a@b")),
    ],
)
def test_a_limit_has_a_witness_a_size_and_cases(text: str, limit: Limit) -> None:
    assert parse_limit(text) == limit


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Ir",
        "Ir:",
        "Ir:%",
        "Ir:-1",
        "Ir:1e3",
        "Ir:nan",
        "cycles:5",
        "time:3",
        "time:0",
        "Ir:5@",
        "Ir:5%%",
        "9" * 400,
    ],
)
def test_nonsense_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"Ir:0\.3%"):
        parse_limit(text)
    with pytest.raises(UsageError):
        parse_limit(f"Ir:{'9' * 400}")


@given(st.sampled_from(Witness), st.integers(0, 10**6), st.booleans(), st.none() | st.just("nn/*"))
def test_a_limit_is_read_back_as_it_is_spelt(witness: Witness, size: int, percent: bool, pattern: str | None) -> None:
    share = percent or witness is Witness.TIME
    limit = Limit(witness, share=size / 1000 / 100, pattern=pattern) if share else Limit(witness, None, size, pattern)
    found = parse_limit(spell_limit(limit))
    assert dataclasses.replace(found, share=None) == dataclasses.replace(limit, share=None)
    assert found.share == (pytest.approx(limit.share) if share else None)


def test_a_pattern_goes_before_none_and_the_last_one_wins() -> None:
    limits = [parse_limit(text) for text in ("Ir:1@Pointwise/*", "Ir:2@*/add", "Ir:3", "Ir:4@nn/*", "time:5%")]
    assert find_limit(limits, IR, ADD) == limits[1]
    assert find_limit(limits[2:], IR, ADD) == limits[2]
    assert find_limit(limits[3:], IR, ADD) is None
    assert find_limit(limits, Witness.ALLOCATIONS, ADD) is None


def test_what_stops_is_told_by_commas() -> None:
    assert parse_fail_on("Slower,missing") == {FailOn.SLOWER, FailOn.MISSING}
    with pytest.raises(UsageError, match="slower, undecided, failed, missing"):
        parse_fail_on("slower,worse")
    with pytest.raises(UsageError):
        parse_fail_on("")
