"""The text of snippets as virtual files for tracebacks, and the names of callables in results."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import io
import itertools
import linecache
import os
import traceback
import weakref
from collections.abc import Callable
from typing import Any, Optional

# What the function that a snippet is compiled into is called; for the user it is the top level of a module.
LOOP_NAME = "_torchmark_loop"
# What tracebacks call a statement, where there is one.
STMT_NAME = "<stmt>"
SETUP_NAME = "<setup>"

_numbers = itertools.count(1)
_files: weakref.WeakValueDictionary[str, SourceFile] = weakref.WeakValueDictionary()


@dataclasses.dataclass(frozen=True)
class SourceFile:
    """Setup above statement, known to `linecache` under `name` for as long as this object lives."""

    name: str
    setup: str
    stmt_name: str = STMT_NAME

    @property
    def stmt_offset(self) -> int:
        """How many lines stand before the statement's first."""
        return len(source_lines(self.setup))

    def locate(self, line: int) -> tuple[str, int]:
        """Which text a line of the virtual file belongs to, and its number there.

        >>> open_source("a = 1\\nb = 2", "a + b").locate(3)
        ('<stmt>', 1)
        """
        if line > self.stmt_offset:
            return self.stmt_name, line - self.stmt_offset
        return SETUP_NAME, line


def source_lines(text: str) -> list[str]:
    """The lines of a text as Python counts them: a form feed or a Unicode separator does not end one.

    >>> source_lines("a\\r\\nb\\x0cc")
    ['a\\n', 'b\\x0cc\\n']
    """
    return [line if line.endswith("\n") else f"{line}\n" for line in io.StringIO(text, newline=None)]


def open_source(setup: str, stmt: str, stmt_name: str = STMT_NAME) -> SourceFile:
    source = SourceFile(f"<torchmark snippet {next(_numbers)}>", setup, stmt_name)
    lines = source_lines(setup) + source_lines(stmt)
    # A modification time of None keeps linecache.checkcache() from dropping a file that is on no disk.
    linecache.cache[source.name] = (sum(map(len, lines)), None, lines, source.name)
    _files[source.name] = source
    weakref.finalize(source, linecache.cache.pop, source.name, None)
    return source


def locate(file: str, line: int) -> tuple[str, int]:
    """The text that a line of a file belongs to, and its number there, if that is a snippet; else both as they are."""
    source = _files.get(file)
    return (file, line) if source is None else source.locate(line)


def user_traceback(error: BaseException) -> str:
    """The traceback from the user's own first line on, with line numbers of the text that the user wrote.

    An error with no frame of the user's (a syntax error, say) is given without any frames.
    """
    summary = traceback.TracebackException.from_exception(error)
    first = _first_user_frame(summary.stack)
    del summary.stack[: len(summary.stack) if first is None else first]
    _relocate(summary)
    return "".join(summary.format())


def has_user_frames(error: BaseException) -> bool:
    """Whether the error passed through a snippet, so that it is the user's and not torchmark's own."""
    return any(frame.f_code.co_filename in _files for frame, _ in traceback.walk_tb(error.__traceback__))


def _first_user_frame(stack: traceback.StackSummary) -> int | None:
    return next((i for i, frame in enumerate(stack) if frame.filename in _files), None)


def _relocate(summary: traceback.TracebackException) -> None:
    """Give all frames of snippets, also those of causes and of grouped errors, the names that the user knows."""
    summary.stack[:] = [_relocate_frame(frame) for frame in summary.stack]
    for part in (summary.__cause__, summary.__context__, *(getattr(summary, "exceptions", None) or ())):
        if part is not None:
            del part.stack[: _first_user_frame(part.stack) or 0]
            _relocate(part)


def _relocate_frame(frame: traceback.FrameSummary) -> traceback.FrameSummary:
    source = _files.get(frame.filename)
    if source is None or frame.lineno is None:
        return frame
    name, line = source.locate(frame.lineno)
    return traceback.FrameSummary(name, line, "<module>" if frame.name == LOOP_NAME else frame.name, line=frame.line)


# Values of these types say in a few characters what a function was made with.
_TELLING = (bool, int, float, str, bytes, type(None))
_LONGEST_VALUE = 20

Reference = Callable[[], Optional[Callable[[], Any]]]

# For each name, how many callables have had it so far, and those of them that live, by number.
_given: dict[str, int] = {}
_bearers: dict[str, dict[int, Reference]] = {}


def name_callable(call: Callable[[], Any]) -> str:
    """A one-line text that stands for the callable.

    Ordinary functions go by their name; lambdas and inner functions also by their place and the plain values
    they captured. A second callable that would have the same name gets a number behind it.

    >>> name_callable(functools.partial(max, 3, 4))
    'max(3, 4)'
    """
    name = _describe(call)
    living = {n: refer for n, refer in _bearers.get(name, {}).items() if refer() is not None}
    number = next((n for n, refer in living.items() if _is_same(call, refer())), None)
    if number is None:
        number = _given[name] = _given.get(name, 0) + 1
        living[number] = _refer(call)
    _bearers[name] = living
    return name if number == 1 else f"{name} #{number}"


def _describe(call: Callable[[], Any]) -> str:
    if isinstance(call, functools.partial):
        arguments = [_value(v) for v in call.args] + [f"{k}={_value(v)}" for k, v in call.keywords.items()]
        return f"{_plain_name(call.func)}({', '.join(arguments)})"
    name = _plain_name(call)
    if not inspect.isfunction(call) or not ("<lambda>" in name or "<locals>" in name):
        return f"{name}()"
    code = call.__code__
    place = f"{name.replace('<locals>.', '')}() at {os.path.basename(code.co_filename)}:{code.co_firstlineno}"
    telling = [f"{k}={_value(v)}" for k, v in _captured(call).items() if isinstance(v, _TELLING)]
    return f"{place} [{', '.join(telling)}]" if telling else place


def _plain_name(call: Any) -> str:
    return getattr(call, "__qualname__", None) or type(call).__qualname__


def _captured(call: Any) -> dict[str, Any]:
    """What a function brings along: values of its closure and defaults of its parameters."""
    captured = {}
    for name, cell in zip(call.__code__.co_freevars, call.__closure__ or ()):
        try:
            captured[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            captured[name] = cell
    parameters = inspect.signature(call).parameters.values()
    captured.update({p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty})
    return captured


def _value(value: object) -> str:
    if not isinstance(value, _TELLING):
        return f"<{type(value).__name__}>"
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."


def _is_same(one: Any, other: Any) -> bool:
    """Whether two callables are one, or were made alike: the same code with the very same objects."""
    if one is other:
        return True
    if inspect.ismethod(one) and inspect.ismethod(other):
        return one.__self__ is other.__self__ and one.__func__ is other.__func__
    if inspect.isfunction(one) and inspect.isfunction(other):
        mine, yours = _captured(one), _captured(other)
        return (
            one.__code__ is other.__code__
            and mine.keys() == yours.keys()
            and all(map(_identical, mine.values(), yours.values()))
        )
    return False


def _identical(one: object, other: object) -> bool:
    # Equal plain values are interchangeable; two equal tensors are not the same input.
    return one is other or (isinstance(one, _TELLING) and type(one) is type(other) and one == other)


def _refer(call: Callable[[], Any]) -> Reference:
    """A reference that does not keep the callable, and all it holds, alive."""
    try:
        return weakref.WeakMethod(call) if inspect.ismethod(call) else weakref.ref(call)
    except TypeError:
        return lambda: call
