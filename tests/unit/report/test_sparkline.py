from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from torchmark.report.text.history import ASCII_BLOCKS, BLOCKS, draw

SERIES = st.lists(st.none() | st.floats(-1e6, 1e6), max_size=60)


def test_nothing_and_gaps_alone_are_blank() -> None:
    assert draw([], 10).text == ""
    assert draw([None, None], 10).text == "  "


def test_what_is_all_alike_is_flat() -> None:
    assert draw([5.0] * 4, 10).text == "▁▁▁▁"


def test_lowest_and_highest_fill_the_height() -> None:
    assert draw([0.0, 7.0, 3.0], 10).text == "▁█▄"
    assert draw([0.0, 7.0, 3.0], 10, blocks=ASCII_BLOCKS).text == "_#="


def test_a_span_near_the_smallest_float_fills_the_height() -> None:
    assert draw([0.0, 2.2e-309], 10).text == "▁█"


def test_noise_looks_as_small_as_it_is() -> None:
    assert draw([0.0, 0.001, 0.0], 10, least_span=0.02).text == "▁▁▁"


def test_several_values_of_a_column_are_their_median() -> None:
    line = draw([0.0, 0.0, 9.0, 7.0, 7.0, 7.0], 2)
    assert line.text == "▁█"
    assert line.columns == (0, 0, 0, 1, 1, 1)


def test_marks_stand_below_their_values() -> None:
    assert draw([0.0] * 3 + [1.0] * 3, 10).mark({3: "^", 0: "~"}) == "~  ^"
    assert draw([0.0] * 3 + [1.0] * 3, 2).mark({3: "^", 4: "?"}) == " ^"
    assert draw([0.0], 10).mark({}) == ""


@given(SERIES, st.integers(1, 80))
def test_every_value_has_a_column_and_the_line_fits(values: list[float | None], width: int) -> None:
    line = draw(values, width)
    assert len(line.text) == min(len(values), width)
    assert set(line.text) <= {*BLOCKS, " "}
    assert list(line.columns) == sorted(line.columns)
    if len(values) <= width:
        assert [c == " " for c in line.text] == [value is None for value in values]
    assert all(0 <= column < len(line.text) for column in line.columns)
