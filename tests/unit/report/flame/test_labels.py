from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_flames import ADD, HOOK, LOOP, MALLOC, compared_flame, frames, plain_flame, texts
from torchmark.model.costs import FlameUnit, Frame, FrameKind
from torchmark.report.flame.labels import (
    FAMILIES,
    LONGEST_LABEL,
    LONGEST_NAME,
    SHADES,
    FlameScale,
    colour_of,
    describe_frame,
    family_of,
    find_step,
    fit_label,
    format_percent,
    format_relation,
    full_name,
    gauge_of,
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


@given(texts.map(lambda text: label_of(Frame(text))), st.integers(0, 120), st.sampled_from(["", "+120 "]))
def test_a_fitted_label_fits(label: str, room: int, mark: str) -> None:
    assert measure(fit_label(label, room, mark)) <= room


@pytest.mark.parametrize(
    ("room", "shown"), [(14, "+120 at::_f<…>"), (11, "+120 _f<…>"), (9, "+120 _f<…"), (7, "+120"), (3, "+1…"), (2, "")]
)
def test_a_mark_stays_longer_than_the_label_behind_it(room: int, shown: str) -> None:
    assert fit_label("at::_f<int, int>", room, "+120 ") == shown


def test_colours_are_by_kind_and_of_compiled_functions_by_stage() -> None:
    named = {frame: FAMILIES[family_of(frame)] for frame in (HOOK, ADD, LOOP, MALLOC, Frame("all", FrameKind.OTHER))}
    assert list(named.values()) == ["Python", "dispatcher", "kernel", "allocation", "all"]


@given(frames)
def test_a_colour_is_one_of_its_family_and_does_not_depend_on_where_the_frame_is_drawn(frame: Frame) -> None:
    assert colour_of(frame) // SHADES == family_of(frame)
    assert colour_of(frame) == colour_of(Frame(*frame))


def test_a_tooltip_has_shares_of_all_and_of_the_caller_and_what_is_spent_in_the_function_itself() -> None:
    flame = plain_flame()
    root = flame.root
    run = root.children[0]
    hook = run.children[0]
    add = hook.children[0]
    assert describe_frame(root, None, root, gauge_of(flame)) == [
        "all",
        "1,000.5 instructions per run, 100% of all",
        "in itself 0, 0% of all",
    ]
    assert describe_frame(run, root, root, gauge_of(flame))[2] == "1,000.5 instructions per run, 100% of all"
    assert describe_frame(add, hook, root, gauge_of(flame)) == [
        "at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&)",
        "libtorch_cpu.so",
        "490.5 instructions per run, 49% of all",
        "71% of its caller",
        "in itself 50.5, 5.0% of all",
    ]


def test_a_tooltip_of_a_difference_has_both_sides_and_what_is_new_or_gone() -> None:
    flame = compared_flame()
    root = flame.root
    run = root.children[0]
    hook, old, malloc = run.children
    gauge = gauge_of(flame)
    assert describe_frame(hook, run, root, gauge)[2:] == [
        "690.5 → 780.5 (+90, +13%) instructions per run",
        "in itself 200 → 320 (+120, +60%)",
        "69% → 80% of all",
    ]
    assert describe_frame(old, run, root, gauge)[3] == "in itself 110 → 0 (−110, gone)"
    assert describe_frame(malloc, run, root, gauge)[3] == "in itself 100 (no change)"


def test_samples_are_not_divided_by_runs() -> None:
    assert gauge_of(dataclasses.replace(plain_flame(), unit=FlameUnit.SAMPLES)) == FlameScale("samples", 1)


@given(st.integers(0, 10**12), st.integers(1, 10**4))
def test_a_value_is_shown_to_half_a_tenth(value: int, runs: int) -> None:
    shown = float(FlameScale("", runs).show(value).replace(",", ""))
    assert abs(shown - value / runs) <= 0.05 + 1e-9 * value


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(0, 0, "0%"), (5, 0, "0%"), (994, 10_000, "9.9%"), (995, 10_000, "10%"), (1, 10**9, "<0.01%"), (3, 2, "150%")],
)
def test_shares_have_two_figures_or_so(part: int, whole: int, text: str) -> None:
    assert format_percent(part, whole) == text


def test_changes_from_nothing_and_to_nothing_are_no_percentages() -> None:
    assert [format_relation(*pair) for pair in ((0, 5), (5, 0), (4, 4), (4, 3), (0, 0))] == [
        "new",
        "gone",
        "no change",
        "−25%",
        "no change",
    ]


@given(st.integers(-1000, 1000), st.integers(1, 1000))
def test_colours_grow_with_the_change_and_have_its_sign(change: int, largest: int) -> None:
    step = find_step(max(min(change, largest), -largest), largest)
    assert abs(step) <= 5
    assert step * change >= 0
    assert find_step(largest, largest) == 5
    assert find_step(0, 0) == 0
