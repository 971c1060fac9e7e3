"""FunctionCounts beside the reference's own, on the same data: what is right there is the same here."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
import torch.utils.benchmark as reference
from hypothesis import given
from hypothesis import strategies as st

import torchmark
from torchmark import FunctionCount, FunctionCounts

entries = st.lists(
    st.tuples(
        st.integers(-(10**9), 10**9).filter(bool),
        st.sampled_from([f"file{i}.c:function_{i}" for i in range(30)] + ["x" * n for n in (39, 40, 41, 150)]),
    ),
    max_size=30,
    unique_by=lambda entry: entry[1],
)


def make(package: Any, data: list[tuple[int, str]], inclusive: bool = False, **options: Any) -> Any:
    ordered = tuple(sorted((package.FunctionCount(c, fn) for c, fn in data), reverse=True))
    return package.FunctionCounts(ordered, inclusive, **options)


def text(counts: Any) -> str:
    return re.sub(r"<.+ object at 0x[0-9a-f]+>", "<object>", repr(counts))


def same(ours: Any, theirs: Any) -> None:
    assert text(ours) == text(theirs)
    assert [tuple(entry) for entry in ours] == [tuple(entry) for entry in theirs]
    assert (len(ours), ours.sum()) == (len(theirs), theirs.sum())


@given(entries, st.booleans(), st.booleans(), st.sampled_from([None, 40, 80, 160]))
def test_texts_are_to_the_letter(
    data: list[tuple[int, str]], inclusive: bool, truncate: bool, width: int | None
) -> None:
    if data:  # the reference cannot show an empty table
        options = {"truncate_rows": truncate, "_linewidth": width}
        same(make(torchmark, data, inclusive, **options), make(reference, data, inclusive, **options))


@given(entries, entries)
def test_arithmetic_is_the_same(one: list[tuple[int, str]], two: list[tuple[int, str]]) -> None:
    def results(package: Any) -> list[Any]:
        a, b = make(package, one), make(package, two)
        return [
            a + b,
            a - b,
            a * 3,
            a * 0.37,
            a.transform(lambda fn: fn[:9]),
            a.filter(lambda fn: "1" in fn),
            (a - b)[:5],
            (a - b)[-3:],
        ]

    for ours, theirs in zip(results(torchmark), results(reference), strict=True):
        assert [tuple(entry) for entry in ours] == [tuple(entry) for entry in theirs]
        if len(theirs):
            assert text(ours) == text(theirs)


def test_lines_are_no_longer_than_asked_for() -> None:
    counts = make(torchmark, [(1000, "f" * 300), (-20, "g" * 200)], _linewidth=160)
    assert all(len(line) <= 160 for line in repr(counts).splitlines())


def test_torchs_own_line_width_is_used() -> None:
    counts = make(torchmark, [(1000, "f" * 300)])
    torch.set_printoptions(linewidth=120)  # type: ignore[no-untyped-call]
    try:
        assert max(map(len, repr(counts).splitlines())) == 120
    finally:
        torch.set_printoptions(linewidth=80)  # type: ignore[no-untyped-call]
    assert max(map(len, repr(counts).splitlines())) == 80


def test_a_long_table_shows_both_ends_unless_it_is_a_slice() -> None:
    counts = make(torchmark, [(n, f"f{n}") for n in range(1, 31)])
    lines = repr(counts).splitlines()
    assert len(lines) == 1 + 9 + 1 + 9 + 2
    assert lines[10] == " ..."
    assert len(repr(counts[:30]).splitlines()) == 1 + 30 + 2


def test_one_entry_can_be_taken_out() -> None:
    counts = make(torchmark, [(3, "f"), (5, "g")])
    assert counts[0] == FunctionCount(5, "g")
    assert counts[-1].function == "f"
    with pytest.raises(IndexError):
        counts[2]
    with pytest.raises(TypeError, match="cannot unpack"):
        repr(make(reference, [(3, "f"), (5, "g")])[0])


def test_inclusive_and_exclusive_do_not_mix() -> None:
    with pytest.raises(AssertionError, match=r"Cannot merge inclusive and exclusive counts\."):
        make(torchmark, [(3, "f")]) + make(torchmark, [(3, "f")], inclusive=True)
    with pytest.raises(ValueError, match="inclusive"):
        make(torchmark, [(3, "f")]) - make(torchmark, [(3, "f")], inclusive=True)
    with pytest.raises(TypeError):
        make(torchmark, [(3, "f")]) + 1


LOOKUP = "Objects/dictobject.c:lookdict_unicode"


def test_without_layouts_noise_goes_by_the_references_names() -> None:
    data = [(30, LOOKUP), (20, f"{LOOKUP}_nodummy"), (10, "Python/ceval.c:eval")]
    same(make(torchmark, data).denoise(), make(reference, data).denoise())


def test_names_of_newer_pythons_are_known_too() -> None:
    data = [(30, "Objects/dictobject.c:unicodekeys_lookup_unicode"), (10, "Python/ceval.c:eval")]
    assert make(torchmark, data).denoise().sum() == 10
    assert make(reference, data).denoise().sum() == 40


def test_with_layouts_noise_is_what_was_seen_to_vary() -> None:
    counts = make(
        torchmark, [(30, LOOKUP), (20, "malloc.c:_int_free"), (10, "f")], _noisy=frozenset({"malloc.c:_int_free"})
    )
    assert [entry.function for entry in counts.denoise()] == [LOOKUP, "f"]


def test_what_is_known_of_noise_survives_arithmetic() -> None:
    one = make(torchmark, [(30, "a/f"), (20, "a/g")], _noisy=frozenset({"a/f"}))
    two = make(torchmark, [(10, "a/f"), (5, "a/g"), (1, "a/h")], _noisy=frozenset({"a/h"}))
    assert [tuple(e) for e in (one - two).denoise()] == [(15, "a/g")]
    assert [tuple(e) for e in (one * 2).denoise()] == [(40, "a/g")]
    assert [tuple(e) for e in one.transform(lambda fn: fn[2:]).denoise()] == [(20, "g")]
    assert [tuple(e) for e in one.filter(lambda fn: True).denoise()] == [(20, "a/g")]
    assert [tuple(e) for e in one[:1].denoise()] == []
    unknown = make(torchmark, [(1, "a/f"), (1, LOOKUP)])
    assert [tuple(e) for e in (unknown + one).denoise()] == [(20, "a/g"), (1, LOOKUP)]
    assert (unknown + unknown)._noisy is None


def test_multiplying_from_the_left_works_too() -> None:
    assert (2 * make(torchmark, [(3, "f")])).sum() == 6


def test_equality_is_identity() -> None:
    one = make(torchmark, [(3, "f")])
    assert one == one
    assert one != make(torchmark, [(3, "f")])
    assert isinstance(one, FunctionCounts)
