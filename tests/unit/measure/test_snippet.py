from __future__ import annotations

import contextlib
import gc
import inspect
import weakref
from typing import Any

import pytest

from torchmark.measure.snippet import SnippetTimer


def run(stmt: Any, setup: str = "pass", number: int = 3, blocks: int = 1) -> list[Any]:
    """Time blocks and give back what the snippet appended to `log`."""
    log: list[Any] = []
    engine = SnippetTimer(stmt, setup, globals={"log": log})
    for _ in range(blocks):
        engine.timeit(number)
    return log


def test_the_statement_runs_as_often_as_asked_and_not_more() -> None:
    assert run("log.append(1)", number=7) == [1] * 7
    assert run("log.append(1)", number=0) == []


def test_the_setup_runs_before_each_block() -> None:
    assert run("i += 1; log.append(i)", "i = 0", number=2, blocks=2) == [1, 2, 1, 2]


def test_blocks_can_share_one_setup() -> None:
    log: list[int] = []
    engine = SnippetTimer("i += 1; log.append(i)", "i = 0", globals={"log": log})
    with engine.one_setup():
        engine.timeit(2)
        with engine.one_setup():
            engine.timeit(2)
        engine.timeit(1)
    engine.timeit(1)
    assert log == [1, 2, 3, 4, 5, 1]


def test_what_a_shared_setup_made_is_let_go_at_the_end() -> None:
    class Big: ...

    made: weakref.WeakSet[Big] = weakref.WeakSet()
    engine = SnippetTimer("pass", "big = Big(); made.add(big)", globals={"Big": Big, "made": made})
    with engine.one_setup():
        engine.timeit(1)
        assert len(made) == 1
    assert len(made) == 0


def test_what_the_setup_assigns_is_a_fast_local() -> None:
    log = run("log.append(sys._getframe().f_locals['value'])", "import sys; value = 5", number=1)
    assert log == [5]


def test_the_time_is_the_difference_of_two_clock_reads() -> None:
    ticks = iter([10.0, 12.5])
    assert SnippetTimer("pass", timer=lambda: next(ticks)).timeit(100) == 2.5
    assert list(ticks) == []


def test_the_collector_is_off_while_the_statement_runs_and_then_as_before() -> None:
    assert run("log.append(gc.isenabled())", "import gc", number=1) == [False]
    assert gc.isenabled()
    gc.disable()
    try:
        run("pass")
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("kept", [False, True])
def test_a_setup_may_switch_the_collector_on(kept: bool) -> None:
    log: list[bool] = []
    engine = SnippetTimer("log.append(gc.isenabled())", "import gc; gc.enable()", globals={"log": log})
    with engine.one_setup() if kept else contextlib.nullcontext():
        engine.timeit(1)
        engine.timeit(1)
    assert log == [True, True]


def test_a_setup_that_switches_the_collector_off_does_not_do_so_for_the_caller() -> None:
    run("pass", "import gc; gc.disable()")
    assert gc.isenabled()


def test_the_collector_comes_back_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        run("1 / 0")
    assert gc.isenabled()


def test_an_engine_works_again_after_an_error() -> None:
    engine = SnippetTimer("i += 1\nif i == 2: raise ValueError(i)", "i = 0")
    with engine.one_setup():
        with pytest.raises(ValueError, match="2"):
            engine.timeit(5)
        assert engine.timeit(1) > 0


def test_a_callable_is_called_without_arguments() -> None:
    calls: list[int] = []
    SnippetTimer(lambda: calls.append(1)).timeit(4)
    assert calls == [1] * 4


def test_string_literals_keep_their_indentation() -> None:
    assert run('log.append("""a\n  b\nc""")', number=1) == ["a\n  b\nc"]


def test_a_text_without_statements_is_fine() -> None:
    assert run("# nothing here", "# nor here") == []


def test_the_callers_namespace_is_left_alone() -> None:
    namespace: dict[str, Any] = {}
    SnippetTimer("x = 1", globals=namespace).timeit(1)
    assert namespace == {}


def test_functions_defined_in_a_setup_have_source() -> None:
    setup = "import inspect\n\ndef f(x):\n    return x + 1"
    assert run("log.append(inspect.getsource(f))", setup, number=1) == ["def f(x):\n    return x + 1\n"]


def test_a_comprehension_sees_the_setups_names() -> None:
    assert run("log.append([x + i for i in range(2)])", "x = 1", number=1) == [[1, 2]]


@pytest.mark.parametrize(
    ("stmt", "setup", "filename", "line", "text"),
    [
        ("x +* 1", "pass", "<stmt>", 1, "x +* 1"),
        ("pass\nreturn 1", "pass", "<stmt>", 2, "return 1"),
        ("yield 1", "pass", "<stmt>", 1, "yield 1"),
        ("pass", "x = 1\nbreak", "<setup>", 2, "break"),
        ("pass", "x = 1\nfrom os import *", "<setup>", 2, "from os import *"),
        ("x = 1\nfrom os import *", "pass", "<stmt>", 2, "from os import *"),
    ],
)
def test_syntax_errors_name_the_users_own_line(stmt: str, setup: str, filename: str, line: int, text: str) -> None:
    with pytest.raises(SyntaxError) as caught:
        SnippetTimer(stmt, setup)
    assert (caught.value.filename, caught.value.lineno) == (filename, line)
    assert (caught.value.text or "").strip() == text


@pytest.mark.parametrize(("stmt", "setup"), [("next(iter([]))", "pass"), ("pass", "next(iter([]))")])
def test_a_stop_iteration_stays_one(stmt: str, setup: str) -> None:
    with pytest.raises(StopIteration):
        SnippetTimer(stmt, setup).timeit(1)


@pytest.mark.parametrize(
    "stmt",
    [
        "raise RuntimeError('mine')",
        "raise RuntimeError('mine') from StopIteration()",
        "def leaky():\n    next(iter([]))\n    yield 'mine'\nlist(leaky())",
    ],
)
def test_a_runtime_error_of_the_users_stays_as_it_is(stmt: str) -> None:
    with pytest.raises(RuntimeError, match=r"mine|generator raised StopIteration"):
        SnippetTimer(stmt).timeit(1)


@pytest.mark.parametrize("text", ["x = '\0'", "x = '\udcff'", "(" * 500 + ")" * 500])
def test_what_cannot_be_compiled_at_all_is_a_syntax_error(text: str) -> None:
    with pytest.raises(SyntaxError):
        SnippetTimer(text)


def test_a_warning_is_given_once_and_with_the_users_line() -> None:
    with pytest.warns(SyntaxWarning) as caught:
        SnippetTimer("pass\n1 is 1", "x = 1")
    assert [(w.filename, w.lineno) for w in caught] == [("<stmt>", 2)]


def test_the_signature_is_that_of_the_seam() -> None:
    names = list(inspect.signature(SnippetTimer).parameters)
    assert names[:4] == ["stmt", "setup", "timer", "globals"]
