from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from torchmark.report.text import terminal
from torchmark.report.text.terminal import cut, cut_middle, pad, printable, wrap

TEXTS = st.text().map(printable)


@given(TEXTS, st.integers(0, 40))
def test_what_is_cut_fits_and_what_fits_is_not_cut(text: str, width: int) -> None:
    for shorten in (cut, cut_middle):
        assert cell_len(shorten(text, width)) <= max(width, 0)
    if cell_len(text) <= width:
        assert cut(text, width) == cut_middle(text, width) == text
        assert cell_len(pad(text, width)) == cell_len(pad(text, width, right=True)) == width


@given(TEXTS, st.integers(10, 40))
def test_wrapped_lines_fit_and_lose_nothing(text: str, width: int) -> None:
    lines = wrap(text, width, 2)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@pytest.mark.parametrize("letter", ["x", "加", "e\u0301", "x "])
def test_a_text_of_any_length_is_cut_and_wrapped_with_few_measurements(
    letter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One measurement for each character of such a text would never end.
    text, measured = letter * 100_000, []

    def count_calls(text: str) -> int:
        measured.append(len(text))
        return cell_len(text)

    monkeypatch.setattr(terminal, "measure", count_calls)
    for shorten in (cut, cut_middle):
        assert cell_len(shorten(text, 60)) <= 60
    lines = wrap(text, 60)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(len(line) <= 60 for line in lines)
    assert len(measured) < 100


@given(st.text("ab 加", max_size=60), st.integers(3, 40))
def test_the_end_is_as_long_as_it_can_be(text: str, width: int) -> None:
    shown = cut_middle(text, width)
    head, dots, tail = shown.partition("…")
    if dots:
        assert text.endswith(tail)
        assert cell_len(head + dots + text[-len(tail) - 1 :]) > width
