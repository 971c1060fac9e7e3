"""One job in a process of its own: whatever happens in here costs this job only.

Apart from the zygote: it is what runs after the fork.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import signal
import socket
import sys
import time
from typing import IO, Any

import torch

from torchmark.measure.torch_files import SEED, script_model
from torchmark.model.job import (
    CheckJob,
    CompileJob,
    CountJob,
    GaugeJob,
    Given,
    Job,
    PairJob,
    RaceJob,
    ScriptJob,
    TimeJob,
)
from torchmark.worker.check_job import check
from torchmark.worker.compile_job import explain_absence, time_first_call
from torchmark.worker.count_job import Marks, count
from torchmark.worker.pair_job import gauge, time_pair
from torchmark.worker.process import die_with_parent, failure_of, volunteer_for_oom
from torchmark.worker.protocol import HEADER, Message, Scripted, decode, encode, pack
from torchmark.worker.time_jobs import measure_time, race

# What the descriptors of a job are for. The last of all is written to when the job is done; the one before it, if there
# is one more, is a socket that leads to the other side of a comparison.
ANSWER, OUTPUT, ERRORS, JOB, FOLDER, PARTNER = range(6)
DONE = -1

# How long to wait for the end, in case that nobody brings it.
EXIT_WAIT_S = 10.0


def run_child(descriptors: tuple[int, ...], marks: Marks | None, parent: int) -> None:
    """Do the job, answer, say that it is done, and wait for the end. Never returns."""
    try:
        prepare_process(descriptors, parent)
        with open(descriptors[JOB], "rb") as file:
            answer = do_job(file, marks, descriptors[PARTNER] if len(descriptors) > PARTNER + 1 else None)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        write_all(descriptors[ANSWER], pack(encode(answer)))
        os.write(descriptors[DONE], b".")
        # Whoever hears that kills this process. A normal exit would make Callgrind write one more profile.
        time.sleep(EXIT_WAIT_S)
    finally:
        os._exit(0)


def do_job(file: IO[bytes], marks: Marks | None, partner: int | None = None) -> Message:
    """Read the job and do it; whatever it raises is an answer too. `partner` is the way to the other side, if any."""
    try:
        file.seek(0)
        (size,) = HEADER.unpack(file.read(HEADER.size))
        job = decode(json.loads(file.read(size)))
        assert isinstance(job, (CountJob, TimeJob, RaceJob, GaugeJob, PairJob, CompileJob, ScriptJob, CheckJob))
        if (absence := explain_absence(job)) is not None:
            return absence
        if job.place.sys_path is not None:
            sys.path[:] = job.place.sys_path
        torch.set_num_threads(job.threads)
        sys.modules["__main__"].__dict__["torch"] = torch
        return _do_as_asked(job, {"torch": torch, **read_givens(job.givens, file)}, marks, partner)
    except BaseException as error:
        return failure_of(error)


def _do_as_asked(job: Job, namespace: dict[str, Any], marks: Marks | None, partner: int | None) -> Message:
    if isinstance(job, CountJob):
        assert marks is not None
        return count(job, namespace, marks)
    if isinstance(job, CompileJob):
        return time_first_call(job, namespace)
    if isinstance(job, ScriptJob):
        torch.manual_seed(SEED)
        script_model(job.source, job.path)
        return Scripted()
    if isinstance(job, CheckJob):
        return check(job)
    if isinstance(job, RaceJob):
        return race(job, namespace)
    if isinstance(job, GaugeJob):
        return gauge(job, namespace)
    if isinstance(job, PairJob):
        return time_pair(job, namespace, None if partner is None else socket.socket(fileno=partner))
    return measure_time(job, namespace)


def prepare_process(descriptors: tuple[int, ...], parent: int) -> None:
    """A process group of its own, the job's own folder and streams, and signals as a fresh process has them."""
    os.setpgid(0, 0)
    die_with_parent(parent)
    volunteer_for_oom()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.fchdir(descriptors[FOLDER])
    os.close(descriptors[FOLDER])
    os.dup2(descriptors[OUTPUT], 1)
    os.dup2(descriptors[ERRORS], 2)
    os.close(descriptors[OUTPUT])
    os.close(descriptors[ERRORS])


def read_givens(givens: tuple[Given, ...], file: IO[bytes]) -> dict[str, Any]:
    """The globals that came along, each after its own setup.

    A setup runs at the top level of `__main__`, where unpickling looks for a class that it defines.
    """
    values: dict[str, Any] = {}
    main = sys.modules["__main__"].__dict__
    for given in givens:
        if given.setup is not None:
            before = {*main, "__builtins__"}
            exec(given.setup, main)
            values.update((name, main[name]) for name in set(main) - before)
        values[given.name] = _load(given.form, file.read(given.size_bytes))
    return values


def _load(form: str, data: bytes) -> Any:
    if form == "pickle":
        return pickle.loads(data)
    if form == "torch_jit":
        return torch.jit.load(io.BytesIO(data))  # type: ignore[no-untyped-call]
    return torch.load(io.BytesIO(data), weights_only=False)


def write_all(descriptor: int, data: bytes) -> None:
    """All of it, however small the pieces that the pipe takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
