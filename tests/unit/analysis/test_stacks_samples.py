from __future__ import annotations

import pytest

from torchmark.analysis.stacks import STATEMENT, read_samples
from torchmark.model.costs import FlameUnit, Frame, FrameKind, Method, Stack

OUTER = "<module> (torchmark_statement.py:24);_torchmark_measure (torchmark_statement.py:20);"
LOOP = f"{OUTER}_torchmark_loop (torchmark_statement.py:5)"


def test_frames_of_python_and_of_libraries_are_told_apart() -> None:
    stacks = read_samples(f"{LOOP};f (torch/_tensor.py:12);at::add (libtorch_cpu.so) 5\n")
    frames = (
        STATEMENT,
        Frame("f", FrameKind.PYTHON, "torch/_tensor.py:12"),
        Frame("at::add", FrameKind.NATIVE, "libtorch_cpu.so"),
    )
    assert stacks.stacks == (Stack(frames, 5),)
    assert (stacks.unit, stacks.method) == (FlameUnit.SAMPLES, Method.SAMPLING)


def test_importing_and_setup_are_left_out() -> None:
    text = (
        "<module> (torchmark_statement.py:3);_find_and_load (<frozen importlib._bootstrap>:1176) 40\n"
        "<module> (torchmark_statement.py:23);_torchmark_loop (torchmark_statement.py:5);randn (torch/random.py:1) 30\n"
        f"{LOOP} 7\n"
    )
    assert read_samples(text).stacks == (Stack((STATEMENT,), 7),)


def test_names_with_blanks_and_brackets_stay_whole() -> None:
    name = "at::(anonymous namespace)::f<int (int)>"
    ((frames, _),) = read_samples(f"{LOOP};{name} (libtorch_cpu.so) 1").stacks
    assert frames[-1] == Frame(name, FrameKind.NATIVE, "libtorch_cpu.so")


@pytest.mark.parametrize(
    ("text", "name", "origin"),
    [
        ("f (a (b))", "f (a", "b)"),
        ("f (a)", "f", "a"),
        ("f ()", "f", ""),
        ("int (anonymous namespace)::f(int)", "int (anonymous namespace)::f(int)", ""),
        ("f (a", "f (a", ""),
        ("f(a)", "f(a)", ""),
        # Takes quadratic time if every bracket is tried with every end.
        (" (" * 500_000, " (" * 500_000, ""),
    ],
)
def test_the_last_brackets_are_the_place(text: str, name: str, origin: str) -> None:
    ((frames, _),) = read_samples(f"{LOOP};{text} 1").stacks
    assert frames[-1] == Frame(name, FrameKind.NATIVE, origin)


def test_what_a_setup_defines_is_told_by_its_own_name() -> None:
    line = f"{LOOP};_torchmark_loop.<locals>.Sub.__torch_function__ (torchmark_statement.py:9) 1"
    ((frames, _),) = read_samples(line).stacks
    assert frames[-1] == Frame("Sub.__torch_function__", FrameKind.PYTHON, "<setup>")


def test_a_frame_without_a_place_is_only_a_name() -> None:
    ((frames, _),) = read_samples(f"{LOOP};0x7f00 1").stacks
    assert frames[-1] == Frame("0x7f00")


def test_equal_stacks_are_added_and_lines_that_are_none_passed_over() -> None:
    assert read_samples(f"{LOOP} 1\n\n{LOOP} 2\n{LOOP} many\n").stacks == (Stack((STATEMENT,), 3),)


def test_a_line_that_ends_in_no_number_is_left_out() -> None:
    text = f"{LOOP} ²\n{LOOP} ٣\n{LOOP} {'9' * 5000}\n{LOOP} 7\n"
    assert read_samples(text).stacks == (Stack((STATEMENT,), 7),)
