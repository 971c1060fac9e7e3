from __future__ import annotations

import json

import pytest

from tests.sample_runs import ADD, FAILING, MODEL, ODD
from torchmark.analysis.gate import parse_limit
from torchmark.model.gate import FailOn, GateResult, Growth, Improvement, Quantity, Regression, StaleEntry
from torchmark.report.as_json import to_json_gate
from torchmark.report.text.gate import describe_gate, describe_regression, describe_stale, list_sentences

IR, TIME = Quantity.INSTRUCTIONS, Quantity.TIME
GREW = Regression(
    case=ADD,
    reason=FailOn.SLOWER,
    quantity=IR,
    base=1000.0,
    head=1050.0,
    limit=parse_limit("Ir:0"),
    functions=tuple(Growth(f"f{n}", n) for n in (9, 5, 3, 1)),
)


@pytest.mark.parametrize(
    ("regression", "text"),
    [
        (GREW, "takes 50 instructions (+5.0 %) more than base, limit Ir:0: f9 +9, f5 +5, f3 +3 and 1 more"),
        (
            Regression(
                case=ADD,
                reason=FailOn.SLOWER,
                quantity=IR,
                base=1000.0,
                head=1000.25,
                limit=parse_limit("Ir:0"),
                accepted=True,
            ),
            "takes 0.25 instructions (+0.03 %) more than accepted, limit Ir:0",
        ),
        (
            Regression(
                case=ADD, reason=FailOn.SLOWER, quantity=TIME, base=1e-6, head=1.1e-6, limit=parse_limit("time:2%@*")
            ),
            "takes 100 ns (+10 %) more than base, limit time:2%@*",
        ),
        (
            Regression(
                case=ADD,
                reason=FailOn.SLOWER,
                quantity=Quantity.ALLOCATIONS,
                base=0.0,
                head=2.0,
                limit=parse_limit("allocations:1"),
            ),
            "takes 2 allocations more than base, limit allocations:1",
        ),
        (Regression(ADD, FailOn.SLOWER), "is slower"),
        (Regression(ADD, FailOn.UNDECIDED), "is undecided"),
        (Regression(ADD, FailOn.FAILED), "fails in head"),
        (Regression(ADD, FailOn.MISSING), "is missing in head"),
    ],
)
def test_a_regression_is_one_line(regression: Regression, text: str) -> None:
    assert describe_regression(regression) == f"Pointwise / add, Python {text}"


def test_commands_accept_what_stopped_by_its_instructions_and_what_became_better() -> None:
    result = GateResult((GREW, GREW, Regression(FAILING, FailOn.MISSING)), (Improvement(FAILING, 320.0, 200.0),))
    lines = describe_gate(result, " --run x")
    assert lines[0] == "3 regressions:"
    assert lines[4:6] == [
        "Where that is meant to be:",
        "  torchmark accept 'Pointwise / add, Python' --run x --why '…'",
    ]
    assert lines[6:] == [
        "fails, Python takes 120 instructions less than accepted.",
        "Let the ledger know:",
        "  torchmark accept 'fails, Python' --run x --why '…'",
    ]
    assert describe_gate(GateResult(), "") == []
    assert describe_gate(GateResult(accepted=(ADD,)), "") == [
        "More instructions than base, and as accepted: Pointwise / add, Python."
    ]


def test_entries_that_are_stale_for_one_reason_are_one_line() -> None:
    torch = ("torch", "2.12", "2.13")
    many = [StaleEntry(case, (torch,)) for case in (ADD, ODD, FAILING, MODEL)]
    assert describe_stale(many) == ["The ledger says nothing of 4 cases: torch was 2.12 and is 2.13."]
    defined = StaleEntry(ADD, (("definition", "abc", "def"), ("hash_seed", "0", "1")))
    assert describe_stale([defined]) == [
        "The ledger says nothing of Pointwise / add, Python: it is defined otherwise now, hash seed was 0 and is 1."
    ]


def test_a_page_has_a_sentence_for_each() -> None:
    result = GateResult((GREW,), (Improvement(ADD, 2.0, 1.0),), (StaleEntry(ADD, (("torch", "1", "2"),)),))
    sentences = list_sentences(result)
    assert len(sentences) == 3
    assert all(sentence.endswith(".") for sentence in sentences)
    assert sentences[1].endswith("It asks to be accepted.")


def test_plain_values_have_everything() -> None:
    result = GateResult(
        regressions=(GREW,),
        improvements=(Improvement(ADD, 2.0, 1.0),),
        stale=(StaleEntry(ADD, (("torch", "1", "2"),)),),
        accepted=(ODD,),
        exit_code=3,
    )
    plain = json.loads(json.dumps(to_json_gate(result), allow_nan=False))
    assert plain["exit_code"] == 3
    assert plain["regressions"][0]["functions"][0] == {"function": "f9", "delta": 9}
    assert (plain["regressions"][0]["limit"], plain["regressions"][0]["witness"]) == ("Ir:0", "Ir")
    assert plain["improvements"][0]["accepted"] == 2.0
    assert plain["stale"][0]["differences"] == [{"what": "torch", "accepted": "1", "now": "2"}]
    assert plain["accepted"][0]["key"] == ODD.key


def test_what_a_ledger_says_stays_on_its_line() -> None:
    evil = "2.2\x1b]0;x\x07\n::error::y"
    (line,) = describe_stale([StaleEntry(ADD, (("torch", evil, "2.2"),))])
    assert line.isprintable()
    grown = Regression(
        case=ADD, reason=FailOn.SLOWER, quantity=IR, base=1000.0, head=1050.0, functions=(Growth(evil, 50),)
    )
    assert describe_regression(grown).isprintable()
