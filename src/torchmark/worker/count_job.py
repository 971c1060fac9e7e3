"""Counts one statement in a child of the zygote. Everything here repeats to the instruction."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import signal
import sys
from types import CodeType
from typing import Any, NoReturn

from torchmark.measure.compiled import CompiledTimer
from torchmark.measure.dynamo import Watch
from torchmark.measure.snippet import SnippetTimer
from torchmark.measure.source import locate
from torchmark.measure.steps import Steps
from torchmark.model.job import BARE_LAYOUT, CountJob
from torchmark.model.outcome import FailureKind
from torchmark.worker.process import count_threads, die_with_parent, failure_of
from torchmark.worker.protocol import (
    DISCARDED,
    Counted,
    Failed,
    Separate,
    Unpacker,
    decode,
    describe_status,
    encode,
    name_layout,
    pack,
)

# As many as `callgrind/frames.c` tells apart.
FUNCTIONS = 1024
# Where in a frame its code object is, in words. Up to 3.10 a frame is an object with a head of three words and the
# frame before it; in 3.11 the function, its globals, built-ins and locals come first; after that the code does.
CODE_AT = 4 if sys.version_info < (3, 12) else 0
# Python 3.15 renamed the functions that get and set the evaluation of frames. The old names go away in 3.20.
PREFIX = "_Py" if sys.version_info < (3, 15) else "PyUnstable_"


class Calls:
    """Python functions pass through compiled ones of their own, while they are shown.

    That changes how Python calls them: not within one evaluation loop any more, but each in one of its own.
    """

    def __init__(self, library: str) -> None:
        api, loaded = ctypes.pythonapi, ctypes.PyDLL(library)
        api.PyInterpreterState_Get.restype = ctypes.c_void_p
        get = api[f"{PREFIX}InterpreterState_GetEvalFrameFunc"]
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        self._set = api[f"{PREFIX}InterpreterState_SetEvalFrameFunc"]
        self._set.restype, self._set.argtypes = None, [ctypes.c_void_p, ctypes.c_void_p]
        self._interpreter = ctypes.c_void_p(api.PyInterpreterState_Get())
        self._usual = ctypes.c_void_p(get(self._interpreter))
        self._ours = ctypes.cast(loaded.torchmark_eval, ctypes.c_void_p)
        self._codes = (ctypes.c_void_p * FUNCTIONS).in_dll(loaded, "torchmark_codes")
        self._known = ctypes.c_int.in_dll(loaded, "torchmark_known")
        prepare = loaded.torchmark_prepare
        prepare.restype, prepare.argtypes = None, [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        prepare(self._usual, CODE_AT, id(CodeType), ctypes.cast(api.Py_IncRef, ctypes.c_void_p))

    def show(self) -> None:
        self._set(self._interpreter, self._ours)

    def hide(self) -> None:
        self._set(self._interpreter, self._usual)

    def list_functions(self) -> tuple[tuple[str, str, int], ...]:
        """Those that were called, by their numbers: name, file, line."""
        return tuple(map(_describe, filter(None, self._codes[: self._known.value])))


def _describe(address: int) -> tuple[str, str, int]:
    code = ctypes.cast(address, ctypes.py_object).value
    # From 3.11 on, with the classes that a function is in.
    name = getattr(code, "co_qualname", code.co_name)
    return (name, *locate(code.co_filename, code.co_firstlineno))


# Those of a job, and one to ring with.
DESCRIPTORS = 6
# What os.fork calls before it forks, then in the child, and in the parent. They are part of Python's documented C API.
AROUND_FORK = ("PyOS_BeforeFork", "PyOS_AfterFork_Child", "PyOS_AfterFork_Parent")


class Marks:
    """Tells Callgrind when to write. `clock` is for a loop, which reads its clock just before and just after."""

    def __init__(self, library: str) -> None:
        # Not CDLL: that one lets go of the interpreter's lock around each call, which would be counted too.
        loaded = ctypes.PyDLL(library)
        self._start = loaded.torchmark_start
        self._arm = loaded.torchmark_arm
        self._arm.argtypes = [ctypes.c_char_p]
        self._running = loaded.torchmark_running
        self._running.restype = ctypes.c_ulong
        self._dump = loaded.torchmark_dump
        self._dump.argtypes = [ctypes.c_char_p]
        self._scatter = loaded.torchmark_scatter
        self._scatter.argtypes = [ctypes.c_ulong]
        self._serve = loaded.torchmark_serve
        self._serve.argtypes = [ctypes.c_int, ctypes.c_void_p, *[ctypes.c_void_p] * len(AROUND_FORK)]
        self._around_fork = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p) for name in AROUND_FORK]
        self._descriptors = (ctypes.c_int * DESCRIPTORS)()
        # A foreign function with no Python around it: whatever it costs between its request and the loop is counted.
        self.clock = loaded.torchmark_clock
        self.clock.restype = ctypes.c_double
        self.calls: Calls | None = None
        """Makes Python functions visible, where they are to be."""
        self.started = False
        """Whether what runs is looked at. It is not at first, which makes it several times as fast."""

    @property
    def watched(self) -> bool:
        return bool(self._running())

    def start(self) -> None:
        """Instrument and collect from here on."""
        self._start()
        self.started = True

    def arm(self, name: str) -> None:
        """Let the next loop that has `clock` for its clock write its profile, under this name."""
        self._arm(name.encode())

    def forget(self) -> None:
        """Let Callgrind start anew, which it does after it has written what it has."""
        self._dump(DISCARDED.encode())

    def serve(self, control: int) -> tuple[int, ...] | None:
        """Fork for every job, outside Python; see `worker/zygote.py` for what this does and gives."""
        if not self._serve(control, self._descriptors, *self._around_fork):
            return None
        return tuple(self._descriptors[:DESCRIPTORS])

    def scatter(self, seed: int) -> object:
        """Change the layout of the heap in a way that the seed decides; holds as long as what it gives is kept."""
        self._scatter(seed)
        return _scatter_objects(seed)


# Enough to touch every size class of Python's own allocator several times.
_SMALL_OBJECTS = 300
_LARGEST_SMALL_OBJECT_BYTES = 480


def _scatter_objects(seed: int) -> list[bytes]:
    """Python keeps small objects in pools of its own: fill some, with holes.

    The numbers come from the generator of Knuth's MMIX, the same in every version of Python.
    """
    state, kept = seed, []
    for _ in range(_SMALL_OBJECTS):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        piece = bytes(1 + (state >> 33) % _LARGEST_SMALL_OBJECT_BYTES)
        if (state >> 60) & 1:
            kept.append(piece)
    return kept


# CPython 3.11 starts to specialise a function at its eighth round, and 3.12 and newer wait for up to 52 executions of
# an instruction whose first guess was wrong. Functions that the statement calls need the same.
WARM_UP_RUNS = 64
# A statement of which only a few runs are wanted is a slow one: no more than needed for the first specialisation.
FEWEST_WARM_UP_RUNS = 12
# Then look at the loop's own instructions after every few runs, until they stay; some change their minds for ever.
RUNS_BETWEEN_LOOKS = 4
MOST_LOOKS = 32


def warm_up(code: CodeType | None, number: int) -> Steps[int]:
    """Run it before a measurement of `number` runs; how often depends on nothing but the program. Gives the runs.

    `code` is what the interpreter runs; None for a statement that is compiled.
    """
    runs = max(FEWEST_WARM_UP_RUNS, min(WARM_UP_RUNS, number))
    yield runs
    if code is None:
        return runs
    before = specialised_instructions(code)
    for _ in range(MOST_LOOKS):
        yield RUNS_BETWEEN_LOOKS
        runs += RUNS_BETWEEN_LOOKS
        after = specialised_instructions(code)
        if after == before:
            break
        before = after
    return runs


def specialised_instructions(code: CodeType) -> bytes:
    """The instructions as the interpreter runs them now, without its counters between them.

    Empty for an interpreter that does not specialise.
    """
    adaptive: bytes = getattr(code, "_co_code_adaptive", b"")
    # In the code as compiled, counters are instructions numbered 0 (CACHE); a position holds one in both or neither.
    return bytes(now for now, compiled in zip(adaptive[::2], code.co_code[::2]) if compiled)


# In a heap that was changed, the statement finds its places before it is counted.
SETTLING_RUNS = 8


def count(job: CountJob, namespace: dict[str, Any], marks: Marks) -> Counted | Separate | Failed:
    # Where this process answers, if it is one that was forked for a layout.
    answer_to: list[int] = []
    try:
        if job.compiled is None:
            timer = SnippetTimer(job.stmt, job.setup, marks.clock, namespace)
            return timer.follow(_count_visibly(job, timer.code, marks, answer_to))
        compiled = CompiledTimer(job.compiled, marks.clock)
        outcome = compiled.follow(_count_visibly(job, None, marks, answer_to))
        if isinstance(outcome, Counted):
            return dataclasses.replace(outcome, optimised_away=compiled.optimised_away)
        return outcome
    except BaseException as error:
        if not answer_to:
            raise
        _signal_and_wait(answer_to[0], failure_of(error))


def _count_visibly(
    job: CountJob, code: CodeType | None, marks: Marks, answer_to: list[int]
) -> Steps[Counted | Separate | Failed]:
    """With Python functions made visible, where that is asked for; from before the warm-up, as code adapts to it."""
    if marks.calls is None:
        return (yield from _count(job, code, marks, answer_to))
    marks.calls.show()
    try:
        outcome = yield from _count(job, code, marks, answer_to)
    finally:
        marks.calls.hide()
    return Counted(functions=marks.calls.list_functions()) if isinstance(outcome, Counted) else outcome


def _count(
    job: CountJob, code: CodeType | None, marks: Marks, answer_to: list[int]
) -> Steps[Counted | Separate | Failed]:
    yield from warm_up(code, job.number)
    watch = Watch() if job.watch_compiler else None
    if not marks.started:
        marks.start()
        # All code is translated anew after that: here, once for all layouts.
        yield SETTLING_RUNS
    if len(job.layouts) == 1:
        return (yield from _count_layout(job.number, job.layouts[0], marks, watch))
    threads = count_threads()
    if threads > 1:
        return Separate(threads)
    # Once for all layouts, which would otherwise each write the costs of setup and warm-up.
    marks.forget()
    for layout in job.layouts:
        outcome = yield from _count_in_fork(job.number, layout, marks, watch, answer_to)
        if isinstance(outcome, Failed):
            return outcome
    return Counted()


def _count_layout(number: int, layout: int, marks: Marks, watch: Watch | None) -> Steps[Counted | Failed]:
    _kept = marks.scatter(layout) if layout != BARE_LAYOUT else None
    yield SETTLING_RUNS
    marks.arm(name_layout(layout))
    yield number
    # Behind the loop, which has written its profile.
    problem = watch.find_compiling() if watch is not None else None
    return Counted() if problem is None else Failed(FailureKind.RECOMPILED.value, problem, None)


def _count_in_fork(
    number: int, layout: int, marks: Marks, watch: Watch | None, answer_to: list[int]
) -> Steps[Counted | Failed]:
    """One layout in a process of its own, so that all start from the same heap."""
    ours, theirs = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        answer_to.append(theirs)
        die_with_parent(parent)
        outcome = yield from _count_layout(number, layout, marks, watch)
        _signal_and_wait(theirs, outcome)
    os.close(theirs)
    answer = _read_answer(ours)
    os.close(ours)
    # By force: a normal exit would make Callgrind write one more profile.
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if answer is not None:
        return answer
    kind, text = describe_status(status)
    return Failed(kind.value, f"The process {text}.", None)


def _signal_and_wait(pipe: int, outcome: Counted | Failed) -> NoReturn:
    """Answer, and wait to be killed; whatever a user's signal handler may do meanwhile."""
    try:
        os.write(pipe, pack(encode(outcome)))
        while True:
            signal.pause()
    finally:
        os._exit(1)


def _read_answer(pipe: int) -> Counted | Failed | None:
    """One message, not all there is: something that the statement started may hold the pipe open for ever."""
    unpacker = Unpacker()
    while True:
        piece = os.read(pipe, 1 << 16)
        if not piece:
            return None
        for plain in unpacker.feed(piece):
            message = decode(plain)
            assert isinstance(message, (Counted, Failed))
            return message
