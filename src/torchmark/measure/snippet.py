"""From a statement and its setup to a loop that can be timed, or to a program that runs it over and over."""

from __future__ import annotations

import ast
import contextlib
import gc
import itertools
import linecache
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from types import CodeType
from typing import Any, Optional, Union

from torchmark.measure.source import (
    LOOP_NAME,
    SETUP_NAME,
    STMT_NAME,
    SourceFile,
    has_user_frames,
    open_source,
    source_lines,
)
from torchmark.measure.steps import R, Steps, carry_out


def parse_text(text: str, name: str) -> ast.Module:
    """The tree of a text that is a complete module by itself; errors and warnings call it by this name."""
    try:
        compile(text, name, "exec", dont_inherit=True)
    except SyntaxError as error:
        # Found after parsing (`return` outside a function, say), when Python no longer has the text at hand.
        if error.text is None and error.lineno is not None:
            error.text = source_lines(text)[error.lineno - 1]
        raise
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        # Null bytes, lone surrogates, nesting without end: not a text that Python can compile either.
        raise SyntaxError(f"{name} cannot be compiled: {error}") from None
    with warned_already():
        return ast.parse(text, name)


def run_setup(setup: str, namespace: dict[str, Any], name: str = SETUP_NAME) -> SourceFile:
    """Run a setup at the top level of a module: what it assigns is in `namespace` afterwards; errors call it `name`.

    What is given must live as long as what the setup defines, or tracebacks lose their lines. It is known to them from
    before the setup runs, so that they have the lines of a setup that fails, too.
    """
    tree = parse_text(setup, name)
    source = open_source("", setup, name)
    with warned_already():
        code = compile(tree, source.name, "exec", dont_inherit=True)
    exec(code, namespace)
    return source


@contextlib.contextmanager
def warned_already() -> Iterator[None]:
    """For compiling a text once more: its warnings have been given with the user's own line numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


Clock = Callable[[], float]
Loop = Generator[float, Iterator[Any], None]
Statement = Union[str, Callable[[], Any]]
MakeLoop = Callable[[Clock, Optional[Callable[[], Any]]], Loop]


# The names start with an underscore and are long, so that they do not meet the user's. The last `pass` of the
# loop, as timeit has it, gives the jump back a line of its own: a statement that is `pass` costs what it costs there.
_TEMPLATE = f"""
def {LOOP_NAME}(_torchmark_clock, _torchmark_call):
    _SETUP_GOES_HERE_
    _torchmark_elapsed = 0.0
    while True:
        _torchmark_runs = yield _torchmark_elapsed
        _torchmark_start = _torchmark_clock()
        for _torchmark_run in _torchmark_runs:
            _STMT_GOES_HERE_
            pass
        _torchmark_elapsed = _torchmark_clock() - _torchmark_start
"""

# A callable reaches the loop as an argument: a fast local, like what a setup assigns.
CALL_TEXT = "_torchmark_call()"


class SnippetTimer:
    """Times a statement, with the cyclic garbage collector off unless the setup switches it on.

    The setup runs anew before each block, except inside `one_setup`. Tracebacks call the statement `stmt_name`.

    >>> SnippetTimer("total += 1", "total = 0").timeit(1000) > 0
    True
    """

    def __init__(
        self,
        stmt: Statement = "pass",
        setup: str = "pass",
        timer: Clock = time.perf_counter,
        globals: dict[str, Any] | None = None,
        stmt_name: str = STMT_NAME,
    ) -> None:
        self._call = None if isinstance(stmt, str) else stmt
        text = stmt if isinstance(stmt, str) else CALL_TEXT
        # The source must live as long as the loop, or tracebacks lose their lines.
        self._make_loop, self._source = compile_loop(text, setup, dict(globals or {}), stmt_name)
        self.code: CodeType = self._make_loop.__code__
        """What runs, setup and loop."""
        self._clock = timer
        self._keeping = False
        # A loop whose setup has run, and whether that setup left the garbage collector on.
        self._kept: tuple[Loop, bool] | None = None

    @contextlib.contextmanager
    def one_setup(self) -> Iterator[None]:
        """All blocks timed inside share one run of the setup; what it made is let go at the end."""
        if self._keeping:
            yield
            return
        self._keeping = True
        try:
            yield
        finally:
            self._keeping, self._kept = False, None

    def follow(self, steps: Steps[R]) -> R:
        with self.one_setup():
            return carry_out(self, steps)

    def timeit(self, number: int) -> float:
        collecting = gc.isenabled()
        gc.disable()
        try:
            return self._timeit(number)
        except RuntimeError as error:
            # Python reports a StopIteration that leaves a generator as a RuntimeError raised where the generator
            # was resumed; give the user's back. A RuntimeError of the user's has passed through the snippet.
            if isinstance(error.__cause__, StopIteration) and not has_user_frames(error):
                raise error.__cause__ from None
            raise
        finally:
            (gc.enable if collecting else gc.disable)()

    def _timeit(self, number: int) -> float:
        # Taken out while it runs: a loop that raised cannot be resumed.
        ready, self._kept = self._kept or self._prepare(), None
        loop, collecting = ready
        (gc.enable if collecting else gc.disable)()
        elapsed = loop.send(itertools.repeat(None, number))
        if self._keeping:
            self._kept = ready
        return elapsed

    def _prepare(self) -> tuple[Loop, bool]:
        loop = self._make_loop(self._clock, self._call)
        next(loop)
        return loop, gc.isenabled()


def compile_loop(
    stmt: str, setup: str, namespace: dict[str, Any], stmt_name: str = STMT_NAME
) -> tuple[MakeLoop, SourceFile]:
    """Compile both texts into one generator function whose globals are `namespace`.

    The texts are joined as syntax trees, never as strings: indentation inside a string literal survives, and
    every line keeps its number. Whatever is not a complete module by itself (`return`, a stray `else`) is the
    SyntaxError that Python gives for it.
    """
    parts = {"_SETUP_GOES_HERE_": parse_text(setup, SETUP_NAME), "_STMT_GOES_HERE_": parse_text(stmt, stmt_name)}
    source = open_source(setup, stmt, stmt_name)
    ast.increment_lineno(parts["_STMT_GOES_HERE_"], source.stmt_offset)
    tree = ast.fix_missing_locations(Fill(parts).visit(ast.parse(_TEMPLATE)))
    try:
        with warned_already():
            code = compile(tree, source.name, "exec")
    except SyntaxError as error:
        # Fine as a module but not inside a function, such as `from x import *`.
        if error.lineno is not None:
            error.text = linecache.getline(source.name, error.lineno)
            error.filename, error.lineno = source.locate(error.lineno)
        raise
    exec(code, namespace)
    make_loop: MakeLoop = namespace.pop(LOOP_NAME)
    return make_loop, source


class Fill(ast.NodeTransformer):
    """Replaces each placeholder expression by the statements of the tree it stands for."""

    def __init__(self, parts: dict[str, ast.Module]) -> None:
        self._parts = parts

    def visit_Expr(self, node: ast.Expr) -> Any:
        """Swap the placeholder; `pass` stands for a text without statements."""
        if isinstance(node.value, ast.Name) and node.value.id in self._parts:
            return self._parts[node.value.id].body or [ast.Pass()]
        return node


# Blocks grow until one takes ten milliseconds, so that reading the clock does not show. The setup runs before
# `_torchmark_measure`, and is known by that.
_SCRIPT = """
import sys
import time

import torch


def _torchmark_loop(_torchmark_clock, _torchmark_seconds):
    _SETUP_GOES_HERE_
    yield
    _torchmark_number = 1
    _torchmark_end = _torchmark_clock() + _torchmark_seconds
    while True:
        _torchmark_start = _torchmark_clock()
        if _torchmark_start > _torchmark_end:
            break
        for _torchmark_run in range(_torchmark_number):
            _STMT_GOES_HERE_
        if _torchmark_clock() - _torchmark_start < 0.01:
            _torchmark_number *= 2


def _torchmark_measure(loop):
    next(loop, None)


sys.path[0] = sys.argv[1]
torch.set_num_threads(int(sys.argv[2]))
prepared = _torchmark_loop(time.perf_counter, float(sys.argv[3]))
next(prepared)
_torchmark_measure(prepared)
"""


def write_script(stmt: str, setup: str) -> str:
    """The program. Its arguments are the working folder, the number of threads, and for how many seconds to run.

    The texts are joined as syntax trees, so strings stay whole.

    >>> print(*write_script("x + 1", "x = 'a'").splitlines()[4:7], sep="\\n")
    def _torchmark_loop(_torchmark_clock, _torchmark_seconds):
        x = 'a'
        yield
    """
    parts = {"_SETUP_GOES_HERE_": parse_text(setup, SETUP_NAME), "_STMT_GOES_HERE_": parse_text(stmt, STMT_NAME)}
    return ast.unparse(ast.fix_missing_locations(Fill(parts).visit(ast.parse(_SCRIPT))))
