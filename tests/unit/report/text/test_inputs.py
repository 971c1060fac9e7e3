"""Inputs in a few words, and how far a study has come."""

from __future__ import annotations

import math

import pytest

from torchmark import UnaryOpSparseFuzzer
from torchmark.fuzz.fuzzer import outline
from torchmark.model.inputs import Condition, FuzzedInput, Relation, Rule, RuleSearch, Value
from torchmark.model.outcome import Failure, FailureKind
from torchmark.report.text.inputs import (
    InputAdvance,
    describe_condition,
    describe_input,
    describe_rule,
    describe_search,
    describe_tensor_input,
    name_statement,
)
from torchmark.report.text.units import format_ratio

NOT_CONTIGUOUS = Condition("x is contiguous", Relation.IS, False)
LARGE = Condition("k0", Relation.ABOVE, 1024)


def make_rule(inside: float, outside: float, *conditions: Condition) -> Rule:
    """A rule from ratios of times."""
    return Rule(
        conditions=conditions or (LARGE,),
        inside=math.log(inside),
        outside=math.log(outside),
        inputs_inside=7,
        inputs_outside=59,
        p_value=1e-6,
    )


@pytest.mark.parametrize(
    ("feature", "relation", "value", "words"),
    [
        ("x is contiguous", Relation.IS, True, "x is contiguous"),
        ("x is contiguous", Relation.IS, False, "x is not contiguous"),
        ("x is contiguous", Relation.IS_NOT, True, "x is not contiguous"),
        ("x and y are alike", Relation.IS, False, "x and y are not alike"),
        ("x has what is odd", Relation.IS, False, "x does not have what is odd"),
        ("x and y have one shape", Relation.IS, False, "x and y do not have one shape"),
        ("coalesced", Relation.IS, True, "coalesced"),
        ("coalesced", Relation.IS, False, "not coalesced"),
        ("k0", Relation.ABOVE, 1024, "k0 > 1024"),
        ("k0", Relation.AT_MOST, 2097152.0, "k0 <= 2097152"),
        ("density", Relation.AT_MOST, 0.05, "density <= 0.05"),
        ("dim", Relation.IS, 2, "dim is 2"),
        ("x_step_0", Relation.IS, 1, "x_step_0 is 1"),
        ("dtype", Relation.IS, "int32", "dtype is int32"),
        ("dtype", Relation.IS_NOT, "int32", "dtype is not int32"),
    ],
)
def test_conditions_read_as_people_say_them(feature: str, relation: Relation, value: Value, words: str) -> None:
    assert describe_condition(Condition(feature, relation, value)) == words


def test_a_rule_is_one_sentence() -> None:
    assert describe_rule(make_rule(3.2, 1, NOT_CONTIGUOUS, LARGE), "x + y", "torch.add(x, y)") == (
        '"x + y" is slower than "torch.add(x, y)" when x is not contiguous and k0 > 1024: '
        "3.2 times its time there, 1.00 times elsewhere (7 and 59 held-back inputs)."
    )


@pytest.mark.parametrize(
    ("inside", "outside", "claim"),
    [
        (2.0, 1.0, 'slower than "A" when'),
        (2.0, 0.5, 'slower than "A" when'),
        (0.5, 1.0, 'faster than "A" when'),
        (0.5, 2.0, 'faster than "A" when'),
        (1.0, 2.0, 'as fast as "A" when'),
        (1.0, 0.5, 'no faster than "A" when'),
        (3.0, 1.5, 'slower than "A", and more so when'),
        (1.5, 3.0, 'slower than "A", but less so when'),
        (0.3, 0.6, 'faster than "A", and more so when'),
        (0.6, 0.3, 'faster than "A", but less so when'),
        (1.01, 0.99, 'slower than "A" when'),
        (0.99, 1.01, 'faster than "A" when'),
    ],
)
def test_every_pair_of_sides_has_its_words(inside: float, outside: float, claim: str) -> None:
    assert describe_rule(make_rule(inside, outside), "B", "A").startswith(f'"B" is {claim} k0 > 1024: ')


def test_a_statement_alone_is_told_by_its_time_per_element() -> None:
    assert describe_rule(make_rule(3.2e-9, 1e-9), "x.neg()") == (
        '"x.neg()" takes longer per element when k0 > 1024: 3.2 times as long as elsewhere (7 and 59 held-back inputs).'
    )
    assert '"x.neg()" takes less time per element when k0 > 1024: 0.50 times' in describe_rule(
        make_rule(1, 2), "x.neg()"
    )


def test_three_conditions_are_listed() -> None:
    rule = make_rule(2, 1, NOT_CONTIGUOUS, LARGE, Condition("dim", Relation.IS, 3))
    assert "when x is not contiguous, k0 > 1024 and dim is 3: " in describe_rule(rule, "B", "A")


def test_later_rules_are_about_the_other_inputs() -> None:
    first, second = describe_search(RuleSearch((make_rule(3, 1), make_rule(0.5, 1)), 134, 66), "B", "A")
    assert first.startswith('"B" is slower')
    assert second.startswith('Of the other inputs: "B" is faster')


@pytest.mark.parametrize(
    ("search", "line"),
    [
        (RuleSearch((), 6, 3, too_few=True), "Too few inputs to look for rules: 9. Try -n 200."),
        (RuleSearch((), 134, 66), "No rule: nothing that is known of the inputs goes with it."),
        (
            RuleSearch((), 134, 66, (NOT_CONTIGUOUS, LARGE)),
            "No rule explains it: x is not contiguous and k0 > 1024, seen in 134 inputs, did not hold up in the 66 "
            "that were held back. More may tell: try -n 400.",
        ),
    ],
)
def test_without_a_rule_one_line_says_why(search: RuleSearch, line: str) -> None:
    assert describe_search(search, "B", "A") == [line]


ONE = FuzzedInput(7, {}, {"x": {"size": (3,), "numel": 3}}, "")


def test_what_is_as_usual_is_not_told() -> None:
    assert describe_tensor_input("x", {"size": (3, 4), "steps": (1, 1), "order": (0, 1)}) == "x 3x4"
    assert describe_tensor_input("x", {"size": (), "steps": (), "order": ()}) == "x scalar"


def test_a_sparse_tensor_tells_its_density_and_form() -> None:
    fuzzer = UnaryOpSparseFuzzer(0, preset="small")
    texts = [describe_input(outline(fuzzer, k)) for k in range(8)]
    assert all("sparse in" in text and "density" in text for text in texts)
    assert {"uncoalesced" in text for text in texts} == {True, False}


def test_letters_go_on_behind_the_last() -> None:
    assert [name_statement(i) for i in (0, 25, 26, 27)] == ["A", "Z", "A1", "B1"]


def test_ratios_keep_three_figures_at_any_size() -> None:
    assert [format_ratio(r) for r in (1.0, 0.5, 99.96, 250.4, 0.05)] == ["1.00", "0.50", "100.0", "250", "0.05"]


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
