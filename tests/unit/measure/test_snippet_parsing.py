from __future__ import annotations

import inspect
from typing import Any

import pytest

from torchmark.measure.snippet import parse_text, run_setup
from torchmark.measure.source import user_traceback


def test_what_a_setup_assigns_is_global() -> None:
    namespace: dict[str, Any] = {"given": 2}
    run_setup("from math import *\nx = given + 1\ndef f(): return x", namespace)
    assert namespace["x"] == namespace["f"]() == 3
    assert namespace["ceil"](1.5) == 2


def test_functions_of_a_setup_have_source_while_its_source_lives() -> None:
    namespace: dict[str, Any] = {}
    source = run_setup("x = 1\ndef f():\n    return x", namespace)
    assert inspect.getsource(namespace["f"]) == "def f():\n    return x\n"
    del source
    with pytest.raises(OSError, match="source"):
        inspect.getsource(namespace["f"])


def test_an_error_of_a_setup_has_the_users_line() -> None:
    with pytest.raises(NameError) as caught:
        run_setup("x = 1\nmissing", {})
    assert '  File "<setup>", line 2, in <module>\n    missing\n' in user_traceback(caught.value)


def test_a_warning_is_given_once_and_with_the_users_line() -> None:
    with pytest.warns(SyntaxWarning) as caught:
        run_setup("pass\n1 is 1", {})
    assert [(w.filename, w.lineno) for w in caught] == [("<setup>", 2)]


@pytest.mark.parametrize("text", ["x = = 1", "return"])
def test_what_is_no_module_by_itself_is_a_syntax_error_that_names_the_text(text: str) -> None:
    with pytest.raises(SyntaxError) as caught:
        parse_text(text, "<stmt 3>")
    assert caught.value.filename == "<stmt 3>"
