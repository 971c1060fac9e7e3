from __future__ import annotations

import io

import pytest
import torch

from torchmark.model.job import CheckJob, Place, Way
from torchmark.worker.check_job import OTHER, check, compare, read_results, take_apart

SETUP = "x = torch.rand(3)"


def run(first: str, second: str, setup: str = SETUP) -> tuple[str | None, int | None]:
    checked = check(CheckJob(Way(first, setup), Way(second, setup), Place("/")))
    return checked.problem, checked.failed


def give(expression: str) -> str:
    return f'torchmark_give("y", {expression})'


def test_two_ways_that_compute_the_same_agree_from_the_same_random_inputs() -> None:
    assert run(give("x * 2"), give("x + x")) == (None, None)


def test_a_difference_is_told_with_the_name_and_the_numbers() -> None:
    problem, failed = run(give("x"), give("x + 1"))
    assert failed is None
    assert problem is not None
    assert problem.startswith("y differs: ")
    assert "Greatest absolute difference: 1" in problem


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("x", "x.double()"),
        ("x", "x[:2]"),
        ("x", "x.unsqueeze(0)"),
        ("x", "None"),
        ("(x, x)", "x"),
        ("1", "1.0"),
        ("1", "2"),
        ("True", "1"),
    ],
)
def test_type_shape_number_and_presence_count_too(one: str, two: str) -> None:
    problem, _ = run(give(one), give(two))
    assert problem is not None


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("x.t()", "x.t().clone()"),
        ("x / 0 * 0", "x / 0 * 0"),
        ("None", "None"),
        ("(x, (x, x))", "[x, x, x]"),
        ("x.size()", "[3]"),
        ("x.requires_grad_()", "x"),
        ("object()", "x"),
    ],
)
def test_strides_not_a_numbers_nesting_and_what_is_no_value_do_not_matter(one: str, two: str) -> None:
    assert run(give(one), give(two)) == (None, None)


def test_results_of_other_names_differ() -> None:
    problem, _ = run('torchmark_give("y", x)', 'torchmark_give("z", x)')
    assert problem == "y has 1 parts in one and 0 in the other."


def test_what_is_no_value_hides_no_other() -> None:
    problem, _ = run(give("(x, 'a')"), give("(x + 1, 'b')"))
    assert problem is not None


def test_sparse_tensors_are_compared_by_what_they_hold() -> None:
    assert run(give("x.to_sparse()"), give("x")) == (None, None)


@pytest.mark.parametrize(("stmts", "guilty"), [(("nothing", give("x")), 0), ((give("x"), "nothing"), 1)])
def test_the_one_that_fails_is_named(stmts: tuple[str, str], guilty: int) -> None:
    problem, failed = run(*stmts)
    assert failed == guilty
    assert problem is not None
    assert problem.rstrip().endswith("NameError: name 'nothing' is not defined")


def test_a_value_is_taken_when_it_is_handed_over_and_not_later() -> None:
    assert run(f"{give('x')}\nx.zero_()", give("x")) == (None, None)


def test_what_compiled_code_writes_is_read_back() -> None:
    tensor = torch.arange(6, dtype=torch.int32).reshape(2, 3)
    data = bytes(tensor.numpy())
    written = io.BytesIO(
        b"24|Int|2,3,|x\n"
        + data
        + b"0|Float|0,|empty\n"
        + b"0|None||x.grad\n"
        + b"1|Bool||flag\n\x01"
        + b"0|Other||q|r\n"
    )
    results = read_results(written.readline, written.read)
    assert list(results) == ["x", "empty", "x.grad", "flag", "q|r"]
    (x,) = results["x"]
    assert isinstance(x, torch.Tensor)
    assert torch.equal(x, tensor)
    assert compare({"e": results["empty"]}, {"e": [torch.empty(0)]}) is None
    assert results["x.grad"] == [None]
    assert compare({"f": results["flag"]}, {"f": take_apart(True)}) is None
    assert results["q|r"] == [OTHER]
