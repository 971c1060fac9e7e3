from __future__ import annotations

import gc
import linecache
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("setup", ["text = '\x0c'\nmissing", "text = '\u2028'\nmissing", "x = 1\r\nmissing"])
def test_lines_are_counted_as_python_counts_them(setup: str) -> None:
    _engine, error = failure("pass", setup)
    assert '  File "<setup>", line 2, in <module>\n    missing\n' in user_traceback(error)


def test_functions_of_a_setup_keep_their_names() -> None:
    _engine, error = failure("f()", "def f():\n    return 1 / 0")
    text = user_traceback(error)
    assert '"<stmt>", line 1, in <module>' in text
    assert '"<setup>", line 2, in f' in text


def test_a_cause_that_never_left_a_library_keeps_its_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "library_of_the_users.py").write_text(
        "def inner():\n    return {}['key']\n\ndef outer():\n    try:\n        inner()\n"
        "    except KeyError as error:\n        raise ValueError('outer') from error\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    _engine, error = failure("library_of_the_users.outer()", "import library_of_the_users")
    text = user_traceback(error)
    assert "in inner" in text.partition("KeyError")[0]
    assert '"<stmt>", line 1' in text


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exception groups came with Python 3.11")
def test_grouped_errors_are_relocated_too() -> None:
    stmt = "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ExceptionGroup('group', [e])"
    _engine, error = failure(stmt)
    text = user_traceback(error)
    assert "torchmark" not in text
    assert '"<stmt>", line 2, in <module>' in text


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


def test_a_statement_can_have_a_name_of_its_own_in_tracebacks() -> None:
    engine = SnippetTimer("pass\nmissing", "pass", stmt_name="<stmt 2>")
    with pytest.raises(NameError) as caught:
        engine.timeit(1)
    assert '  File "<stmt 2>", line 2, in <module>\n    missing\n' in user_traceback(caught.value)
