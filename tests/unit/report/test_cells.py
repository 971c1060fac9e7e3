from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from torchmark.report.cells import cut, cut_middle, pad, printable, wrap

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
