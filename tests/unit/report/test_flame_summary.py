from __future__ import annotations

from torchmark.analysis.flames import grow, grow_difference
from torchmark.model.flame import Flame, FlameUnit, Frame, FrameKind, Method, Stack, Stacks
from torchmark.report.flame.page import sum_up_flame

F, G = Frame("f", FrameKind.PYTHON, "a.py:1"), Frame("at::add(int)", FrameKind.NATIVE, "l.so")


def make(own: int, below: int) -> Stacks:
    return Stacks((Stack((F,), own), Stack((F, G), below)), FlameUnit.INSTRUCTIONS, Method.CALLERS, 10)


def test_the_most_expensive_functions_come_first() -> None:
    flame = Flame(root=grow(make(300, 700)), title="x", unit=FlameUnit.INSTRUCTIONS, method=Method.CALLERS, number=10)
    assert sum_up_flame(flame) == ["100 instructions per run", "   70%  at::add (l.so)", "   30%  f (a.py:1)"]


def test_of_a_difference_those_that_changed_most_do() -> None:
    root = grow_difference(make(300, 700), make(800, 600))
    lines = sum_up_flame(Flame(root=root, title="x", unit=FlameUnit.INSTRUCTIONS, method=Method.CALLERS, number=10))
    assert lines == ["100 → 140 instructions per run (+40%)", "+50  f (a.py:1)", "−10  at::add (l.so)"]


def test_of_nothing_there_is_only_the_total() -> None:
    flame = Flame(grow(Stacks((), FlameUnit.SAMPLES, Method.SAMPLING)), "x", FlameUnit.SAMPLES, Method.SAMPLING)
    assert sum_up_flame(flame) == ["0 samples"]
