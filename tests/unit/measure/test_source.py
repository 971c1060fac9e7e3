from __future__ import annotations

import gc
import linecache

from torchmark.measure.snippet import SnippetTimer
from torchmark.measure.source import has_user_frames, open_source, user_traceback


def failure(stmt: str, setup: str = "pass") -> tuple[SnippetTimer | None, BaseException]:
    engine = None
    try:
        engine = SnippetTimer(stmt, setup)
        engine.timeit(1)
    except Exception as error:
        return engine, error
    raise AssertionError("the snippet did not fail")


def test_the_traceback_shows_the_users_line_and_none_of_ours() -> None:
    _engine, error = failure("x = 1\nx + missing", "a = 1\nb = 2")
    assert user_traceback(error) == (
        "Traceback (most recent call last):\n"
        '  File "<stmt>", line 2, in <module>\n'
        "    x + missing\n"
        "NameError: name 'missing' is not defined\n"
    )


def test_an_error_in_the_setup_is_told_as_such() -> None:
    _engine, error = failure("pass", "a = 1\nb = a / 0")
    assert '  File "<setup>", line 2, in <module>\n    b = a / 0\n' in user_traceback(error)


def test_functions_that_the_user_calls_stay_in_the_traceback() -> None:
    _engine, error = failure("json.loads('{')", "import json")
    text = user_traceback(error)
    assert text.index('"<stmt>", line 1') < text.index("json")
    assert "torchmark" not in text


def test_the_cause_of_an_error_is_shown_too() -> None:
    _engine, error = failure("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('v') from e")
    text = user_traceback(error)
    assert '"<stmt>", line 2' in text
    assert "direct cause" in text
    assert '"<stmt>", line 4' in text


def test_a_syntax_error_has_no_frames() -> None:
    _engine, error = failure("x +* 1")
    assert user_traceback(error).startswith('  File "<stmt>", line 1\n    x +* 1\n')
    assert not has_user_frames(error)


def test_errors_are_the_users_only_if_they_passed_through_a_snippet() -> None:
    _engine, error = failure("1 / 0")
    assert has_user_frames(error)
    assert not has_user_frames(ValueError("ours"))


def test_the_virtual_file_goes_when_its_snippet_does() -> None:
    source = open_source("a = 1", "b = 2")
    name = source.name
    assert linecache.getline(name, 2) == "b = 2\n"
    linecache.checkcache()
    assert name in linecache.cache
    del source
    gc.collect()
    assert name not in linecache.cache
