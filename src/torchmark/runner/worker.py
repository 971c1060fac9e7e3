"""The handle of a worker: starts its zygote, restarts it when it died, gives it jobs and checks their answers.

Below it the jobs that take more than one answer: timing, racing, and counting in several layouts.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from torchmark.callgrind.command import FRAMES, ask_version, build_library, callgrind_command, find_valgrind
from torchmark.callgrind.profiles import HEADER_LENGTH, parse_profile, read_trigger, tidy_for_other_programs
from torchmark.errors import SetupError, StoreError, UsageError, WorkerError
from torchmark.files import cache_folder, read_plain_file
from torchmark.model.costs import INSTRUCTIONS, Counts, Profile, PythonFunction
from torchmark.model.environment import Environment, Sdk, TorchBuild
from torchmark.model.job import (
    BARE_LAYOUT,
    CheckJob,
    CompileJob,
    CountJob,
    GaugeJob,
    Job,
    PairJob,
    Place,
    RaceJob,
    ScriptJob,
    TimeJob,
)
from torchmark.model.outcome import Failure, FailureKind, FirstCall, was_killed
from torchmark.model.task import Times
from torchmark.processes import make_scratch, skip_small_pids
from torchmark.runner.link import Ending, Link, LinkLost
from torchmark.runner.machine import probe_torch
from torchmark.runner.spec import (
    WorkerSpec,
    find_interpreter,
    layout_command,
    select_telling,
)
from torchmark.worker.protocol import (
    DISCARDED,
    PROTOCOL,
    Checked,
    Counted,
    Failed,
    Gauged,
    Hello,
    Message,
    PairTimed,
    Raced,
    Ready,
    Refused,
    Scripted,
    Separate,
    describe_status,
    name_layout,
)

_ANSWERS: dict[type[Job], tuple[type[Message], ...]] = {
    CountJob: (Counted, Separate),
    TimeJob: (Times,),
    RaceJob: (Raced,),
    GaugeJob: (Gauged,),
    PairJob: (PairTimed,),
    CompileJob: (FirstCall,),
    ScriptJob: (Scripted,),
    CheckJob: (Checked,),
}


def check_answer(job: Job, answer: Message | None) -> Message | None:
    """The answer, if it is one to this job; a failure in its place otherwise."""
    if answer is None or isinstance(answer, Failed):
        return answer
    if isinstance(answer, _ANSWERS[type(job)]) and _fits(job, answer):
        return answer
    problem = f"The result cannot be read: {type(answer).__name__} is not an answer to this {type(job).__name__}."
    return Failed(FailureKind.NO_RESULT.value, problem, None)


def _fits(job: Job, answer: Message) -> bool:
    """Whether an answer of the right kind is of as much as was asked for."""
    if isinstance(job, CountJob) and isinstance(answer, Separate):
        # Only several layouts can be asked for one at a time.
        return len(job.layouts) > 1
    if isinstance(job, TimeJob) and isinstance(answer, Times):
        blocks = len(answer.raw_times) if job.blocks is None or job.number is None else job.blocks
        return (job.number is None or answer.number_per_run == job.number) and len(answer.raw_times) == blocks
    if isinstance(job, RaceJob) and isinstance(answer, Raced):
        return len(answer.results) == len(job.stmts)
    if isinstance(job, PairJob) and isinstance(answer, PairTimed):
        sides = 1 if job.partner is None else 2
        return len(answer.sides) == sides and all(len(side.times) == len(job.firsts) for side in answer.sides)
    return True


T = TypeVar("T")
# What a job answers with when it did what it was asked to do.
Answer: TypeAlias = Counted | Separate | Times | Raced | Gauged | PairTimed | FirstCall | Scripted | Checked
ANSWERS = (Counted, Separate, Times, Raced, Gauged, PairTimed, FirstCall, Scripted, Checked)

# Long enough for anything that is sensible to count; a statement that never ends is found out.
DEFAULT_TIMEOUT_S = 600.0
# A zygote that dies while it starts, or before it has begun a job, may have been killed from outside. Once is bad luck.
ATTEMPTS = 2
# Whoever uses a zygote that was killed lets go of it in no time.
PARTING_S = 5.0


class Reply(NamedTuple):
    """What a job answered, and the files it wrote."""

    message: Answer
    files: tuple[str, ...]


class Worker:
    """One zygote at a time, one job at a time."""

    def __init__(self, spec: WorkerSpec, environ: Mapping[str, str] = os.environ) -> None:
        self.spec = spec
        self._environ = dict(environ)
        self._variables = dict(spec.variables)
        self._lock = threading.RLock()
        self._link: Link | None = None
        self._scratch: Path | None = None
        self._environment: Environment | None = None
        self._sdk: Sdk | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._abandoned = False
        self.baselines: dict[int, Profile] = {}
        """The empty loop's profile by the number of its runs. It depends on nothing else while the zygote lives."""

    @property
    def is_up(self) -> bool:
        """Whether the zygote has been started and not been lost since."""
        return self._link is not None

    @property
    def environment(self) -> Environment:
        """What jobs run in."""
        self.start()
        assert self._environment is not None
        return self._environment

    @property
    def sdk(self) -> Sdk:
        """What C++ for this worker has to be compiled against."""
        self.start()
        assert self._sdk is not None
        return self._sdk

    def start(self) -> None:
        """Start the zygote, unless it is there. SetupError says what is missing."""
        with self._lock:
            problem = ""
            for _ in range(ATTEMPTS):
                if self._abandoned:
                    raise WorkerError("The worker was given up.", kind="abandoned")
                if self._link is not None:
                    return
                try:
                    self._link = self._open_link()
                except LinkLost as lost:
                    problem = str(lost)
            if self._link is None:
                raise _explain_loss(self.spec.python, problem, counting=self.spec.counting)

    def run(
        self, job: Job, payload: bytes = b"", timeout_s: float = DEFAULT_TIMEOUT_S, partner: int | None = None
    ) -> Reply | Failure:
        """Have one job done. Only a worker that cannot be had at all is an error; all else is a value.

        `partner` is a descriptor that leads to the job of another worker.
        """
        with self._lock:
            for _ in range(ATTEMPTS):
                self.start()
                link = self._link
                assert link is not None
                try:
                    ending = link.carry_out(job, payload, timeout_s, partner)
                except LinkLost as lost:
                    log = self._lose(lost)
                    if lost.started is not None:
                        return Failure(
                            kind=FailureKind.WORKER_DIED,
                            message=f"The job took its worker down: it {lost}.",
                            traceback=None,
                            stdout="",
                            stderr=log,
                        )
                    problem = f"{lost}. {log}".strip()
                    continue
                except BaseException:
                    # An interrupt, most likely. The zygote stays if it can.
                    self._settle()
                    raise
                finally:
                    files = self._collect()
                ending = ending._replace(answer=check_answer(job, ending.answer))
                outcome = _judge(ending, timeout_s)
                return outcome if isinstance(outcome, Failure) else Reply(outcome, files)
            raise WorkerError(f"The worker of {self.spec.python} does not stay up: {problem}", kind="worker")

    @property
    def pid(self) -> int:
        """The zygote's process."""
        self.start()
        assert self._process is not None
        return self._process.pid

    def pin(self, cores: Collection[int]) -> None:
        """Let later jobs run on these cores only. A system that does not allow that leaves them where they are."""
        with self._lock:
            self.start()
            assert self._process is not None
            if hasattr(os, "sched_setaffinity"):
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(self._process.pid, cores)

    def abandon(self) -> None:
        """End the zygote at once, whatever it does and whoever waits for it, and start no other."""
        self._abandoned = True
        process = self._process
        if process is not None:
            # Whoever waits for it hears that it is gone.
            process.kill()
        if self._lock.acquire(timeout=PARTING_S):
            try:
                self.close()
            finally:
                self._lock.release()

    def close(self) -> None:
        """End the zygote and remove its files. A later job starts another."""
        with self._lock:
            if self._link is not None:
                self._link.close()
            self._link = self._scratch = None

    def disown(self) -> None:
        """In a fork of the calling process: forget the zygote, which is not this process's own."""
        if self._link is not None:
            self._link.disown()
        self._link = self._scratch = None

    def _settle(self) -> None:
        """After an interrupt: a zygote that has not come to rest, because of another interrupt, say, is not kept."""
        assert self._link is not None
        rests = False
        try:
            rests = self._link.interrupt()
        finally:
            if not rests:
                self.close()

    def _lose(self, lost: LinkLost) -> str:
        assert self._link is not None
        self._link.kill(lost.started)
        log = self._link.read_log().strip()
        self.close()
        return log

    def _collect(self) -> tuple[str, ...]:
        """Take the profiles that a job left, and remove all its files, whatever became of it."""
        if self._scratch is None:
            return ()
        texts = []
        try:
            for path in sorted(self._scratch.iterdir()):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                    continue
                is_profile = read_trigger(read_plain_file(path, HEADER_LENGTH) or "") not in (None, DISCARDED)
                text = read_plain_file(path) if is_profile else None
                if text is not None:
                    texts.append(text)
                path.unlink()
        except OSError:
            # The job has removed the folder, or the rights to it. The next job gets another zygote and folder.
            self.close()
        return tuple(texts)

    def _open_link(self) -> Link:
        self.baselines.clear()
        python = find_interpreter(self.spec.python, self._variables)
        valgrind = find_valgrind(self._variables.get("PATH", os.defpath)) if self.spec.counting else None
        library = build_library(cache_folder(self._environ), self._environ) if valgrind else None
        frames = build_library(cache_folder(self._environ), self._environ, FRAMES) if self.spec.stacks else None
        self._scratch = make_scratch()
        command = [python] if self.spec.layout is None else layout_command(self.spec.layout, python)
        if valgrind is not None:
            skip_small_pids()
            options = {"simulate": self.spec.simulate, "callers": self.spec.stacks}
            command = [*callgrind_command(valgrind, str(self._scratch), **options), python]
        hello = Hello(
            protocol=PROTOCOL,
            scratch=str(self._scratch),
            library=str(library) if library else None,
            sys_path=self.spec.sys_path,
            checking=self.spec.checking,
            compiling=self.spec.compiling,
            scripting=self.spec.scripting,
            frames=str(frames) if frames else None,
        )
        try:
            # Valgrind hides instruction sets that it does not know, so ask outside it, while it starts.
            outside = {name: value for name, value in self._variables.items() if name not in self.spec.irrelevant}
            probe = functools.partial(_probe_once, python, tuple(outside.items()), self.spec.sys_path)
            native = _Later(probe) if self.spec.probed else None
            link = self._greet(command, hello)
            build, _ = native.get() if native is not None else (None, None)
        except BaseException:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None
            raise
        ready = link.greeting
        assert isinstance(ready, Ready)
        self._sdk = ready.sdk
        self._environment = Environment(
            python=self.spec.known_as or python,
            python_version=ready.python_version,
            torch_version=ready.torch_version,
            cpu_capability=ready.cpu_capability,
            native_capability=build.cpu_capability if build else None,
            debug_symbols=ready.debug_symbols,
            valgrind=ask_version(valgrind) if valgrind else None,
            hash_seed=self._variables.get("PYTHONHASHSEED"),
            variables=select_telling(self._variables, self.spec.given),
            torch_commit=build.commit if build else None,
            torch_build=build.build if build else None,
        )
        return link

    def _note_process(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        if self._abandoned:
            process.kill()

    def _greet(self, command: Sequence[str], hello: Hello) -> Link:
        link = Link(command, self._variables, hello, self._note_process)
        greeting = link.greeting
        if isinstance(greeting, Refused):
            link.close()
            raise _explain_refusal(command[-1], greeting)
        return link


@functools.cache
def _probe_once(
    python: str, variables: tuple[tuple[str, str], ...], sys_path: tuple[str, ...] | None
) -> tuple[TorchBuild | None, str | None]:
    """What an interpreter's torch is does not change while this program runs, and takes seconds to find out."""
    return probe_torch(python, dict(variables), sys_path)


class _Later(Generic[T]):
    """A value that is found out meanwhile. (Executors refuse to work once the main thread has ended.)"""

    def __init__(self, find_out: Callable[[], T]) -> None:
        self._find_out = find_out
        self._values: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._values.append(self._find_out())
        except BaseException as error:
            self._error = error

    def get(self) -> T:
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._values[0]


def _judge(ending: Ending, timeout_s: float) -> Answer | Failure:
    """What a job came to: its answer, or the most telling reason for having none."""
    answer = ending.answer
    if isinstance(answer, ANSWERS):
        return answer
    if isinstance(answer, Failed):
        kind, message, trace = FailureKind(answer.failure), answer.message, answer.traceback
    elif ending.stopped:
        kind, message, trace = FailureKind.TIMED_OUT, f"It did not end within {timeout_s:g} s.", None
    else:
        kind, text = describe_status(ending.status)
        message, trace = f"The process {text}.", None
    return Failure(kind=kind, message=message, traceback=trace, stdout=ending.stdout, stderr=ending.stderr)


def _explain_loss(python: str, text: str, *, counting: bool) -> SetupError:
    if counting:
        return SetupError(
            f"Valgrind cannot run {python}, which {text}.",
            missing="valgrind",
            advice="Try a newer Valgrind, or measure wall time instead (torchmark time).",
        )
    return SetupError(f"{python} cannot be used: it {text}.", missing="python", advice="Name another Python.")


def _explain_refusal(python: str, refused: Refused) -> SetupError | WorkerError:
    if refused.reason == "no_torch":
        return SetupError(
            f"{python} has no torch.", missing="torch", advice="Install it there, or name another Python."
        )
    if refused.reason == "broken_torch":
        return SetupError(
            f"torch of {python} does not load: {refused.message}.", missing="torch", advice="Install it there anew."
        )
    if refused.reason == "unsupported":
        return SetupError(
            f"{python} cannot be used here. {refused.message}",
            missing="python",
            advice="Name another Python, or measure wall time instead (torchmark time).",
        )
    return WorkerError(f"The worker of {python} refuses to work: {refused.message}", kind=refused.reason)


def measure_time(
    worker: Worker, job: TimeJob, payload: bytes = b"", timeout_s: float = DEFAULT_TIMEOUT_S
) -> Times | Failure:
    """Have one job timed."""
    reply = worker.run(job, payload, timeout_s)
    if isinstance(reply, Failure):
        return reply
    assert isinstance(reply.message, Times)
    return reply.message


def race(
    worker: Worker, job: RaceJob, payload: bytes = b"", timeout_s: float = DEFAULT_TIMEOUT_S
) -> tuple[Times, ...] | Failure:
    """Have the statements of one job timed. Blocks at the same position in two of the results ran in one round."""
    reply = worker.run(job, payload, timeout_s)
    if isinstance(reply, Failure):
        return reply
    assert isinstance(reply.message, Raced)
    return reply.message.results


# Once is bad luck.
ATTEMPTS = 2


def retry_if_killed(attempt: Callable[[], T | Failure]) -> T | Failure:
    """The result, or the failure of the last attempt.

    A worker that does not stay up is a failure too, and so is a machine that lacks something: room for temporary files,
    say, or the working folder.
    """
    for number in range(ATTEMPTS):
        try:
            result = attempt()
        except WorkerError as error:
            if error.kind == "abandoned":
                raise
            result = Failure(FailureKind.WORKER_DIED, str(error))
        except (OSError, UsageError) as error:
            return Failure(FailureKind.MISSING, str(error))
        if not isinstance(result, Failure) or not was_killed(result) or number == ATTEMPTS - 1:
            return result
    raise AssertionError("unreachable")


def count(
    worker: Worker,
    job: CountJob,
    payload: bytes = b"",
    timeout_s: float = DEFAULT_TIMEOUT_S,
    *,
    baseline: bool = True,
    keep_texts: bool = False,
) -> Counts | Failure:
    """Count in each layout of the job, and the empty loop. The time limit is for each process that is started."""
    # A process with several threads cannot be forked.
    together = job.threads == 1 or len(job.layouts) == 1
    replies = _run_all(worker, [job] if together else _split_layouts(job), payload, timeout_s)
    if replies is None:
        replies = _run_all(worker, _split_layouts(job), payload, timeout_s)
    if isinstance(replies, Failure):
        return replies
    assert replies is not None
    counts = _read_counts(job, replies, keep_texts=keep_texts)
    if isinstance(counts, Failure) or not baseline:
        return counts
    empty = _count_empty_loop(worker, job.number, timeout_s)
    return empty if isinstance(empty, Failure) else dataclasses.replace(counts, baseline=empty)


def _count_empty_loop(worker: Worker, number: int, timeout_s: float) -> Profile | Failure:
    """In a process of its own, which no setup has touched: so it depends on nothing but the number of runs."""
    known = worker.baselines.get(number)
    if known is not None:
        return known
    job = CountJob("pass", "pass", Place("/"), number=number, layouts=(BARE_LAYOUT,))
    counts = count(worker, job, timeout_s=timeout_s, baseline=False)
    if isinstance(counts, Failure):
        return counts
    worker.baselines[number] = counts.layouts[0]
    return counts.layouts[0]


def _split_layouts(job: CountJob) -> list[CountJob]:
    """One layout at a time."""
    return [dataclasses.replace(job, layouts=(layout,)) for layout in job.layouts]


def _run_all(
    worker: Worker, jobs: Iterable[CountJob], payload: bytes, timeout_s: float
) -> list[Reply] | Failure | None:
    """The replies to all jobs; None if a job has to be split."""
    replies: list[Reply] = []
    for job in jobs:
        reply = worker.run(job, payload, timeout_s)
        if isinstance(reply, Failure):
            return reply
        if isinstance(reply.message, Separate):
            return None
        replies.append(reply)
    return replies


def _read_counts(job: CountJob, replies: Sequence[Reply], *, keep_texts: bool) -> Counts | Failure:
    names = [name_layout(layout) for layout in job.layouts]
    files = {name: text for reply in replies for text in reply.files if (name := read_trigger(text)) in names}
    if missing := [name for name in names if name not in files]:
        text = f"Callgrind wrote no profile of {', '.join(missing)}. Is the disk for temporary files full?"
        return Failure(FailureKind.NO_RESULT, text)
    profiles: dict[str, Profile] = {}
    for name in names:
        try:
            # As a file has lines: names may have characters that only `splitlines` takes for ends of lines.
            profiles[name] = parse_profile(io.StringIO(files[name]), must_be_complete=True)
        except StoreError as error:
            return Failure(FailureKind.NO_RESULT, f"{error} Is the disk for temporary files full?")
        if INSTRUCTIONS not in profiles[name].events:
            return Failure(FailureKind.NO_RESULT, f"The profile of {name} does not count instructions.")
    answers = [reply.message for reply in replies if isinstance(reply.message, Counted)]
    return Counts(
        number=job.number,
        layouts=tuple(profiles[name] for name in names),
        baseline=None,
        texts=tuple(tidy_for_other_programs(files[name]) for name in names) if keep_texts else None,
        optimised_away=any(answer.optimised_away for answer in answers),
        functions=tuple(PythonFunction(*function) for answer in answers for function in answer.functions),
    )
