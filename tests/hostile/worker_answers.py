"""Workers that answer with anything: in place of a process there is a thread at the other end of the socket."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import random
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

from tests.hostile.json_values import NUMBERS, TEXTS, dump_raw, mutate
from tests.stored_runs import ADD_CASE, BEGAN, COMPILED_CASE, ENVIRONMENT, INFO
from torchmark.errors import TorchmarkError
from torchmark.model.environment import Sdk
from torchmark.model.job import BlockPlan, CountJob, PairedCase, PairedSide, Place, RaceJob, SideBlocks, TimeJob, Way
from torchmark.model.outcome import CompileCosts, Failure, FirstCall, Outcome, Result
from torchmark.model.plan import Artefact, Case, Metric, Plan, RuntimeMode, Sampling, Target
from torchmark.model.task import Times
from torchmark.runner import link, worker
from torchmark.runner.compile_cases import CompileTimer
from torchmark.runner.lab import Lab, Prepared, VariantChecker
from torchmark.runner.paired_workers import PairedWorkers
from torchmark.runner.prepare import Models
from torchmark.runner.spec import own_worker
from torchmark.runner.worker import Worker, count, measure_time, race
from torchmark.store.runs import open_store
from torchmark.worker import protocol
from torchmark.worker.protocol import (
    PROTOCOL,
    Checked,
    Counted,
    Ended,
    Failed,
    Gauged,
    Message,
    PairTimed,
    Raced,
    Ready,
    Refused,
    Scripted,
    Separate,
    Started,
    encode,
)

# A worker of ours that does not answer is given up after twenty seconds; these need no time.
PATIENCE_S = 1.0
PLACE = Place("/")
SDK = Sdk(
    python="/bin/python",
    folder="/nowhere/torch",
    version="2.2",
    git_version="abc",
    cxx11_abi=True,
    cxx_flags="-O2",
    cxx_standard=17,
    python_include=None,
)
READY = Ready(
    protocol=PROTOCOL,
    pid=1,
    python_version="3.11.7",
    torch_version="2.2.0",
    cpu_capability="AVX2",
    debug_symbols=True,
    sdk=SDK,
)
PROFILE = """version: 1
creator: callgrind-3.19.0
pid: 1
cmd: python
part: 1

desc: Trigger: Client Request: layout 1

positions: line
events: Ir
summary: 100

ob=(1) /bin/python
fl=(1) a.c
fn=(1) main
1 30
cfn=(2) add
calls=1 2
1 70

fn=(2)
2 70

totals: 100
"""
ANSWERS: Mapping[str, Message] = {
    "time": Times(1000, (0.1, 0.2, 0.15), 1e-8),
    "race": Raced((Times(10, (0.1, 0.2)), Times(10, (0.1, 0.2)))),
    "count": Counted(functions=(("f", "a.py", 1),)),
    "check": Checked(None),
    "compile": FirstCall(2.5, 0.5, 1, 0, breaks=("print",)),
    "script": Scripted(),
    "gauge": Gauged(1e-6),
    "pair": PairTimed((SideBlocks((0.1, 0.1), (0, 0), (0, 0)),) * 2),
}
_OTHER_ANSWERS: tuple[Message, ...] = (
    Separate(3),
    Failed("raised", "ValueError: no", None),
    Refused("no", "no"),
    READY,
)


@dataclasses.dataclass(frozen=True)
class Script:
    """What a worker sends: bytes at each point at which something is expected of it."""

    job: str
    greeting: bytes
    before: bytes
    """To the parent, when the job has begun."""
    answer: bytes
    printed: bytes
    files: tuple[tuple[str, bytes | None], ...]
    """What it leaves among its profiles; None is a folder."""
    after: bytes
    """To the parent, when the job has ended."""
    is_answer: bool
    """Whether only the job is hostile. The zygote is ours then, so that the job alone may fail."""


def make_script(chance: random.Random) -> Script:
    """A worker that is hostile in one respect."""
    job = chance.choice((*ANSWERS, "time", "time", "compile"))
    good = Script(
        job,
        _pack(encode(READY)),
        _pack(encode(Started(JOB_PID))),
        _pack(encode(ANSWERS[job])),
        b"",
        (("callgrind.out.1", PROFILE.encode()),) if job == "count" else (),
        _pack(encode(_KILLED)),
        True,
    )
    kind = chance.random()
    if kind < 0.7:
        return dataclasses.replace(good, answer=_make_answer(ANSWERS[job], chance))
    if job == "count" and kind < 0.85:
        return dataclasses.replace(good, files=_make_files(chance))
    if kind < 0.75:
        printed = b"".join(text.encode(errors="replace") for text in chance.sample(TEXTS, 5)) + chance.randbytes(100)
        failed = Failed(chance.choice(("raised", "exited")), chance.choice(TEXTS), chance.choice((None, *TEXTS)))
        return dataclasses.replace(good, printed=printed, answer=_pack(encode(failed)))
    hostile = dataclasses.replace(good, is_answer=False)
    if kind < 0.83:
        return dataclasses.replace(hostile, greeting=_make_control(chance.choice((READY, Refused("x", "y"))), chance))
    if kind < 0.92:
        return dataclasses.replace(hostile, before=_make_control(Started(JOB_PID), chance), after=b"")
    return dataclasses.replace(hostile, after=_make_control(_KILLED, chance), answer=b"")


# What it says that the job is: the largest number that Linux gives, which no process here has.
JOB_PID = (1 << 22) - 1
# A job that has answered waits to be killed.
_KILLED = Ended(signal.SIGKILL)
_PIDS = (0, 1, -1, 2, -JOB_PID, 1 << 31, 1 << 40, "1", None, True, 1.5, [1])


def _pack(message: Any) -> bytes:
    return _frame(json.dumps(message).encode())


def _frame(text: bytes) -> bytes:
    return protocol.HEADER.pack(len(text)) + text


def _mutated(message: Message, chance: random.Random) -> bytes:
    return _frame(dump_raw(mutate(json.loads(json.dumps(encode(message))), chance)).encode())


def _garbage(chance: random.Random) -> bytes:
    return chance.choice(
        (
            b"",
            b"\xff\xff\xff\xff",
            b"\x7f\xff\xff\xffx",
            protocol.HEADER.pack(protocol.LARGEST_FRAME_BYTES) + b"{",
            b"\0\0\0\0",
            b"\0\0",
            _frame(b"[" * 200_000 + b"]" * 200_000),
            _frame(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
            _frame(b"[]"),
            _frame(b"null"),
            _frame(b"\xff\xfe"),
            _frame(b"{}"),
            _frame(b'{"kind":[]}'),
            _frame(b'{"kind":{}}'),
            _frame(b'{"kind":null}'),
            _frame(b'{"kind":"\\u001b]0;PWN\\u0007\\n::error::x"}'),
            _frame(b"{" + b" " * 3_000_000 + b"}"),
            chance.randbytes(1000),
        )
    )


def _make_answer(good: Message, chance: random.Random) -> bytes:
    kind = chance.random()
    if kind < 0.5:
        return _mutated(good, chance)
    if kind < 0.6:
        return _pack(encode(chance.choice((*ANSWERS.values(), *_OTHER_ANSWERS))))
    if kind < 0.66:
        plain: dict[str, Any] = {"kind": "failed", "failure": "raised", "message": "no", "traceback": None}
        plain[chance.choice(("failure", "message", "traceback"))] = chance.choice(("nosuch", 5, None, [], {}, True))
        return _pack(plain)
    if kind < 0.72:
        size = '"number_per_run":'
        field = chance.choice((f"{size}0", f"{size}-1", f"{size}{chance.choice(NUMBERS)}", '"raw_times":["x"]'))
        fields = [field, *(f for f in (f"{size}10", '"raw_times":[0.1]') if f[:6] != field[:6])]
        return _frame(('{"kind":"times","overhead_s":null,' + ",".join(fields) + "}").encode())
    if kind < 0.76:
        return _pack(encode(good)) * chance.choice((2, 1000)) + chance.choice((b"", b"\xff" * 5))
    if kind < 0.8:
        packed = _pack(encode(good))
        return packed[: chance.randrange(len(packed))]
    return _garbage(chance)


def _make_control(good: Message, chance: random.Random) -> bytes:
    kind = chance.random()
    if kind < 0.35:
        return _mutated(good, chance)
    if kind < 0.6 and isinstance(good, (Started, Ended)):
        field = "pid" if isinstance(good, Started) else "status"
        return _pack({**encode(good), field: chance.choice(_PIDS)})
    if kind < 0.8:
        return _pack(encode(chance.choice((*ANSWERS.values(), *_OTHER_ANSWERS, Started(1), Ended(-1)))))
    return _garbage(chance)


def _make_files(chance: random.Random) -> tuple[tuple[str, bytes | None], ...]:
    text: bytes | None = PROFILE.encode()
    kind = chance.random()
    if kind < 0.6:
        lines = PROFILE.splitlines()
        for _ in range(chance.choice((1, 2))):
            line = chance.choice((*TEXTS, *NUMBERS, "calls=1 1", "1 -5", "+1 5", "fn=(99)", "events: Dr", "totals: 1"))
            lines[chance.randrange(7, len(lines))] = line
        text = "\n".join(lines).encode(errors="replace")
    elif kind < 0.8:
        text = PROFILE.encode()[: chance.randrange(len(PROFILE))]
    elif kind < 0.9:
        text = None
    else:
        text = chance.randbytes(3000)
    name = chance.choice(("callgrind.out.1", "x", "-", "a\x1b]0;PWN\x07"))
    return ((name, text), *((("more", PROFILE.encode()),) if chance.random() < 0.3 else ()))


# --- carrying it out -------------------------------------------------------------------------------------


class FakeProcess:
    """What a parent takes for the process of its zygote."""

    def __init__(self, script: Script, stdin: int) -> None:
        self.pid = os.getpid()
        self.returncode: int | None = None
        self._script = script
        self._socket = socket.socket(fileno=os.dup(stdin))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def kill(self) -> None:
        self.returncode = -signal.SIGKILL
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        return self.returncode or 0

    def _serve(self) -> None:
        with contextlib.suppress(OSError, TorchmarkError), self._socket:
            (size,) = protocol.HEADER.unpack(protocol.read_exactly(self._socket, protocol.HEADER.size))
            protocol.read_exactly(self._socket, size)
            hello = protocol.receive(self._socket)
            assert hello is not None
            self._socket.sendall(self._script.greeting)
            while (received := protocol.receive(self._socket)) is not None:
                if received[0].get("kind") == "go":
                    self._answer(received[1], Path(hello[0]["scratch"]))

    def _answer(self, descriptors: tuple[int, ...], scratch: Path) -> None:
        script = self._script
        with contextlib.ExitStack() as stack:
            for descriptor in descriptors:
                stack.callback(os.close, descriptor)
            self._socket.sendall(script.before)
            for name, content in script.files:
                if content is None:
                    (scratch / name).mkdir(exist_ok=True)
                else:
                    (scratch / name).write_bytes(content)
            kind = _read_job(descriptors[3])
            # Some measurements take several jobs, of which those of one kind are hostile.
            answer = script.answer if kind == script.job else _pack(encode(ANSWERS[kind]))
            for descriptor, data in zip(descriptors, (answer, script.printed), strict=False):
                with contextlib.suppress(OSError), open(descriptor, "wb", closefd=False) as stream:
                    stream.write(data)
        self._socket.sendall(script.after)
        if not script.is_answer:
            # Whoever is waited for in vain is gone.
            self._socket.shutdown(socket.SHUT_RDWR)


def _read_job(descriptor: int) -> str:
    """What kind of job it is, from the file that came with it."""
    content = os.pread(descriptor, 1 << 16, 0)
    (size,) = protocol.HEADER.unpack_from(content)
    return str(json.loads(content[protocol.HEADER.size : protocol.HEADER.size + size])["kind"])


def run_script(script: Script, store: Path) -> None:
    """Have the job done, and keep what came of it in a store. Raises whatever gets out of the parent's side."""

    def start(command: object, *, stdin: int, **_: object) -> FakeProcess:
        return FakeProcess(script, stdin)

    fake = SimpleNamespace(Popen=start, TimeoutExpired=subprocess.TimeoutExpired)
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(link, "subprocess", fake))
        # There is no process that somebody has to stand by for.
        stack.enter_context(mock.patch.object(link, "guarded", return_value=contextlib.nullcontext(), create=True))
        stack.enter_context(mock.patch.object(worker, "probe_torch", return_value=(None, None)))
        stack.enter_context(mock.patch.object(link, "ANSWER_TIMEOUT_S", PATIENCE_S))
        try:
            result = _JOBS[script.job]()
        except TorchmarkError:
            if script.is_answer:
                raise
            return
    if isinstance(result, (Times, CompileCosts, Failure)):
        _keep(result, store)


def _make_worker() -> Worker:
    return Worker(own_worker(os.environ, counting=False), os.environ)


def _time() -> Result:
    made = _make_worker()
    try:
        return measure_time(made, TimeJob("pass", "pass", PLACE), timeout_s=PATIENCE_S)
    finally:
        made.close()


def _race() -> Result | None:
    made = _make_worker()
    try:
        result = race(made, RaceJob(("pass", "pass"), "pass", PLACE), timeout_s=PATIENCE_S)
        return result if isinstance(result, Failure) else result[0]
    finally:
        made.close()


def _count() -> Result | None:
    made = _make_worker()
    try:
        job = CountJob("pass", "pass", PLACE, number=10, layouts=(1,))
        result = count(made, job, timeout_s=PATIENCE_S, baseline=False)
        return result if isinstance(result, Failure) else None
    finally:
        made.close()


def _check() -> None:
    made = _make_worker()
    other = dataclasses.replace(
        ADD_CASE, autolabels=dataclasses.replace(ADD_CASE.autolabels, runtime=RuntimeMode.EXPLICIT)
    )
    prepared = {case: Prepared(case, check=Way("pass", "pass")) for case in (ADD_CASE, other)}
    lab = SimpleNamespace(timer=made, compile_timer=SimpleNamespace(worker=made), place=lambda _: PLACE)
    try:
        list(VariantChecker(cast(Lab, lab), PATIENCE_S).compare(prepared))
    finally:
        made.close()


def _compile() -> Result:
    timer = CompileTimer(own_worker(os.environ, counting=False), os.environ)
    try:
        return timer.measure(COMPILED_CASE, PLACE, timeout_s=PATIENCE_S)
    finally:
        timer.abandon()


def _script() -> None:
    made = _make_worker()
    try:
        with Models(os.environ) as models:
            models.make([Artefact("model", "jit_model = f")], made)
    finally:
        made.close()


def _use_pair(use: Callable[[PairedWorkers, PairedCase], object]) -> None:
    workers = PairedWorkers(
        Target(), Target(), [min(os.sched_getaffinity(0))], os.environ, together=True, timeout_s=PATIENCE_S
    )
    part = PairedSide("add", "pass", PLACE)
    try:
        workers.start([0])
        use(workers, PairedCase(part, part))
    finally:
        workers.close()


_JOBS: Mapping[str, Callable[[], Result | None]] = {
    "time": _time,
    "race": _race,
    "count": _count,
    "check": _check,
    "compile": _compile,
    "script": _script,
    "gauge": lambda: _use_pair(lambda workers, pair: workers.gauge(pair)),
    "pair": lambda: _use_pair(lambda workers, pair: workers.visit(0, pair, BlockPlan(10, 1, 2))),
}


def _keep(result: Result, path: Path) -> None:
    """As a run does it; whatever is kept can be read again."""
    case: Case = COMPILED_CASE if isinstance(result, CompileCosts) else ADD_CASE
    plan = Plan((case,), (Target(),), Sampling((Metric.WALL,)))
    info = dataclasses.replace(INFO, id=f"{7:032x}", options=())
    with open_store(path, create=True) as store:
        with store.begin(plan, info) as recorder:
            recorder.append(
                Outcome(order=plan.orders[0], result=result, began=BEGAN, ended=BEGAN + 1, environment=ENVIRONMENT)
            )
            recorder.finish()
        store.load(info.id, profiles=True)
