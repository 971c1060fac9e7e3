from __future__ import annotations

import pytest

from torchmark.model.task import TaskSpec


@pytest.mark.parametrize(
    ("spec", "title"),
    [
        (TaskSpec("x + y", "pass"), "x + y"),
        (TaskSpec("x + y", "pass", sub_label="scalar"), "x + y: scalar"),
        (TaskSpec("x + y", "pass", label="add"), "add"),
        (TaskSpec("x + y", "pass", label="add", sub_label="scalar"), "add: scalar"),
        (TaskSpec("x\ny", "pass"), "stmt:\n  x\n  y"),
        (TaskSpec("x\ny", "pass", sub_label="scalar_add"), "stmt: (scalar_add)\n  x\n  y"),
        (TaskSpec("x\ny", "pass", label="add"), "add"),
        (TaskSpec("x", "pass", label=""), ""),
    ],
)
def test_title(spec: TaskSpec, title: str) -> None:
    assert spec.title == title


@pytest.mark.parametrize(
    ("setup", "shown"),
    [("pass", ""), ("", ""), ("x = 1", "setup: x = 1"), ("x = 1\ny = 2", "setup:\n  x = 1\n  y = 2")],
)
def test_setup_text(setup: str, shown: str) -> None:
    assert TaskSpec("x", setup).setup_str() == shown


def test_sections_of_several_lines_are_followed_by_a_blank_one() -> None:
    spec = TaskSpec("a\nb", "c\nd", description="what")
    assert spec.summarize() == "stmt:\n  a\n  b\n\nwhat\nsetup:\n  c\n  d\n"


def test_equal_specs_are_one_key() -> None:
    assert len({TaskSpec("x", "y", env="e"), TaskSpec("x", "y", env="e"), TaskSpec("x", "y")}) == 2
