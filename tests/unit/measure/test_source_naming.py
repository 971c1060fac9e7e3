from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from torchmark.measure import source
from torchmark.measure.source import name_callable


def ordinary() -> None: ...


class Worker:
    def __call__(self) -> None: ...

    def method(self) -> None: ...


@pytest.fixture(autouse=True)
def no_names_given_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_bearers", {})
    monkeypatch.setattr(source, "_given", {})


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (ordinary, "ordinary()"),
        (Worker(), "Worker()"),
        (Worker().method, "Worker.method()"),
        (len, "len()"),
        (functools.partial(ordinary), "ordinary()"),
        (functools.partial(max, 3, key=len), "max(3, key=<builtin_function_or_method>)"),
        (functools.partial(len, "x" * 50), "len('xxxxxxxxxxxxxxxx...)"),
    ],
)
def test_names(call: Callable[[], Any], name: str) -> None:
    assert name_callable(call) == name


def test_lambdas_on_different_lines_have_different_names() -> None:
    one = lambda: 1  # noqa: E731
    two = lambda: 1  # noqa: E731
    assert name_callable(one) != name_callable(two)
    assert "test_source_naming.py:" in name_callable(one)


def test_functions_made_in_a_loop_are_named_by_what_they_captured() -> None:
    made = [(lambda n=n: n) for n in (1, 2)]
    assert [name_callable(f).rpartition(" ")[2] for f in made] == ["[n=1]", "[n=2]"]


def closure(size: int, thing: object) -> Callable[[], object]:
    def call() -> object:
        return size, thing

    return call


def test_closures_are_named_by_their_plain_values_only() -> None:
    assert name_callable(closure(64, object())).endswith("[size=64]")


def distinct_pairs() -> list[tuple[Callable[[], Any], Callable[[], Any]]]:
    one_line = (lambda: 1), (lambda: 2)
    workers = Worker(), Worker()
    return [
        one_line,
        (closure(1, object()), closure(1, object())),
        workers,
        (workers[0].method, workers[1].method),
        (functools.partial(id, object()), functools.partial(id, object())),
    ]


@pytest.mark.parametrize(("one", "two"), distinct_pairs())
def test_different_callables_never_share_a_name(one: Callable[[], Any], two: Callable[[], Any]) -> None:
    first, second = name_callable(one), name_callable(two)
    assert second == f"{first} #2"


def test_a_name_is_not_given_again_when_its_bearer_is_gone() -> None:
    names = [name_callable(Worker()) for _ in range(3)]
    assert names == ["Worker()", "Worker() #2", "Worker() #3"]


def test_the_same_callable_keeps_its_name() -> None:
    worker, thing = Worker(), object()
    assert name_callable(worker.method) == name_callable(worker.method)
    assert name_callable(ordinary) == name_callable(ordinary)
    kept = closure(5, thing)
    assert name_callable(kept) == name_callable(closure(5, thing))


def test_callables_that_take_turns_keep_their_names() -> None:
    one, two = Worker(), Worker()
    assert [name_callable(w) for w in (one, two, one, two)] == ["Worker()", "Worker() #2"] * 2


def test_a_closure_over_what_is_not_there_yet_has_a_name() -> None:
    call = lambda: later()  # noqa: E731
    assert name_callable(call).startswith("test_a_closure_over_what_is_not_there_yet_has_a_name.<lambda>()")

    def later() -> None: ...
