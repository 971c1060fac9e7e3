"""The connection to one zygote, and the code of the worker that is sent to it.

Apart from `worker.py`: bytes, descriptors and processes here, jobs and their answers there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import functools
import io
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from torchmark.errors import UsageError, WorkerError
from torchmark.model.job import Job, Place
from torchmark.model.outcome import FailureKind
from torchmark.processes import guarded
from torchmark.worker import protocol
from torchmark.worker.protocol import (
    PROTOCOL,
    Ended,
    Failed,
    Go,
    Hello,
    Message,
    Ready,
    Refused,
    Started,
    Stop,
    decode,
    encode,
)

SOURCE = Path(__file__).parents[1]

# The modules that may run in a foreign interpreter.
PORTABLE = ("errors.py", "model", "measure", "stats/distribution.py", "worker")

# The whole of what stands on a worker's command line. Python 2 and old Python 3 must be able to read it, so that they
# can say that they are too old.
#
# The connection is the standard input: any other descriptor has a number that depends on how many files the parent has
# open. Each piece is waited for in the kernel: in how many parts it arrives, which differs, must leave no trace in the
# heap, or two workers would not count the same.
BOOTSTRAP = r"""
import sys
sys.path[:] = [entry for entry in sys.path if entry]
if sys.version_info < (3, 9):
    sys.exit("torchmark needs Python 3.9 or newer there; this is %d.%d." % sys.version_info[:2])

def start():
    import importlib.abc
    import importlib.util
    import json
    import os
    import socket
    import struct

    control = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def read(size):
        data = control.recv(size, socket.MSG_WAITALL)
        return data if len(data) == size else sys.exit(0)

    sources = json.loads(read(struct.unpack("!I", read(4))[0]))

    class _TorchmarkBundle(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
        def find_spec(self, name, path=None, target=None):
            if name in sources:
                return importlib.util.spec_from_loader(name, self, is_package=self.is_package(name))

        def is_package(self, name):
            return any(other.startswith(name + ".") for other in sources)

        def get_source(self, name):
            return sources[name]

        def exec_module(self, module):
            exec(compile(sources[module.__name__], "<" + module.__name__ + ">", "exec"), module.__dict__)

    sys.meta_path.insert(0, _TorchmarkBundle())
    from torchmark.worker.start import main
    main(control)

start()
"""


@functools.lru_cache(maxsize=1)
def make_bundle() -> bytes:
    """The sources of all portable modules by name, as one JSON text."""
    sources = {}
    for part in PORTABLE:
        path = SOURCE / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            names = ("torchmark", *file.relative_to(SOURCE).with_suffix("").parts)
            sources[".".join(names[:-1] if names[-1] == "__init__" else names)] = file.read_text(encoding="utf-8")
            for depth in range(1, len(names)):
                sources.setdefault(".".join(names[:depth]), "")
    return json.dumps(sources).encode()


# Importing torch under Valgrind takes 20 s on a fast machine; a slow one with a cold disk may need ten times that.
START_TIMEOUT_S = 600.0
# A zygote has only to kill a child and to answer. One that does not within this time is not going to.
ANSWER_TIMEOUT_S = 20.0
# A zygote whose parent is gone ends its job and itself; it has nothing else to do.
EXIT_WAIT_S = 5.0
# The system refuses to wait much longer at a time.
LONGEST_WAIT_S = 3600.0
# How much is kept of what a job writes to its standard output and error.
TAIL_BYTES = 8192


class LinkLost(Exception):
    """The zygote is gone or does not answer. `started` is the job's process, None if it had not begun."""

    def __init__(self, text: str, started: int | None = None) -> None:
        super().__init__(text)
        self.started = started


class Ending(NamedTuple):
    """How a job ended: what it answered, and what is known if it did not."""

    answer: Message | None
    status: int
    stopped: bool
    stdout: str
    stderr: str


class Link:
    """One zygote: starts with the object, ends with `close`."""

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        hello: Hello,
        note: Callable[[subprocess.Popen[bytes]], None] = lambda _: None,
    ) -> None:
        ours, theirs = socket.socketpair()
        self._control = ours
        self._control.settimeout(ANSWER_TIMEOUT_S)
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._scratch = Path(hello.scratch)
        self._busy = False
        self._leaving = False
        # Above the standard streams: in a program that has closed its own, the first numbers are free.
        end = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD_CLOEXEC, 3)
        theirs.close()
        try:
            # Away from the user's folder, whose name and modules are none of a zygote's business.
            self._process = subprocess.Popen(
                [*command, "-c", BOOTSTRAP],
                stdin=end,
                stdout=self._log,
                stderr=self._log,
                env=dict(variables),
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            self._control.close()
            self._log.close()
            raise LinkLost(f"cannot be started: {error}") from error
        finally:
            os.close(end)
        try:
            # It does not look for its parent before it is ready, which takes half a minute under Valgrind.
            with guarded(self._process.pid, self._scratch):
                # Long before it is ready: whoever gives up meanwhile can end it.
                note(self._process)
                self.greeting = self._greet(hello)
        except LinkLost as lost:
            self.kill()
            log = self.read_log().strip()
            self.close()
            raise LinkLost(f"{lost}: {log}" if log else str(lost)) from None
        except BaseException:
            self.kill()
            self.close()
            raise

    def _greet(self, hello: Hello) -> Ready | Refused:
        with contextlib.suppress(OSError):  # it may be gone already; then its log tells why
            bundle = make_bundle()
            self._control.sendall(protocol.HEADER.pack(len(bundle)) + bundle)
            protocol.send(self._control, encode(hello))
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            if not selector.select(START_TIMEOUT_S):
                raise LinkLost(f"did not start within {START_TIMEOUT_S:.0f} s")
        message = receive(self._control)
        if not isinstance(message, (Ready, Refused)) or (isinstance(message, Ready) and message.protocol != PROTOCOL):
            raise LinkLost(f"greeted with {message!r:.60}")
        return message

    def read_log(self, start: int = 0) -> str:
        """The end of what the zygote itself, or Valgrind around it, has written since the log had this many bytes."""
        # With pread: the zygote writes at the position of the same open file.
        start = max(start, self._log_size() - TAIL_BYTES)
        return os.pread(self._log.fileno(), TAIL_BYTES, start).decode(errors="replace")

    def _log_size(self) -> int:
        return os.fstat(self._log.fileno()).st_size

    def carry_out(self, job: Job, payload: bytes, timeout_s: float, partner: int | None = None) -> Ending:
        """Have a job done; LinkLost if that took the zygote down, or it was down already.

        `partner` is a descriptor for the job, which leads to that of another zygote. Such a job has ended when it has
        answered: its process may take some milliseconds more to go, during which other zygotes have work to do.
        """
        if self._leaving:
            # Until the process of a job that has answered is gone.
            await_end(self._control)
            self._busy = self._leaving = False
        with contextlib.ExitStack() as readers, contextlib.ExitStack() as writers:
            file = readers.enter_context(tempfile.TemporaryFile())
            file.write(protocol.pack(encode(_without_folder(job))) + payload)
            file.flush()
            folder = _open_folder(job.place.cwd)
            readers.callback(os.close, folder)
            ours, theirs = [], []
            for _ in range(3):
                read, write = os.pipe()
                ours.append(readers.enter_context(open(read, "rb", buffering=0)))
                theirs.append(writers.enter_context(open(write, "wb", buffering=0)))
            if self._busy:
                raise LinkLost("has not come to rest after the last job")
            self._busy = True
            logged = self._log_size()
            more = () if partner is None else (partner,)
            _send(self._control, Go(), *(end.fileno() for end in (*theirs, file)), folder, *more)
            writers.close()
            talk = _Talk(self._control, self._process.pid, *ours)
            ending = talk.listen(timeout_s, until_answer=partner is not None)
            self._busy = self._leaving = talk.ended is None
            if ending.answer is None:
                # A child that dies before its streams are its own has written to those of its zygote.
                ending = ending._replace(stderr=self.read_log(logged) + ending.stderr)
            return ending

    def close(self) -> None:
        self._control.close()
        try:
            self._process.wait(EXIT_WAIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._log.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def kill(self, started: int | None = None) -> None:
        """End the zygote by force; its children end with it. `started` is the group of the job that runs."""
        if started is not None and is_in_session(started, self._process.pid) is not False:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(started, signal.SIGKILL)
        self._process.kill()
        self._process.wait()

    def disown(self) -> None:
        """In a fork of this process: let go without a word, so that the zygote's life hangs on its parent alone."""
        self._control.close()

    def interrupt(self) -> bool:
        """End the job that runs, if one does, wait for that, and say whether the zygote can take another."""
        if not self._busy:
            return True
        self._leaving = False
        try:
            _send(self._control, Stop())
            await_end(self._control)
        except LinkLost:
            return False
        self._busy = False
        return True


def _without_folder(job: Job) -> Job:
    """A job that does not name its folder, also not among the places of its modules."""
    cwd, sys_path = job.place.cwd, job.place.sys_path
    if sys_path is not None:
        sys_path = tuple("" if entry == cwd else entry for entry in sys_path)
    return dataclasses.replace(job, place=Place("", sys_path))


def _open_folder(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise UsageError(f"The working folder {path} cannot be used: {error.strerror}.") from error


def _send(control: socket.socket, message: Message, *descriptors: int) -> None:
    try:
        protocol.send(control, encode(message), descriptors)
    except OSError as error:
        raise LinkLost(str(error)) from error


def receive(control: socket.socket) -> Message:
    try:
        received = protocol.receive(control)
        if received is None:
            raise LinkLost("ended")
        return decode(received[0])
    except (OSError, WorkerError) as error:
        raise LinkLost(str(error)) from error


def await_end(control: socket.socket) -> None:
    while not isinstance(message := receive(control), Ended):
        if not isinstance(message, Started):
            raise LinkLost(f"said {message!r:.60} while a job ran")


def is_in_session(pid: int, session: int) -> bool | None:
    """Whether a process is in a session, as whatever a zygote starts is in the zygote's; None if there is no such
    process any more. A number that comes from elsewhere must not be signalled without having asked that."""
    try:
        return os.getsid(pid) == session
    except ProcessLookupError:
        return None
    except OSError:
        return False


class _Talk:
    """All that arrives while one job runs: the zygote's word, the child's answer, and what the child prints."""

    def __init__(
        self, control: socket.socket, zygote: int, answer: IO[bytes], stdout: IO[bytes], stderr: IO[bytes]
    ) -> None:
        self._control, self._zygote, self._answer_pipe = control, zygote, answer
        self._streams = (stdout, stderr)
        self._tails = dict.fromkeys(self._streams, b"")
        self._unpacker = protocol.Unpacker()
        self._answer: Message | None = None
        self._is_garbled = False
        self._started: int | None = None
        self.ended: Ended | None = None
        self._until_answer = False

    def listen(self, timeout_s: float, *, until_answer: bool = False) -> Ending:
        """Until the zygote says that the job has ended; past the time limit, tell it to end the job.

        With `until_answer` no longer than until it has answered.
        """
        self._until_answer = until_answer
        try:
            stopped = self._listen(timeout_s)
        except LinkLost as lost:
            raise LinkLost(str(lost), self._started) from None
        # What was written before the end but has not been read. Everybody who could write is gone, or not ours.
        for source in (self._answer_pipe, *self._streams):
            os.set_blocking(source.fileno(), False)
            with contextlib.suppress(BlockingIOError):
                while self._take(source):
                    pass
        if not self._unpacker.is_empty and self._answer is not None:
            self._refuse("More than one answer arrived.")
        status = self.ended.status if self.ended else 0
        # A job that has answered waits until the zygote kills it.
        waited = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        if self.ended is not None and not waited and not isinstance(self._answer, Failed):
            # It was not done when it wrote that. What it says of a failure still helps.
            self._answer = None
        texts = (self._tails[stream].decode(errors="replace") for stream in self._streams)
        return Ending(self._answer, status, stopped, *texts)

    def _listen(self, timeout_s: float) -> bool:
        stopped = False
        end = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            for source in (self._control, self._answer_pipe, *self._streams):
                selector.register(source, selectors.EVENT_READ)
            while not self._is_done():
                for key, _ in selector.select(min(max(0.0, end - time.monotonic()), LONGEST_WAIT_S)):
                    if not self._take(key.fileobj):
                        selector.unregister(key.fileobj)
                if time.monotonic() < end or self._is_done():
                    continue
                if stopped:
                    raise LinkLost(f"did not answer within {ANSWER_TIMEOUT_S:.0f} s")
                stopped, end = True, time.monotonic() + ANSWER_TIMEOUT_S
                _send(self._control, Stop())
        return stopped

    def _is_done(self) -> bool:
        return self.ended is not None or (self._until_answer and self._answer is not None)

    def _take(self, source: object) -> bool:
        """Read what is there; False when nothing will come from there any more."""
        if source is self._control:
            self._hear(receive(self._control))
            return True
        assert isinstance(source, io.FileIO)
        piece = source.read(1 << 16)
        if piece and source is self._answer_pipe:
            self._understand(piece)
        elif piece:
            self._tails[source] = (self._tails[source] + piece)[-TAIL_BYTES:]
        return bool(piece)

    def _hear(self, message: Message) -> None:
        if isinstance(message, Started):
            if is_in_session(message.pid, self._zygote) is False:
                raise LinkLost(f"said that it has started process {message.pid}, which is not its own")
            self._started = message.pid
        elif isinstance(message, Ended):
            self.ended = message
        elif isinstance(message, Refused):
            raise LinkLost(message.message)
        else:
            raise LinkLost(f"said {message!r:.60} while a job ran")

    def _understand(self, piece: bytes) -> None:
        """The child's answer. A user's code that writes here by mistake costs its own job."""
        if self._is_garbled:
            return
        try:
            for plain in self._unpacker.feed(piece):
                if self._answer is not None:
                    self._refuse("More than one answer arrived.")
                    return
                self._answer = decode(plain)
        except WorkerError as error:
            self._refuse(str(error))

    def _refuse(self, problem: str) -> None:
        """Believe nothing of what has arrived and will arrive."""
        self._answer = Failed(FailureKind.NO_RESULT.value, f"The result cannot be read: {problem}", None)
        self._is_garbled = True
