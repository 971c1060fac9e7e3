from __future__ import annotations

import math
from typing import Any

import pytest

from torchmark.errors import StoreError
from torchmark.store.plain import check_schema, take, take_times


@pytest.mark.parametrize(
    ("value", "kind"),
    [("x", str), (2**63 - 1, int), (5, int), (5.5, float), (5, float), ({}, dict), ([], list), ("", str)],
)
def test_a_field_of_its_kind_is_taken(value: Any, kind: type) -> None:
    assert take({"f": value}, "f", kind) == value


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (2**63, int),
        (-(2**63), int),
        (10**400, int),
        (10**400, float),
        (5, str),
        ("5", int),
        (5.0, int),
        (True, int),
        (False, float),
        (math.inf, float),
        (None, str),
        ([], dict),
    ],
)
def test_a_field_of_another_kind_is_named(value: Any, kind: type) -> None:
    with pytest.raises(StoreError, match="The field 'f' is"):
        take({"f": value}, "f", kind)


def test_a_number_that_python_does_not_write_out_is_named_too() -> None:
    with pytest.raises(StoreError, match="The field 'f' is a huge number; expected a whole number of at most 63 bits"):
        take({"f": 1 << 20_000}, "f", int)


def test_none_is_taken_only_where_it_may_be() -> None:
    assert take({"f": None}, "f", str, optional=True) is None


def test_times_are_finite_numbers() -> None:
    assert take_times({"t": [1, 2.5]}, "t") == [1.0, 2.5]
    for wrong in (None, "1", math.nan, True):
        with pytest.raises(StoreError, match="The field 't' contains"):
            take_times({"t": [1.0, wrong]}, "t")


def test_schema_and_version() -> None:
    check_schema({"schema": "s", "schema_version": 2}, "s", 2)
    with pytest.raises(StoreError, match="version 3; this torchmark reads version 2"):
        check_schema({"schema": "s", "schema_version": 3}, "s", 2)
