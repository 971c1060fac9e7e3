from __future__ import annotations

import dataclasses
import json

import pytest

from torchmark.model.plan import AutogradMode, AutoLabels, Case, CompileMode, RuntimeMode, TimerArgs
from torchmark.model.task import Language

LABELS = AutoLabels(RuntimeMode.EAGER, AutogradMode.FORWARD_BACKWARD, Language.PYTHON)
CASE = Case(("nn", "é"), LABELS, TimerArgs("x", num_threads=2))


@pytest.mark.parametrize(
    ("mode", "title"),
    [
        (CompileMode(), "torch.compile"),
        (CompileMode("aot_eager"), "torch.compile (aot_eager)"),
        (CompileMode("inductor", "max-autotune"), "torch.compile (inductor, max-autotune)"),
    ],
)
def test_ways_of_compiling_are_told_apart_by_their_titles(mode: CompileMode, title: str) -> None:
    assert mode.title == title
    labels = AutoLabels(RuntimeMode.COMPILE, AutogradMode.EXPLICIT, Language.PYTHON, mode)
    assert labels.as_dict == {"runtime": title, "autograd": "", "language": "Python"}


def test_a_key_has_what_identifies_a_case() -> None:
    assert json.loads(CASE.key) == {
        "label": ["nn", "é"],
        "autolabels": {"runtime": "Eager", "autograd": "Forward + Backward", "language": "Python"},
        "num_threads": 2,
    }
    assert CASE.key.isascii()


def test_a_key_stays_when_the_text_of_a_benchmark_or_its_tags_change() -> None:
    other = dataclasses.replace(CASE, args=TimerArgs("y", "z", num_threads=2), tags=("a",), suite="b", check=None)
    assert other.key == CASE.key
    assert dataclasses.replace(CASE, label=("nn, é",)).key != CASE.key


def test_cases_can_be_members_of_sets() -> None:
    assert len({CASE, dataclasses.replace(CASE), dataclasses.replace(CASE, label=())}) == 2
