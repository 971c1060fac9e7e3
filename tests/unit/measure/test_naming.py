from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from torchmark.measure.naming import name_callable


def ordinary() -> None: ...


class Worker:
    def __call__(self) -> None: ...

    def method(self) -> None: ...


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
    assert "test_naming.py:" in name_callable(one)


def test_functions_made_in_a_loop_are_named_by_what_they_captured() -> None:
    made = [(lambda n=n: n) for n in (1, 2)]
    assert [name_callable(f).rpartition(" ")[2] for f in made] == ["[n=1]", "[n=2]"]


def test_closures_are_named_by_their_plain_values_only() -> None:
    def make(size: int, tensor: object) -> Callable[[], object]:
        def call() -> object:
            return size, tensor

        return call

    assert name_callable(make(64, object())).endswith("[size=64]")
