"""Processes: owners of folders, scratch folders, a guard that outlives the program, and how an interrupt stops one."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

_SCRATCH = re.compile(r"torchmark-(\d+)-(\d+)-(\d+)-")


@dataclasses.dataclass(frozen=True)
class Owner:
    """A process of some machine. Numbers of processes are used again, by other boots and other containers too."""

    boot: str
    """What the kernel calls this time of being up; no other machine has the same."""
    namespace: int
    """Within which its number counts."""
    pid: int
    started: int
    """In ticks since boot."""


def this_process() -> Owner:
    boot, pid = "", os.getpid()
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return Owner(boot, read_namespace() or 0, pid, read_start(pid) or 0)


def is_alive(owner: Owner) -> bool:
    """Whether that process still runs, as far as can be told from here.

    Of processes in other containers and on other machines nothing is known; they count as gone.
    """
    here = this_process()
    return (owner.boot, owner.namespace) == (here.boot, here.namespace) and read_start(owner.pid) == owner.started


def read_namespace() -> int | None:
    """The number of the namespace that processes are numbered in."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return None


def read_start(pid: int) -> int | None:
    """When a process started, in ticks since boot; None if there is none, or one that has only not been waited for."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name of the program, in brackets, may contain anything; the start is the 20th field after it.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def make_scratch() -> Path:
    """A new folder whose name tells its owner, after removing those whose owners are gone without a farewell."""
    sweep(Path(tempfile.gettempdir()))
    return Path(tempfile.mkdtemp(prefix=name_scratch()))


def name_scratch() -> str:
    """What the names of this process's scratch folders begin with, so that they can be removed when it is gone.

    It has the same length for every process: a worker that is told it has the same heap then.
    """
    pid = os.getpid()
    return f"torchmark-{pid:010}-{read_start(pid) or 0:020}-{read_namespace() or 0:020}-"


def sweep(parent: Path) -> None:
    """Remove scratch folders of ours that belong to no living process.

    A container that shares the folder numbers its processes itself: of those nothing is known here.
    """
    here = read_namespace()
    if here is None:
        return
    for path in parent.glob("torchmark-*-*-*-*"):
        match = _SCRATCH.match(path.name)
        with contextlib.suppress(OSError):
            if not match or int(match[3]) != here or path.stat().st_uid != os.getuid():
                continue
            if read_start(int(match[1])) != int(match[2]):
                shutil.rmtree(path, ignore_errors=True)


# A guard waits at a pipe whose other end only this program has. If that is closed without a word, this program is gone
# and nobody else is left to end what it has started.
_STAND_BY = """
import os, signal, sys

def stand_by(pipe, group, folder):
    if os.read(pipe, 1):
        return
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
    if folder:
        import shutil
        shutil.rmtree(folder, ignore_errors=True)
"""
# Becomes the program, and leaves a guard behind, which is outside the group that it is to end and keeps no stream open.
_BECOME = f"""{_STAND_BY}
pipe, folder, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
group = os.getpid()
if os.fork() == 0:
    os.setpgid(0, 0)
    for stream in range(3):
        os.dup2(os.open(os.devnull, os.O_RDWR), stream)
    stand_by(pipe, group, folder)
    os._exit(0)
os.close(pipe)
try:
    os.execvp(command[0], command)
except OSError as error:
    sys.exit("%s cannot be started: %s." % (command[0], error.strerror))
"""
_WATCH = f"{_STAND_BY}\nstand_by(0, int(sys.argv[1]), sys.argv[2])"


@contextlib.contextmanager
def run_guarded(
    command: Sequence[str], *, folder: Path | None = None, **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program in a process group of its own. At the end of the block the whole group is ended, or should this
    program be killed before; then the folder is removed too. The options are those of `subprocess.Popen`."""
    read, write = os.pipe()
    process = None
    try:
        become = [*_own_python(_BECOME), str(read), str(folder or "")]
        process = subprocess.Popen(
            [*(become if _has_python() else []), *command], start_new_session=True, pass_fds=[read], **options
        )
        yield process
    finally:
        # An interrupt may have come while it was started, so that it is not known here. The guard knows it.
        if process is not None:
            # Also if the program has ended by itself: what it started may still run. While it does, no other group has
            # this number.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
            os.write(write, b".")
        os.close(read)
        os.close(write)


@contextlib.contextmanager
def guarded(group: int, folder: Path) -> Iterator[None]:
    """Within this, a guard stands by for a process group that was started otherwise, because nothing about its program
    may differ: not its environment, and not its children."""
    if not _has_python():
        yield
        return
    guard = subprocess.Popen(
        [*_own_python(_WATCH), str(group), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    try:
        yield
    finally:
        guard.kill()
        guard.wait()
        assert guard.stdin is not None
        guard.stdin.close()


def _own_python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


def _has_python() -> bool:
    """A program that embeds Python may have no interpreter to start. Then there is no guard."""
    return bool(sys.executable) and os.access(sys.executable, os.X_OK)


STOPPING = "\nStopping when what has begun is done. Interrupt again to stop at once.\n"


class StopRequest:
    """Whether what has not begun yet shall not begin any more. Can be said from anywhere, also from a signal."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def request(self) -> None:
        self._event.set()

    @property
    def requested(self) -> bool:
        return self._event.is_set()


class Terminated(KeyboardInterrupt):
    """The system or an administrator asked this program to end; `number` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextlib.contextmanager
def interrupts_stop(stop: StopRequest) -> Iterator[None]:
    """Within this, an interrupt requests a stop, a second one is a KeyboardInterrupt, and so is an order to end."""
    if threading.current_thread() is not threading.main_thread():
        # Only there can signals be handled.
        yield
        return

    interrupted = ending = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        if interrupted:
            raise KeyboardInterrupt
        interrupted = True
        stop.request()
        with contextlib.suppress(OSError, AttributeError, ValueError):
            # Not by way of a stream that may be in the middle of writing.
            os.write(sys.stderr.fileno(), STOPPING.encode())

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal ending
        # A terminal that is closed says so more than once. Whoever is ending already is not to be kept from it.
        if not ending:
            ending = True
            raise Terminated(number)

    with contextlib.ExitStack() as stack:
        for number, handler in ((signal.SIGINT, interrupt), (signal.SIGTERM, end), (signal.SIGHUP, end)):
            # Who was started with an interrupt ignored, as by nohup, goes on ignoring it.
            if signal.getsignal(number) is not signal.SIG_IGN:
                stack.callback(signal.signal, number, signal.signal(number, handler))
        yield


# Python has a ready-made object for each number up to this one.
LARGEST_KEPT = 256

_TAKE_SMALL_PIDS = f"""
import os
for _ in range({2 * LARGEST_KEPT}):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    if pid > {LARGEST_KEPT}:
        break
"""


def skip_small_pids() -> None:
    """Use up the small numbers that the first processes of a container have.

    Modules note the number of their process while they are imported. Where that is one of those that Python keeps, no
    memory is needed for it, all that follows lies elsewhere, and counts differ from those of later workers.
    """
    if os.getpid() <= LARGEST_KEPT:
        # Should it fail, the worker that is started next has a small number; that is all.
        subprocess.run(_own_python(_TAKE_SMALL_PIDS), timeout=60.0, check=False)
