"""A constraint gets parameters in whichever way it asks for them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from torchmark import DefinitionError, FuzzedParameter, Fuzzer
from torchmark.fuzz.fuzzer import adapt, name_constraint, refuses

VALUES = {"a": 1, "b": 2, "c": 3}


def by_keyword(a: int, b: int, c: int) -> bool:
    return (a, b, c) == (1, 2, 3)


def by_some(c: int, a: int) -> bool:
    return (a, c) == (1, 3)


def by_keyword_only(*, b: int) -> bool:
    return b == 2


def with_default(a: int, limit: int = 5) -> bool:
    return (a, limit) == (1, 5)


def with_default_that_is_drawn(a: int, b: int = 5) -> bool:
    return (a, b) == (1, 2)


def by_all(**params: int) -> bool:
    return params == VALUES


def by_some_and_all(a: int, **others: int) -> bool:
    return a == 1 and others == {"b": 2, "c": 3}


def by_dictionary(params: dict[str, int]) -> bool:
    return params == VALUES


def by_dictionary_and_default(params: dict[str, int], limit: int = 5) -> bool:
    return params == VALUES and limit == 5


def by_position_alone(a: dict[str, int], /) -> bool:
    return a == VALUES


def by_positions(*params: dict[str, int]) -> bool:
    return params == (VALUES,)


def wants_more(a: int, d: int) -> bool:
    return a == d


def wants_two_unknown(d: int, e: int) -> bool:
    return d == e


def wants_nothing() -> bool:
    return True


def wants_unknown_keyword(params: dict[str, int], *, limit: int) -> bool:
    return bool(params) and limit > 0


class Checker:
    def method(self, b: int) -> bool:
        return b == 2

    def __call__(self, params: dict[str, int]) -> bool:
        return params == VALUES


@pytest.mark.parametrize(
    "constraint",
    [
        by_keyword,
        by_some,
        by_keyword_only,
        with_default,
        with_default_that_is_drawn,
        by_all,
        by_some_and_all,
        by_dictionary,
        by_dictionary_and_default,
        by_position_alone,
        by_positions,
        Checker().method,
        Checker(),
        functools.partial(by_keyword, a=1),
        lambda a: a == 1,
        lambda p: p["b"] == 2,
        # Its signature is not known.
        dict.__len__,
    ],
)
def test_parameters_come_as_they_are_asked_for(constraint: Callable[..., object]) -> None:
    assert adapt(constraint, list(VALUES))(dict(VALUES))


@pytest.mark.parametrize(
    ("constraint", "asked"),
    [
        (wants_more, "wants_more .*asks for d"),
        (wants_two_unknown, "wants_two_unknown .*asks for d, e"),
        (wants_nothing, "wants_nothing .*asks for nothing"),
        (wants_unknown_keyword, "wants_unknown_keyword .*asks for params, limit"),
    ],
)
def test_one_that_asks_for_something_else_is_refused(constraint: Callable[..., object], asked: str) -> None:
    with pytest.raises(DefinitionError, match=rf"{asked}\. The parameters are: a, b, c\. A constraint takes"):
        adapt(constraint, list(VALUES))


def test_what_cannot_be_called_is_refused() -> None:
    constraint: Any = "a < b"
    with pytest.raises(DefinitionError, match="A constraint is a function of parameters, not 'a < b'"):
        Fuzzer([FuzzedParameter("a", 1, 2, "uniform")], [], constraints=[constraint])


def test_constraints_hold_for_all_that_is_drawn() -> None:
    parameters = [FuzzedParameter(name, 1, 9, "uniform") for name in "abc"]
    fuzzer = Fuzzer(parameters, [], constraints=[lambda a, b: a < b, lambda params: params["c"] % 2 == 0], seed=0)
    drawn = [*fuzzer.parameters(200), *(fuzzer.draft(i).params for i in range(200))]
    assert all(p["a"] < p["b"] and p["c"] % 2 == 0 for p in drawn)


def test_an_error_in_a_constraint_is_the_users_to_see() -> None:
    fuzzer = Fuzzer([FuzzedParameter("a", 1, 9, "uniform")], [], constraints=[lambda a: 1 / 0], seed=0)
    with pytest.raises(ZeroDivisionError):
        fuzzer.draft(0)


def test_a_constraint_is_called_by_its_name_and_place() -> None:
    line = by_keyword.__code__.co_firstlineno
    assert name_constraint(by_keyword) == f"by_keyword ({__file__}, line {line})"
    assert name_constraint(Checker().method).startswith("Checker.method (")
    assert "functools.partial" in name_constraint(functools.partial(by_keyword, a=1))


def test_a_condition_that_fails_on_what_others_keep_from_it_does_not_count() -> None:
    assert refuses(lambda params: False, {"a": 0})
    assert not refuses(lambda params: True, {"a": 0})
    assert not refuses(lambda params: 1 / params["a"] > 0, {"a": 0})
