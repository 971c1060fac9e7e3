"""The text of snippets as a virtual file, so that tracebacks and `inspect.getsource` show the user's own lines.

Setup and statement live in one compiled function and hence in one virtual file: setup first, statement below.
"""

from __future__ import annotations

import dataclasses
import itertools
import linecache
import traceback
import weakref

_numbers = itertools.count(1)
_files: weakref.WeakValueDictionary[str, SourceFile] = weakref.WeakValueDictionary()


@dataclasses.dataclass(frozen=True)
class SourceFile:
    """Setup above statement, known to `linecache` under `name` for as long as this object lives."""

    name: str
    setup: str
    stmt: str

    @property
    def stmt_offset(self) -> int:
        """How many lines stand before the statement's first."""
        return len(self.setup.splitlines())

    def locate(self, line: int) -> tuple[str, int]:
        """Which text a line of the virtual file belongs to, and its number there.

        >>> open_source("a = 1\\nb = 2", "a + b").locate(3)
        ('<stmt>', 1)
        """
        if line > self.stmt_offset:
            return "<stmt>", line - self.stmt_offset
        return "<setup>", line


def open_source(setup: str, stmt: str) -> SourceFile:
    """Register the two texts as one virtual file."""
    source = SourceFile(f"<torchmark snippet {next(_numbers)}>", setup, stmt)
    lines = [f"{line}\n" for text in (setup, stmt) for line in text.splitlines()]
    # A modification time of None keeps linecache.checkcache() from dropping a file that is on no disk.
    linecache.cache[source.name] = (sum(map(len, lines)), None, lines, source.name)
    _files[source.name] = source
    weakref.finalize(source, linecache.cache.pop, source.name, None)
    return source


def user_traceback(error: BaseException) -> str:
    """The traceback from the user's own first line on, with line numbers of the text that the user wrote.

    An error with no frame of the user's (a syntax error, say) is given without any frames.
    """
    summary = traceback.TracebackException.from_exception(error)
    part: traceback.TracebackException | None = summary
    while part is not None:
        part.stack = traceback.StackSummary.from_list(_user_frames(part.stack))
        part = part.__cause__ or part.__context__
    return "".join(summary.format())


def has_user_frames(error: BaseException) -> bool:
    """Whether the error passed through a snippet, so that it is the user's and not torchmark's own."""
    return any(frame.f_code.co_filename in _files for frame, _ in traceback.walk_tb(error.__traceback__))


def _user_frames(stack: traceback.StackSummary) -> list[traceback.FrameSummary]:
    names = [frame.filename for frame in stack]
    first = next((i for i, name in enumerate(names) if name in _files), len(names))
    return [_relocate(frame) for frame in list(stack)[first:]]


def _relocate(frame: traceback.FrameSummary) -> traceback.FrameSummary:
    source = _files.get(frame.filename)
    if source is None or frame.lineno is None:
        return frame
    name, line = source.locate(frame.lineno)
    return traceback.FrameSummary(name, line, "<module>", line=frame.line)
