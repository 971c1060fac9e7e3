from __future__ import annotations

import copy
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.random_runs import profiles
from tests.stored_runs import PROFILE
from torchmark.callgrind.profiles import parse_profile
from torchmark.errors import StoreError
from torchmark.model.costs import Profile
from torchmark.store import documents as module
from torchmark.store.documents import pack, plain_profile, read_profile, unpack
from torchmark.store.plain import hash_text

COSTS = st.integers(0, 1000)
NAMES = st.sampled_from("abcd")


@given(profiles())
@settings(max_examples=50)
def test_any_profile_comes_back_as_it_was(profile: Profile) -> None:
    assert read_profile(unpack(*pack(plain_profile(profile)))) == profile


def write_callgrind(functions: dict[str, int], calls: dict[tuple[str, str], tuple[int, int]]) -> Iterator[str]:
    yield "events: Ir\n"
    for name, cost in functions.items():
        yield f"fl=x.c\nfn={name}\n1 {cost}\n"
        for (caller, callee), (times, inclusive) in calls.items():
            if caller == name:
                yield f"cfn={callee}\ncalls={times} 1\n1 {inclusive}\n"


@given(st.dictionaries(NAMES, COSTS), st.dictionaries(st.tuples(NAMES, NAMES), st.tuples(COSTS, COSTS)))
@settings(max_examples=50)
def test_inclusive_costs_follow_from_the_others_just_as_for_the_parser(
    functions: dict[str, int], calls: dict[tuple[str, str], tuple[int, int]]
) -> None:
    text = "".join(write_callgrind(functions, calls))
    profile = parse_profile(text.splitlines(keepends=True))
    plain = plain_profile(profile)
    assert plain["inclusive"] is None
    assert read_profile(plain) == profile


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("events", [1]),
        ("events", ["Xx", "Dr"]),
        ("events", ["Ir", "Ir"]),
        ("exclusive", [[10**400, 1]]),
        ("exclusive", [[-1, 1]]),
        ("calls", [[0, 1, -1, 1, 1]]),
        ("trigger", 1),
        ("texts", ["a", None]),
        ("functions", [[0, 1, 99]]),
        ("functions", [[0, 1]]),
        ("functions", [[0, 1, -1]]),
        ("exclusive", [[1, 1]] * 9),
        ("exclusive", [[1]]),
        ("exclusive", [[1.5, 2]]),
        ("calls", [[0, 9, 1, 1, 1]]),
        ("calls", [[0, 1, 1]]),
        ("inclusive", [[9, 1, 1]]),
    ],
)
def test_a_profile_that_does_not_fit_together_is_refused(name: str, value: Any) -> None:
    plain = copy.deepcopy(plain_profile(PROFILE))
    assert read_profile(plain) == PROFILE
    with pytest.raises(StoreError, match=name):
        read_profile({**plain, name: value})


def test_calls_of_functions_without_costs_need_inclusive_costs() -> None:
    with pytest.raises(StoreError, match="calls"):
        read_profile({**plain_profile(PROFILE), "exclusive": []})


def test_what_claims_to_be_huge_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    name, body = pack(["a" * 2000])
    monkeypatch.setattr(module, "MOST_PROFILE_BYTES", 1000)
    with pytest.raises(StoreError, match="longer than 1000 bytes"):
        unpack(name, body)
    with pytest.raises(StoreError, match="too large to be kept"):
        pack(["a" * 2000])


def test_a_few_bytes_cannot_claim_to_be_a_text_that_fills_the_memory() -> None:
    text = "[" + ",".join(['""'] * 1_000_000) + "]"
    with pytest.raises(StoreError, match=r"longer than \d+ bytes"):
        unpack(hash_text(text), zlib.compress(text.encode()))


def test_whatever_is_packed_can_be_unpacked_however_regular_it_is() -> None:
    part = ["a" * 3_000_000]
    assert unpack(*pack(part)) == part


def test_what_was_changed_is_not_believed() -> None:
    name, body = pack(["a"])
    assert unpack(name, body) == ["a"]
    for wrong in (body[:-1], b"", b"nonsense", zlib.compress(b'["b"]'), zlib.compress(b"\xff")):
        with pytest.raises(StoreError, match="damaged"):
            unpack(name, wrong)


def test_what_is_nested_without_end_is_refused() -> None:
    text = "[" * 60_000
    with pytest.raises(StoreError, match="no JSON"):
        unpack(hash_text(text), zlib.compress(text.encode()))
