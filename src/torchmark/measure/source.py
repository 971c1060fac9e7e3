"""The text of snippets as a virtual file, so that tracebacks and `inspect.getsource` show the user's own lines.

Setup and statement live in one compiled function and hence in one virtual file: setup first, statement below.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
import linecache
import traceback
import weakref

# What the function that a snippet is compiled into is called; for the user it is the top level of a module.
LOOP_NAME = "_torchmark_loop"
# What tracebacks call a statement, where there is one.
STMT_NAME = "<stmt>"

_numbers = itertools.count(1)
_files: weakref.WeakValueDictionary[str, SourceFile] = weakref.WeakValueDictionary()


@dataclasses.dataclass(frozen=True)
class SourceFile:
    """Setup above statement, known to `linecache` under `name` for as long as this object lives."""

    name: str
    setup: str
    stmt: str
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
        return "<setup>", line


def source_lines(text: str) -> list[str]:
    """The lines of a text as Python counts them: a form feed or a Unicode separator does not end one.

    >>> source_lines("a\\r\\nb\\x0cc")
    ['a\\n', 'b\\x0cc\\n']
    """
    lines = list(io.StringIO(text, newline=None))
    return [line if line.endswith("\n") else f"{line}\n" for line in lines]


def open_source(setup: str, stmt: str, stmt_name: str = STMT_NAME) -> SourceFile:
    """Register the two texts as one virtual file."""
    source = SourceFile(f"<torchmark snippet {next(_numbers)}>", setup, stmt, stmt_name)
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
    parts = [summary.__cause__, summary.__context__, *(getattr(summary, "exceptions", None) or ())]
    for part in parts:
        if part is not None:
            del part.stack[: _first_user_frame(part.stack) or 0]
            _relocate(part)


def _relocate_frame(frame: traceback.FrameSummary) -> traceback.FrameSummary:
    source = _files.get(frame.filename)
    if source is None or frame.lineno is None:
        return frame
    name, line = source.locate(frame.lineno)
    return traceback.FrameSummary(name, line, "<module>" if frame.name == LOOP_NAME else frame.name, line=frame.line)
