from __future__ import annotations

import dataclasses

import pytest

from tests.stored_runs import INFO
from torchmark.errors import UsageError
from torchmark.store.runs import find_run

NEWEST, MIDDLE, OLDEST = RUNS = tuple(
    dataclasses.replace(INFO, id=prefix.ljust(32, "0"), name=name)
    for prefix, name in (("abcd3", "before"), ("abcd2", "after"), ("12345", "before"))
)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("@", NEWEST),
        ("@0", NEWEST),
        ("@2", OLDEST),
        ("before", NEWEST),
        ("after", MIDDLE),
        ("1234", OLDEST),
        ("ABCD2", MIDDLE),
        (OLDEST.id, OLDEST),
    ],
)
def test_a_run_is_found_by_age_name_or_the_beginning_of_its_id(reference: str, expected: object) -> None:
    assert find_run(RUNS, reference) is expected


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("@3", "the oldest run is @2"),
        ("befor", "Did you mean 'before'"),
        ("123", r"There is 'before' \(abcd3000\), 'after'"),
        ("abcd", "several runs"),
        ("", "There is no run ''"),
        ("@x", "There is no run '@x'"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(reference: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        find_run(RUNS, reference)


def test_a_name_goes_before_the_beginning_of_an_id() -> None:
    named = dataclasses.replace(INFO, id="f" * 32, name="abcd3")
    assert find_run((*RUNS, named), "abcd3") is named


def test_an_empty_store_says_so() -> None:
    with pytest.raises(UsageError, match="no runs in the store yet"):
        find_run((), "@")
