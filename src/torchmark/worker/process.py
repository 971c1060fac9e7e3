"""The system calls of a worker: threads, groups, descendants, and what became of a process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
import traceback

from torchmark.errors import SnippetError
from torchmark.measure.source import user_traceback
from torchmark.model.outcome import FailureKind
from torchmark.worker.protocol import Failed

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

# A message may quote what the user's code computed; a traceback may be of a recursion without end.
LONGEST_TEXT = 20_000

# How long to wait for descendants that were killed; they have nothing left to do but to go.
REAPING_S = 5.0

_libc = ctypes.CDLL(None)


def count_threads() -> int:
    """The threads of this process, also those that Python does not know of."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that none is lost from sight."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def volunteer_for_oom() -> None:
    """When memory runs out, the system is to end this process, and not its parents or others."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def release_free_memory() -> None:
    """Give back what the heap does not use, where the C library can."""
    trim = getattr(_libc, "malloc_trim", None)
    if trim is not None:
        trim(0)


def end_group(pid: int) -> None:
    """Kill a child and its process group.

    The child must not have been waited for yet: its number stands for its group until then.
    """
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def reap_others() -> None:
    """End all children of this process; adopted ones may turn up one after the other."""
    end = time.monotonic() + REAPING_S
    while time.monotonic() < end:
        for pid in _children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            time.sleep(0.001)


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def failure_of(error: BaseException) -> Failed:
    """An exception of the user's code as a message. The traceback starts at the user's own first line."""
    try:
        return _failure_of(error)
    except Exception as other:
        # An exception that cannot even be shown.
        return Failed(FailureKind.RAISED.value, f"{type(error).__name__}, which cannot be shown: {other!r}", None)


def _failure_of(error: BaseException) -> Failed:
    if isinstance(error, SystemExit):
        kind, text = FailureKind.EXITED, f"exited with code {0 if error.code is None else error.code}"
    # torch's allocator for the CPU raises a plain RuntimeError with this text.
    elif isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error)):
        kind, text = FailureKind.OUT_OF_MEMORY, _last_line(error)
    elif isinstance(error, SnippetError):
        # Compiled code has no traceback.
        kind = FailureKind.OUT_OF_MEMORY if "std::bad_alloc" in str(error) else FailureKind.RAISED
        return Failed(kind.value, str(error)[:LONGEST_TEXT], None)
    else:
        kind, text = FailureKind.RAISED, _last_line(error)
    return Failed(kind.value, text[:LONGEST_TEXT], _shorten(user_traceback(error)))


def _last_line(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(type(error), error)).strip()


def _shorten(text: str) -> str:
    half = LONGEST_TEXT // 2
    return text if len(text) <= LONGEST_TEXT else f"{text[:half]}\n  ...\n{text[-half:]}"
