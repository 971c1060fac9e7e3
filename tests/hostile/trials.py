"""Carries out one hostile input in a process of its own, and tells what was not as it has to be.

Whatever the input is: no traceback, an end within a bound, no file changed but those that the command was told to
write, no program started, nothing of the input imported, and nothing printed that a terminal or a CI log would obey.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import hashlib
import json
import os
import re
import resource
import runpy
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import traceback
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torchmark
from tests.hostile.inputs import (
    BIN,
    CACHE,
    HOME,
    OUT,
    TEMPORARY,
    WORK,
    Content,
    Input,
    Link,
    Pipe,
    Program,
    Step,
    make_input,
)
from tests.hostile.worker_answers import JOB_PID, Script, run_script
from torchmark.cli.main import main
from torchmark.runner.prepare import Models, open_cache
from torchmark.store.ledger import read_selftest

# Seconds of the processor. Commands take hundredths of one for inputs of this size, and most of one for the largest.
BUSY_BOUND_S = 10.0
# For what waits. A busy machine may take several times as long as the processor does.
WAITING_BOUND_S = 60.0
# For what does not listen to a signal: a call into SQLite or a regular expression that does not come to an end.
DEAF_BOUND_S = 1.5 * WAITING_BOUND_S
# What a command may take besides what this process has when it begins.
MEMORY_BYTES = 2 << 30
# What commands print of one input, at most: more is not looked at.
MOST_PRINTED = 4 << 20

# Exit codes by which a command says that it has not taken an input.
REFUSALS = (2, 4)
_PACKAGE = os.path.dirname(torchmark.__file__)
# What starts a program, or reaches out of the process. Whatever else has a sign of it changes a file.
_STARTING = (
    "subprocess.Popen",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "os.fork",
    "os.forkpty",
    "pty.spawn",
    "webbrowser.open",
    "urllib.Request",
    "socket.connect",
    "os.kill",
    "os.killpg",
    "ctypes.dlopen",
    "sqlite3.enable_load_extension",
    "sqlite3.load_extension",
)


class Overdue(BaseException):
    """A command took longer than it may."""


class Forbidden(BaseException):
    """A command was about to do what it must not."""


@dataclasses.dataclass(frozen=True)
class Failure:
    """What was not as it has to be: what it is in few words, where, and all that is known of it."""

    step: str
    what: str
    where: str
    detail: str = ""


@dataclasses.dataclass
class Trial:
    """What came of one input."""

    kind: str
    seed: int
    codes: list[tuple[str, int]] = dataclasses.field(default_factory=list)
    """The exit code of each command that was run."""
    failures: list[Failure] = dataclasses.field(default_factory=list)
    commands: dict[str, str] = dataclasses.field(default_factory=dict)
    """What a table calls each of them."""
    seconds: float = 0.0


def carry_out(kind: str, seed: int, keep: Path | None = None) -> Trial:
    """Make the input and run its commands on it; with `keep`, in that folder, which stays."""
    return try_out(make_input(kind, seed), kind, seed, keep)


def try_out(made: Input, kind: str, seed: int, keep: Path | None = None) -> Trial:
    """Run the commands of an input."""
    begun = time.monotonic()
    trial = Trial(kind, seed, commands={step.name: _name_command(step) for step in made.steps})
    with contextlib.ExitStack() as stack:
        if keep is None:
            # Not where the next one looks for its own temporary files.
            folder = Path(tempfile.mkdtemp(prefix="hostile-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        else:
            folder = keep
        lay_out(made, folder)
        _run_in_fork(made, folder, trial)
    trial.seconds = time.monotonic() - begun
    return trial


def _name_command(step: Step) -> str:
    return step.name if step.arguments[0] == "call" else step.arguments[0]


def lay_out(made: Input, folder: Path) -> None:
    """Put all files in place. Others must not be able to write to them, or some would not be looked at."""
    os.umask(0o022)
    for name in (WORK, HOME, CACHE, OUT, TEMPORARY, BIN):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, content in made.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        _put(path, content)


def _put(path: Path, content: Content) -> None:
    if isinstance(content, Link):
        path.symlink_to(content.target)
    elif isinstance(content, Pipe):
        os.mkfifo(path)
    elif isinstance(content, Program):
        path.write_text(content.text)
        path.chmod(0o755)
    else:
        path.write_bytes(content)


# --- the process that runs commands ----------------------------------------------------------------------


def _run_in_fork(made: Input, folder: Path, trial: Trial) -> None:
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reading)
            with open(writing, "w") as report:
                _Commands(made, folder, report.write, report.flush).run()
            code = 0
        finally:
            # Nothing of the parent's is to be ended here, whatever is on the way out.
            os._exit(code)
    os.close(writing)
    last = _listen(reading, pid, trial)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status) and last != "overdue":
        name = signal.Signals(os.WTERMSIG(status)).name
        trial.failures.append(Failure(last, f"the process was ended by {name}", ""))
    elif os.WEXITSTATUS(status):
        trial.failures.append(Failure(last, f"the process ended with code {os.WEXITSTATUS(status)}", ""))


def _listen(reading: int, pid: int, trial: Trial) -> str:
    """Hear what the commands come to; gives the last that was begun."""
    last = ""
    buffer = b""
    deadline = time.monotonic() + DEAF_BOUND_S
    with open(reading, "rb", buffering=0) as source:
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([source], [], [], left)[0]:
                os.kill(pid, signal.SIGKILL)
                trial.failures.append(Failure(last, f"no end within {DEAF_BOUND_S:.0f} s, deaf to signals", ""))
                return "overdue"
            piece = source.read(1 << 16)
            if not piece:
                return last
            *lines, buffer = (buffer + piece).split(b"\n")
            for line in lines:
                note = json.loads(line)
                if "begun" in note:
                    last = note["begun"]
                    deadline = time.monotonic() + DEAF_BOUND_S
                elif "code" in note:
                    trial.codes.append((last, note["code"]))
                else:
                    trial.failures.append(Failure(**note))


class _Commands:
    """Runs the commands of an input in this process, which is there for nothing else."""

    def __init__(self, made: Input, folder: Path, write: Callable[[str], object], flush: Callable[[], object]) -> None:
        self._made, self._folder = made, folder
        self._write, self._flush = write, flush
        self._tried: list[tuple[str, str, str]] = []
        self._is_watched = False

    def run(self) -> None:
        os.setsid()
        self._prepare()
        sys.addaudithook(self._audit)
        before = _take_stock(self._folder)
        accepted = True
        for step in self._made.steps:
            if step.if_accepted and not accepted:
                break
            self._tell(begun=step.name)
            failure, code = self._run_step(step)
            after = _take_stock(self._folder)
            failure = failure or self._find_change(step, code, before, after)
            before = after
            if failure is not None:
                self._tell(**dataclasses.asdict(failure))
            self._tell(code=-1 if code is None else code)
            accepted = code is not None and code not in REFUSALS

    def _tell(self, **note: object) -> None:
        self._write(json.dumps(note) + "\n")
        self._flush()

    def _prepare(self) -> None:
        folder = self._folder
        os.chdir(folder / WORK)
        os.environ.clear()
        os.environ |= {
            "HOME": str(folder / HOME),
            "TORCHMARK_CACHE": str(folder / CACHE),
            "TMPDIR": str(folder / TEMPORARY),
            "PATH": str(folder / BIN),
            "CC": str(folder / BIN / "cc"),
            "CXX": str(folder / BIN / "c++"),
            "COLUMNS": "120",
            "LC_ALL": "C.UTF-8",
        }
        tempfile.tempdir = None
        size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY_BYTES, size + MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGALRM, _raise_overdue)
        signal.signal(signal.SIGPROF, _raise_overdue)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Keep programs from being started and the input from being imported, and remember that it was tried."""
        if not self._is_watched:
            return
        if event in _STARTING:
            if event == "ctypes.dlopen" and not str(arguments[0]).startswith(str(self._folder)):
                return
            if event in ("os.kill", "os.killpg") and arguments[0] == JOB_PID:
                raise ProcessLookupError
            what = "a process was to be ended" if event in ("os.kill", "os.killpg") else "a program was to be started"
            self._forbid(what, f"{event} {arguments[:2]!r:.200}")
        elif event == "exec":
            file = str(getattr(arguments[0], "co_filename", "<"))
            if not file.startswith("<") and os.path.abspath(file).startswith(str(self._folder)):
                self._forbid("the input was to be imported", os.path.relpath(file, self._folder))

    def _forbid(self, what: str, detail: str) -> None:
        self._tried.append((what, _name_place(sys._getframe(2)), detail))
        raise Forbidden(what)

    def _run_step(self, step: Step) -> tuple[Failure | None, int | None]:
        self._tried.clear()
        path = list(sys.path)
        problem: Failure | None = None
        code: int | None = None
        with capturing() as printed:
            self._set_timers(BUSY_BOUND_S, WAITING_BOUND_S)
            self._is_watched = True
            try:
                code = self._call(step)
            except Overdue as error:
                problem = Failure(step.name, f"no end within {error} s", _find_place(error), _format(error))
            except BaseException as error:
                problem = Failure(step.name, type(error).__name__, _find_place(error), _format(error))
            finally:
                self._is_watched = False
                with contextlib.suppress(Overdue):
                    self._set_timers(0, 0)
        sys.path[:] = path
        if self._tried:
            problem = Failure(step.name, *self._tried[0])
        return problem or _find_traceback(step, printed[0]) or _check_printed(step, printed[0]), code

    def _set_timers(self, busy_s: float, waiting_s: float) -> None:
        # Again and again: the first may come where exceptions are ignored.
        signal.setitimer(signal.ITIMER_PROF, busy_s, 1.0 if busy_s else 0.0)
        signal.setitimer(signal.ITIMER_REAL, waiting_s, 1.0 if waiting_s else 0.0)

    def _call(self, step: Step) -> int:
        if step.arguments[0] == "call":
            _CALLS[step.arguments[1]](self._made.script, *step.arguments[2:])
            return 0
        code = main(list(step.arguments))
        assert isinstance(code, int)
        return code

    def _find_change(
        self, step: Step, code: int | None, before: dict[str, str], after: dict[str, str]
    ) -> Failure | None:
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) == after.get(name):
                continue
            allowed = any(fnmatch.fnmatchcase(name, one) for one in step.may_change)
            spared = (*step.never, *(step.unless_accepted if code in REFUSALS else ()))
            if not allowed or name in spared:
                what = "removed" if name not in after else "changed" if name in before else "made"
                return Failure(step.name, f"a file was {what}: {name}", f"exit code {code}")
        return None


def _raise_overdue(number: int, frame: FrameType | None) -> None:
    raise Overdue(f"{BUSY_BOUND_S:.0f} busy" if number == signal.SIGPROF else f"{WAITING_BOUND_S:.0f}")


@contextlib.contextmanager
def capturing() -> Iterator[list[str]]:
    """What is printed within this, by whatever means: standard output and error are a file meanwhile."""
    printed: list[str] = []
    with open(os.memfd_create("printed"), "w+b") as file, open(os.devnull) as nothing:
        saved = os.dup(1), os.dup(2), os.dup(0)
        streams = sys.stdout, sys.stderr, sys.stdin
        os.dup2(nothing.fileno(), 0)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        try:
            yield printed
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError, AttributeError):
                    stream.flush()
            sys.stdout, sys.stderr, sys.stdin = streams
            for number, copy in zip((1, 2, 0), saved, strict=True):
                os.dup2(copy, number)
                os.close(copy)
            file.seek(0)
            printed.append(file.read(MOST_PRINTED).decode(errors="replace"))


def _take_stock(folder: Path) -> dict[str, str]:
    """What each file is, by its name; but for those that commands were told to write."""
    found: dict[str, str] = {}
    for parent, folders, files in os.walk(folder):
        if Path(parent) == folder:
            folders[:] = [name for name in folders if name not in (OUT, TEMPORARY)]
        for name in (*files, *folders):
            path = os.path.join(parent, name)
            status = os.lstat(path)
            kind = stat.S_IFMT(status.st_mode)
            if kind == stat.S_IFREG:
                with open(path, "rb") as file:
                    text = hashlib.blake2b(file.read(), digest_size=16).hexdigest()
            else:
                text = os.readlink(path) if kind == stat.S_IFLNK else ""
            found[os.path.relpath(path, folder)] = f"{status.st_mode:o} {text}"
    return found


# --- what is said of what went wrong ---------------------------------------------------------------------


def _find_place(error: BaseException) -> str:
    """The innermost of our own lines that an exception went through."""
    found = "outside torchmark"
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            found = _spell(trace.tb_frame, trace.tb_lineno)
        trace = trace.tb_next
    return found


def _name_place(frame: FrameType | None) -> str:
    while frame is not None and not frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return _spell(frame, frame.f_lineno) if frame is not None else "outside torchmark"


def _spell(frame: FrameType, line: int) -> str:
    return f"{os.path.relpath(frame.f_code.co_filename, _PACKAGE)}:{line} {frame.f_code.co_name}"


def _format(error: BaseException) -> str:
    """The traceback; the middle of a long one is left out."""
    try:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-30))
    except (MemoryError, RecursionError):
        text = repr(type(error))
    return text if len(text) < 6000 else f"{text[:1000]}\n...\n{text[-5000:]}"


def _find_traceback(step: Step, text: str) -> Failure | None:
    """One that was printed and not raised."""
    _, found, after = text.partition("Traceback (most recent call last):\n")
    if not found:
        return None
    frames = re.findall(rf'File "{re.escape(_PACKAGE)}/([^"]+)", line (\d+), in (\S+)', after)
    where = "{}:{} {}".format(*frames[-1]) if frames else "outside torchmark"
    kinds = re.findall(r"^([\w.]+)(?:$|: )", after, re.MULTILINE)
    return Failure(step.name, kinds[-1].rpartition(".")[2] if kinds else "a traceback", where, after[-5000:])


# Characters that change the direction of what follows.
_DIRECTIONS = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C}


def _check_printed(step: Step, text: str) -> Failure | None:
    for place, character in enumerate(text):
        is_control = unicodedata.category(character) in ("Cc", "Zl", "Zp") and character not in "\n\t"
        if is_control or ord(character) in _DIRECTIONS:
            around = text[max(0, place - 60) : place + 60]
            return Failure(step.name, f"U+{ord(character):04X} is printed", step.name, repr(around))
    for line in text.split("\n"):
        if line.lstrip().startswith("::"):
            return Failure(step.name, "a line that begins with :: is printed", step.name, repr(line[:300]))
    return None


# --- calls that are no commands --------------------------------------------------------------------------


def _call_worker(script: Script | None, store: str) -> None:
    assert script is not None
    run_script(script, Path(store))


def _find_snippet(script: Script | None, key: str) -> None:
    open_cache(os.environ).find(key)


def _find_prelude(script: Script | None, name: str) -> None:
    open_cache(os.environ).find_prelude(name)


def _read_selftest(script: Script | None) -> None:
    read_selftest(Path(os.environ["TORCHMARK_CACHE"]), None)


def _close_models(script: Script | None) -> None:
    with Models(os.environ) as models:
        models.open()


# --- commands that do what none may ----------------------------------------------------------------------


def _raise(script: Script | None) -> None:
    raise KeyError("x")


def _print_traceback(script: Script | None) -> None:
    print("Traceback (most recent call last):\nValueError: x", file=sys.stderr)


def _start(script: Script | None) -> None:
    # Whoever catches what is raised for it is found out all the same.
    with contextlib.suppress(BaseException):
        subprocess.run(["../bin/check"])


def _import(script: Script | None) -> None:
    runpy.run_path("bench_planted.py")


def _end(script: Script | None) -> None:
    os.killpg(1, signal.SIGKILL)


def _remove(script: Script | None) -> None:
    os.unlink("../home/.bashrc")


def _write(script: Script | None) -> None:
    Path("victim.txt").write_text("precious?")


def _die(script: Script | None) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
    while True:
        pass


MISDEEDS: dict[str, Callable[[Script | None], None]] = {
    "KeyError": _raise,
    "ValueError": _print_traceback,
    "a program was to be started": _start,
    "the input was to be imported": _import,
    "a process was to be ended": _end,
    "a file was removed: home/.bashrc": _remove,
    "a file was changed: clone/victim.txt": _write,
    "U+001B is printed": lambda _: print("a \x1b[31m"),
    "U+202E is printed": lambda _: print("a \u202eb", file=sys.stderr),
    "a line that begins with :: is printed": lambda _: print("a\n ::error::b"),
    "the process was ended by SIGKILL": _die,
}
"""By what is to be said of them."""

_CALLS: dict[str, Callable[..., None]] = {
    "worker": _call_worker,
    "find snippet": _find_snippet,
    "find prelude": _find_prelude,
    "read selftest": _read_selftest,
    "close models": _close_models,
    **MISDEEDS,
}
