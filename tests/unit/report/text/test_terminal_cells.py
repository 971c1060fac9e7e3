from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torchmark.report.text import terminal
from torchmark.report.text.terminal import cut, cut_middle, measure, pad, printable, wrap

TEXTS = st.text().map(printable)


@given(TEXTS, st.integers(0, 40))
def test_what_is_cut_fits_and_what_fits_is_not_cut(text: str, width: int) -> None:
    for shorten in (cut, cut_middle):
        assert measure(shorten(text, width)) <= max(width, 0)
    if measure(text) <= width:
        assert cut(text, width) == cut_middle(text, width) == text
        assert measure(pad(text, width)) == measure(pad(text, width, right=True)) == width


@given(TEXTS, st.integers(10, 40))
def test_wrapped_lines_fit_and_lose_nothing(text: str, width: int) -> None:
    lines = wrap(text, width, 2)
    assert all(measure(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(TEXTS, TEXTS)
@example("000000\u2cef", "0")  # what takes no column is easily taken for a letter where all others are letters
@example("\u263a", "\ufe0f")
def test_a_text_takes_as_many_columns_as_its_parts(one: str, two: str) -> None:
    assert measure(one + two) == measure(one) + measure(two)


@pytest.mark.parametrize("letter", ["x", "加", "e\u0301", "x "])
def test_of_a_text_of_any_length_each_character_is_measured_a_few_times(
    letter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, measured = letter * 100_000, []

    def count_characters(text: str) -> int:
        measured.append(len(text))
        return measure(text)

    monkeypatch.setattr(terminal, "measure", count_characters)
    for shorten in (cut, cut_middle):
        assert measure(shorten(text, 60)) <= 60
    lines = wrap(text, 60)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(measure(line) <= 60 for line in lines)
    assert sum(measured) < 5 * len(text)


@given(st.text("ab 加", max_size=60), st.integers(3, 40))
def test_the_end_is_as_long_as_it_can_be(text: str, width: int) -> None:
    shown = cut_middle(text, width)
    head, dots, tail = shown.partition("…")
    if dots:
        assert text.endswith(tail)
        assert measure(head + dots + text[-len(tail) - 1 :]) > width
