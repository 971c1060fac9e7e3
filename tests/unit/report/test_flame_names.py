"""How frames are called and coloured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_flames import ADD, HOOK, LOOP, MALLOC, frames, texts
from torchmark.model.flame import Frame, FrameKind
from torchmark.report.flame.labels import (
    FAMILIES,
    LONGEST_LABEL,
    LONGEST_NAME,
    SHADES,
    colour_of,
    family_of,
    fit_label,
    full_name,
    label_of,
    origin_of,
)
from torchmark.report.text.terminal import measure


@given(frames)
def test_whatever_a_name_holds_what_is_shown_is_one_line_of_letters(frame: Frame) -> None:
    for text in (label_of(frame), full_name(frame)):
        assert text
        assert text.isprintable()
    assert origin_of(frame).isprintable()
    assert measure(label_of(frame)) <= LONGEST_LABEL


def test_a_name_without_end_is_cut() -> None:
    endless = Frame("f<" * 50_000, FrameKind.NATIVE, "x" * 50_000)
    assert len(full_name(endless)) <= LONGEST_NAME
    assert len(origin_of(endless)) <= LONGEST_NAME
    assert len(label_of(endless)) <= LONGEST_LABEL


def test_labels_of_compiled_functions_have_no_parameters_and_those_of_python_are_as_they_are() -> None:
    assert label_of(ADD) == "at::_ops::add_Tensor::call"
    assert label_of(HOOK) == "Sub.__torch_function__"
    assert label_of(Frame("f.<locals>.<lambda>", FrameKind.PYTHON)) == "f.<locals>.<lambda>"
    assert label_of(Frame("0x00000000000f288a")) == "(no name)"


@pytest.mark.parametrize(
    ("label", "room", "shown"),
    [
        ("at::native::loop<float>", 23, "at::native::loop<float>"),
        ("at::native::loop<float>", 22, "at::native::loop<…>"),
        ("at::native::loop<float>", 15, "native::loop<…>"),
        ("at::native::loop<float>", 9, "loop<…>"),
        ("at::native::loop<float>", 5, "loop…"),
        ("at::native::loop<float>", 2, ""),
        # What says nothing on its own keeps what it belongs to.
        ("at::_ops::add_Tensor::call", 16, "add_Tensor::call"),
        ("at::_ops::add_Tensor::call", 10, "add_Tenso…"),
        ("at::sum<float>::{lambda#1}::operator()", 31, "sum<…>::{lambda#1}::operator()"),
        ("c10::Foo::~Foo", 9, "Foo::~Foo"),
        # Brackets that are no template's.
        ("std::operator<<<char>", 18, "std::operator<<<…>"),
        ("<genexpr>", 6, "<gene…"),
        ("f.<locals>.<lambda>", 12, "f.<locals>.…"),
    ],
)
def test_a_label_is_cut_where_it_tells_least(label: str, room: int, shown: str) -> None:
    assert fit_label(label, room) == shown


@given(texts.map(lambda text: label_of(Frame(text))), st.integers(0, 120))
def test_a_fitted_label_fits(label: str, room: int) -> None:
    assert measure(fit_label(label, room)) <= room


def test_colours_are_by_kind_and_of_compiled_functions_by_stage() -> None:
    named = {frame: FAMILIES[family_of(frame)] for frame in (HOOK, ADD, LOOP, MALLOC, Frame("all", FrameKind.OTHER))}
    assert list(named.values()) == ["Python", "dispatcher", "kernel", "allocation", "all"]


@given(frames)
def test_a_colour_is_one_of_its_family_and_does_not_depend_on_where_the_frame_is_drawn(frame: Frame) -> None:
    assert colour_of(frame) // SHADES == family_of(frame)
    assert colour_of(frame) == colour_of(Frame(*frame))
