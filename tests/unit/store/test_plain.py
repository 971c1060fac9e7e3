from __future__ import annotations

import math

import pytest

from torchmark.errors import StoreError
from torchmark.model.plan import Metric, Sampling
from torchmark.model.times import Times
from torchmark.store.plain import dump, from_plain, parse, to_plain


def test_enums_are_told_by_name() -> None:
    assert to_plain(Sampling())["metrics"] == ["wall", "count"]
    assert from_plain(Metric, "wall", "m") is Metric.WALL


def test_a_field_with_a_default_may_be_missing_and_no_other() -> None:
    assert from_plain(Times, {"number_per_run": 1, "raw_times": [0.5]}, "t") == Times(1, (0.5,))
    with pytest.raises(StoreError, match=r"'t\.raw_times' is missing"):
        from_plain(Times, {"number_per_run": 1}, "t")


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(StoreError, match=r"t\.unit is not known"):
        from_plain(Times, {"number_per_run": 1, "raw_times": [], "unit": "ms"}, "t")


@pytest.mark.parametrize(("number", "blocks"), [(0, 1), (1, 0), (1, None), (None, 1), (-1, -1)])
def test_a_number_of_runs_and_of_blocks_belong_together(number: int | None, blocks: int | None) -> None:
    fixed = Sampling(number=5, blocks=7)
    assert from_plain(Sampling, to_plain(fixed), "s") == fixed
    with pytest.raises(StoreError, match=r"'s\.number' is not what it should be"):
        from_plain(Sampling, {**to_plain(fixed), "number": number, "blocks": blocks}, "s")


def test_sparse_leaves_out_defaults() -> None:
    assert to_plain(Times(1, (0.5,)), sparse=True) == {"number_per_run": 1, "raw_times": [0.5]}


def test_a_tuple_has_as_many_values_as_it_should() -> None:
    assert from_plain(tuple[str, str], ["a", "b"], "t") == ("a", "b")
    with pytest.raises(StoreError, match="'t' has 3 values; expected 2"):
        from_plain(tuple[str, str], ["a", "b", "c"], "t")


def test_numbers_that_no_float_can_hold_are_refused() -> None:
    with pytest.raises(StoreError, match="finite"):
        from_plain(Times, {"number_per_run": 1, "raw_times": [10**400]}, "t")


def test_what_is_not_finite_cannot_be_written() -> None:
    assert dump([0.1]) == "[0.1]"
    with pytest.raises(StoreError, match="not finite"):
        dump([math.nan])


@pytest.mark.parametrize("text", ["{", "", None, 5, "[" * 100_000])
def test_what_is_no_json_is_named(text: object) -> None:
    with pytest.raises(StoreError, match="'f'"):
        parse(text, "f")
