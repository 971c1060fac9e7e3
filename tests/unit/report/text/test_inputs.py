"""Inputs in a few words, and how far a study has come."""

from __future__ import annotations

from torchmark import UnaryOpSparseFuzzer
from torchmark.fuzz.fuzzer import outline
from torchmark.model.inputs import FuzzedInput
from torchmark.model.outcome import Failure, FailureKind
from torchmark.report.text.inputs import InputAdvance, name_statement, word_input, word_tensor
from torchmark.report.text.units import show_ratio

ONE = FuzzedInput(7, {}, {"x": {"size": (3,), "numel": 3}}, "")


def test_what_is_as_usual_is_not_told() -> None:
    assert word_tensor("x", {"size": (3, 4), "steps": (1, 1), "order": (0, 1)}) == "x 3x4"
    assert word_tensor("x", {"size": (), "steps": (), "order": ()}) == "x scalar"


def test_a_sparse_tensor_tells_its_density_and_form() -> None:
    fuzzer = UnaryOpSparseFuzzer(0, preset="small")
    texts = [word_input(outline(fuzzer, k)) for k in range(8)]
    assert all("sparse in" in text and "density" in text for text in texts)
    assert {"uncoalesced" in text for text in texts} == {True, False}


def test_letters_go_on_behind_the_last() -> None:
    assert [name_statement(i) for i in (0, 25, 26)] == ["A", "Z", "A1"]


def test_ratios_keep_three_figures_at_any_size() -> None:
    assert [show_ratio(r) for r in (1.0, 0.5, 99.96, 250.4, 0.05)] == ["1.00", "0.50", "100.0", "250", "0.05"]


def test_the_rest_is_estimated_from_what_is_done() -> None:
    now = [0.0]
    advance = InputAdvance(10, lambda: now[0])
    assert "left" not in advance.draw(80, fancy=False)
    now[0] = 8.0
    for _ in range(4):
        assert advance.add((ONE, None)) is None
    assert "4/10 inputs" in advance.draw(80, fancy=False)
    assert "about 12 s left" in advance.draw(80, fancy=False)
    assert advance.conclude() == "4 of 10 inputs measured, in 8 s"
    assert advance.describe_current(80) == ""


def test_the_same_failure_is_told_once() -> None:
    advance = InputAdvance(10, lambda: 0.0)
    broken = Failure(FailureKind.RAISED, "ValueError: no")
    assert advance.add((ONE, broken)) == "Failed: input 7 (x 3): ValueError: no"
    assert advance.add((ONE, broken)) is None
    assert advance.describe() == "2 of 10 inputs measured, 2 failed"
