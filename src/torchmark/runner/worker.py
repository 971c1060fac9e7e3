"""The handle of a worker: starts its zygote, restarts it when it died, gives it jobs and checks their answers.

Below it the jobs that take more than one answer, the one rule of trying again, and the workers of a target.
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
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

from torchmark.callgrind.command import FRAMES, ask_version, build_library, callgrind_command, find_valgrind
from torchmark.callgrind.profiles import HEADER_LENGTH, parse_profile, read_trigger, tally, tidy_for_other_programs
from torchmark.errors import SetupError, StoreError, TorchmarkError, UsageError, WorkerError
from torchmark.files import cache_folder, read_plain_file
from torchmark.model.costs import INSTRUCTIONS, Counts, Profile, PythonFunction, Tally, Trace
from torchmark.model.environment import Environment, Sdk, TorchBuild
from torchmark.model.job import (
    BARE_LAYOUT,
    CheckJob,
    CompileJob,
    CountJob,
    GaugeJob,
    Job,
    PairedSide,
    PairJob,
    Place,
    RaceJob,
    ScriptJob,
    TimeJob,
)
from torchmark.model.outcome import Failure, FailureKind, FirstCall, was_killed
from torchmark.model.plan import Case, Target
from torchmark.model.task import Compiled, Times
from torchmark.processes import make_scratch, skip_small_pids
from torchmark.runner.link import Ending, Link, LinkLost
from torchmark.runner.machine import probe_torch
from torchmark.runner.spec import (
    WorkerSpec,
    find_interpreter,
    layout_command,
    other_worker,
    own_worker,
    select_telling,
    visible_path,
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

# Long enough for anything that is sensible to count; a statement that never ends is found out.
DEFAULT_TIMEOUT_S = 600.0
# Whoever uses a zygote that was killed lets go of it in no time.
PARTING_S = 5.0


# Whatever is lost or killed, while it starts, before it has begun a job or with one, may have been killed from outside.
# Once is bad luck.
ATTEMPTS = 2


def retry(attempt: Callable[[], T], is_lost: Callable[[T], bool]) -> T:
    """The result of the first attempt in which nothing was lost, or of the last one."""
    for _ in range(ATTEMPTS - 1):
        result = attempt()
        if not is_lost(result):
            return result
    return attempt()


def retry_if_killed(attempt: Callable[[], T | Failure]) -> T | Failure:
    """The result, or the failure of the last attempt, of something that workers are needed for.

    A worker that refuses to work is a failure too, and so is a machine that lacks something: room for temporary files,
    say, or the working folder.
    """

    def run() -> T | Failure:
        try:
            return attempt()
        except WorkerError as error:
            if error.kind == "abandoned":
                raise
            return Failure(FailureKind.WORKER_DIED, str(error))
        except (OSError, UsageError) as error:
            return Failure(FailureKind.MISSING, str(error))

    return retry(run, lambda result: isinstance(result, Failure) and was_killed(result))


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
        return self._link is not None

    @property
    def environment(self) -> Environment:
        """What jobs run in. Known from the first start on: a zygote that was lost is not started again for this."""
        if self._environment is None:
            self.start()
        assert self._environment is not None
        return self._environment

    @property
    def sdk(self) -> Sdk:
        """What C++ for this worker has to be compiled against; known as the environment is."""
        if self._sdk is None:
            self.start()
        assert self._sdk is not None
        return self._sdk

    def start(self) -> None:
        """Start the zygote, unless it is there. SetupError says what is missing."""
        with self._lock:
            lost = retry(self._start_once, lambda lost: lost is not None)
        if lost is not None:
            raise _explain_loss(self.spec.python, str(lost), counting=self.spec.counting)

    def start_ahead(self) -> threading.Thread:
        """Start the zygote meanwhile. What is wrong with it is told to whoever uses it next."""

        def run() -> None:
            with contextlib.suppress(TorchmarkError):
                self.start()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def _start_once(self) -> LinkLost | None:
        """Why there is no zygote: it was lost while it started."""
        if self._abandoned:
            raise WorkerError("The worker was given up.", kind="abandoned")
        if self._link is None:
            try:
                self._link = self._open_link()
            except LinkLost as lost:
                return lost
        return None

    def run(
        self, job: Job, payload: bytes = b"", timeout_s: float = DEFAULT_TIMEOUT_S, partner: int | None = None
    ) -> Reply | Failure:
        """Have one job done, in one attempt. A worker that cannot be had at all is an error; all else is a value.

        `partner` is a descriptor that leads to the job of another worker.
        """
        with self._lock:
            self.start()
            link = self._link
            assert link is not None
            try:
                ending = link.carry_out(job, payload, timeout_s, partner)
            except LinkLost as lost:
                return self._explain_lost_job(lost)
            except BaseException:
                # An interrupt, most likely. The zygote stays if it can.
                self._settle()
                raise
            finally:
                files = self._collect()
            outcome = _judge(ending._replace(answer=check_answer(job, ending.answer)), timeout_s)
            return outcome if isinstance(outcome, Failure) else Reply(outcome, files)

    @property
    def pid(self) -> int:
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
        if self._process is not None:
            # Whoever waits for it hears that it is gone.
            self._process.kill()
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

    def _explain_lost_job(self, lost: LinkLost) -> Failure:
        """Why the zygote did not carry out a job; what is left of it is ended."""
        assert self._link is not None
        self._link.kill(lost.started)
        log = self._link.read_log().strip()
        self.close()
        if lost.started is not None:
            return Failure(FailureKind.WORKER_DIED, f"The job took its worker down: it {lost}.", stderr=log)
        problem = f"{lost}. {log}".strip()
        return Failure(FailureKind.WORKER_DIED, f"The worker of {self.spec.python} does not stay up: {problem}")

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
            native = _find_out_later(probe) if self.spec.probed else None
            link = self._greet(command, hello)
            build = native.result() if native is not None else None
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
) -> TorchBuild | None:
    """What an interpreter's torch is does not change while this program runs, and takes seconds to find out."""
    return probe_torch(python, dict(variables), sys_path)[0]


def _find_out_later(find_out: Callable[[], T]) -> Future[T]:
    """A value that is found out meanwhile. (Executors refuse to work once the main thread has ended.)"""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(find_out())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def _judge(ending: Ending, timeout_s: float) -> Answer | Failure:
    """What a job came to: its answer, or the most telling reason for having none."""
    answer = ending.answer
    if isinstance(answer, Answer):
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


def explain_torch(
    python: str, problem: str | None, advice: str = "Install it there, or name another Python."
) -> SetupError:
    """An interpreter has no torch, or one that does not load because of a problem."""
    if problem is None:
        return SetupError(f"{python} has no torch.", missing="torch", advice=advice)
    text = f"torch of {python} does not load: {problem}."
    return SetupError(text, missing="torch", advice="Install it there anew.")


def _explain_refusal(python: str, refused: Refused) -> SetupError | WorkerError:
    if refused.reason in ("no_torch", "broken_torch"):
        return explain_torch(python, refused.message if refused.reason == "broken_torch" else None)
    if refused.reason == "unsupported":
        return SetupError(
            f"{python} cannot be used here. {refused.message}",
            missing="python",
            advice="Name another Python, or measure wall time instead (torchmark time).",
        )
    return WorkerError(f"The worker of {python} refuses to work: {refused.message}", kind=refused.reason)


def expect(reply: Reply | Failure, kind: type[T]) -> T | Failure:
    """The answer to a job whose answers are all of one kind."""
    if isinstance(reply, Failure):
        return reply
    assert isinstance(reply.message, kind)
    return reply.message


def measure_time(worker: Worker, job: TimeJob, timeout_s: float = DEFAULT_TIMEOUT_S) -> Times | Failure:
    return expect(worker.run(job, timeout_s=timeout_s), Times)


def race(
    worker: Worker, job: RaceJob, payload: bytes = b"", timeout_s: float = DEFAULT_TIMEOUT_S
) -> tuple[Times, ...] | Failure:
    """Have the statements of one job timed. Blocks at the same position in two of the results ran in one round."""
    raced = expect(worker.run(job, payload, timeout_s), Raced)
    return raced if isinstance(raced, Failure) else raced.results


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
    apart = [dataclasses.replace(job, layouts=(layout,)) for layout in job.layouts]
    replies = _run_all(worker, [job] if job.threads == 1 else apart, payload, timeout_s)
    if replies is None:
        replies = _run_all(worker, apart, payload, timeout_s)
    if isinstance(replies, Failure):
        return replies
    assert replies is not None
    counts = _read_counts(job, replies, keep_texts=keep_texts)
    if isinstance(counts, Failure) or not baseline:
        return counts
    empty = _count_empty_loop(worker, job.number, timeout_s)
    return empty if isinstance(empty, Failure) else dataclasses.replace(counts, baseline=empty)


def trace(worker: Worker, job: CountJob, timeout_s: float = DEFAULT_TIMEOUT_S) -> Trace | Failure:
    """Count once, in the heap as it happens to be, whatever layouts the job names."""
    assert worker.spec.stacks
    counts = count(worker, dataclasses.replace(job, layouts=(BARE_LAYOUT,)), timeout_s=timeout_s, baseline=False)
    return counts if isinstance(counts, Failure) else Trace(counts.layouts[0], counts.functions, counts.number)


def _count_empty_loop(worker: Worker, number: int, timeout_s: float) -> Profile | Failure:
    """In a process of its own, which no setup has touched: so it depends on nothing but the number of runs."""
    if number not in worker.baselines:
        job = CountJob("pass", "pass", Place("/"), number=number, layouts=(BARE_LAYOUT,))
        counts = count(worker, job, timeout_s=timeout_s, baseline=False)
        if isinstance(counts, Failure):
            return counts
        worker.baselines[number] = counts.layouts[0]
    return worker.baselines[number]


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
    profiles: list[Profile] = []
    for name in names:
        try:
            # As a file has lines: names may have characters that only `splitlines` takes for ends of lines.
            profiles.append(parse_profile(io.StringIO(files[name]), must_be_complete=True))
        except StoreError as error:
            return Failure(FailureKind.NO_RESULT, f"{error} Is the disk for temporary files full?")
        if INSTRUCTIONS not in profiles[-1].events:
            return Failure(FailureKind.NO_RESULT, f"The profile of {name} does not count instructions.")
    answers = [reply.message for reply in replies if isinstance(reply.message, Counted)]
    return Counts(
        number=job.number,
        layouts=tuple(profiles),
        baseline=None,
        texts=tuple(tidy_for_other_programs(files[name]) for name in names) if keep_texts else None,
        optimised_away=any(answer.optimised_away for answer in answers),
        functions=tuple(PythonFunction(*function) for answer in answers for function in answer.functions),
    )


class TargetWorkers:
    """The workers of one target, and how they measure a statement that is ready.

    A worker is used by one thread at a time; different ones by different threads.
    """

    def __init__(
        self,
        target: Target,
        environ: Mapping[str, str] = os.environ,
        alias: str | None = None,
        path: Sequence[str] | None = None,
        *,
        variables: Mapping[str, str] | None = None,
        simulate: bool = False,
        statements: bool = False,
    ) -> None:
        """`alias` is another name of the target's interpreter, for those that count in it.

        `path` is where modules are found, if that is not where this program finds them. `variables` are set besides
        those of `environ`. With `simulate`, caches are simulated where instructions are counted. For `statements` only,
        workers start sooner: the timer compares no results and does not tell all of its environment, and those that
        count rehearse no TorchScript.
        """
        self.target = target
        self._path = path
        self._alias = alias
        self._environ = environ
        self._statements = statements
        # As it is now: a statement may take it away.
        self._folder = os.getcwd()
        self._lock = threading.Lock()
        self._closed = False
        if target.python is None:
            self._spec = own_worker(environ, variables, counting=False)
        else:
            self._spec = other_worker(target.python, environ, variables or {}, counting=False)
        self._counting = dataclasses.replace(self._spec, counting=True, simulate=simulate)
        self.timer = Worker(dataclasses.replace(self._spec, checking=not statements, probed=not statements), environ)
        self._abandoning: list[Callable[[], None]] = [self.timer.abandon]

    def start(self) -> None:
        self.timer.start()

    def make_counter(self, *, stacks: bool = False) -> Worker:
        """One more worker that counts, with all callers if their `stacks` are wanted; not started by this."""
        # For whatever is selected of suites: what a case counts must not depend on the others.
        spec = dataclasses.replace(self._counting, scripting=not self._statements, stacks=stacks)
        if self._alias is not None:
            real = find_interpreter(spec.python, dict(spec.variables))
            spec = dataclasses.replace(spec, python=self._alias, known_as=real)
        worker = Worker(spec, self._environ)
        self._keep(worker.abandon)
        return worker

    def place(self, case: Case) -> Place:
        """The working folder; and, for our own interpreter, where modules are found, those beside the suite first."""
        if self.target.python is not None:
            return Place(self._folder)
        beside = [os.path.dirname(os.path.abspath(case.suite))] if os.path.isfile(case.suite) else []
        return Place(self._folder, (*beside, *(visible_path() if self._path is None else self._path)))

    def make_side(self, case: Case, compiled: Compiled | None = None) -> PairedSide:
        """A case as a worker runs it, once its texts are complete."""
        args = case.args
        return PairedSide(args.stmt, args.setup, self.place(case), args.num_threads, compiled=compiled)

    def time_side(
        self,
        side: PairedSide,
        timeout_s: float,
        *,
        run_time_s: float = 0.2,
        limit_s: float = 10.0,
        threshold: float | None = None,
        number: int | None = None,
        blocks: int | None = None,
    ) -> Times | Failure:
        """Time a statement; see `TimeJob`."""
        job = TimeJob(
            **vars(side),
            min_run_time_s=run_time_s,
            max_run_time_s=limit_s,
            threshold=threshold,
            number=number,
            blocks=blocks,
        )
        return measure_time(self.timer, job, timeout_s=timeout_s)

    def count_side(
        self, side: PairedSide, counter: Worker, layouts: tuple[int, ...], timeout_s: float, *, number: int = 100
    ) -> Tally | Failure:
        # A loop of compiled code costs next to nothing.
        baseline = side.compiled is None
        counts = count(counter, make_count_job(side, number, layouts), timeout_s=timeout_s, baseline=baseline)
        return counts if isinstance(counts, Failure) else tally(counts, layouts)

    def abandon(self) -> None:
        with self._lock:
            self._closed = True
            abandoning = list(self._abandoning)
        for abandon in abandoning:
            abandon()

    def _keep(self, abandon: Callable[[], None]) -> None:
        """Note how to end one more worker, which is done at once if all have been ended."""
        with self._lock:
            self._abandoning.append(abandon)
        if self._closed:
            abandon()


def make_count_job(side: PairedSide, number: int, layouts: tuple[int, ...] = (BARE_LAYOUT,)) -> CountJob:
    return CountJob(**vars(side), number=number, layouts=layouts)
