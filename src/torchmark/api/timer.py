"""`Timer`: times a statement. It only composes; clock, loop and block sizes live in `measure`."""

from __future__ import annotations

import dataclasses
import math
import operator
import os
import re
import textwrap
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, overload

import torch

from torchmark.api.callgrind_stats import CallgrindStats
from torchmark.api.measurement import Measurement, make_measurement
from torchmark.api.timer_engines import CopyIfCallgrind, CppTimer, collect, get_worker, pack_globals
from torchmark.errors import UsageError
from torchmark.measure import steps
from torchmark.measure.clock import choose_clock, set_torch_threads
from torchmark.measure.clock import timer as default_timer
from torchmark.measure.compiled import MOST_RUNS
from torchmark.measure.snippet import SnippetTimer, Statement
from torchmark.measure.source import name_callable
from torchmark.measure.steps import Engine, R, Steps, carry_out, share_setup
from torchmark.model.job import DEFAULT_LAYOUTS, CountJob, Place
from torchmark.model.task import Language, TaskSpec, Times
from torchmark.runner.spec import choose_layouts, own_worker, visible_path
from torchmark.runner.worker import DEFAULT_TIMEOUT_S, count

# A raw string, or any string that goes on behind a backslash at the end of a line.
_LITERAL_OF_SEVERAL_LINES = re.compile(r'R"[^()\\\s"]{0,16}\([^)]*\n|\\\n')

# Whether it is C++.
_LANGUAGES = dict.fromkeys((Language.PYTHON, "py", "python"), False) | dict.fromkeys((Language.CPP, "cpp", "c++"), True)


class Timer:
    """Measures the time of a statement, as `timeit.Timer` does, minding what PyTorch needs.

    Accelerators are synchronised before each clock read, torch runs with `num_threads` threads, the statement is
    warmed up, and results come as a `Measurement` that knows when it is not to be trusted. Statements run in
    this process, in either language: one that crashes ends the program. `torchmark time` uses processes of their own.

    stmt: the statement, or a callable without arguments.
    setup: runs before each block, or once for all blocks of a measurement with `setup_once=True`.
    global_setup: for C++ only: what stands at file scope, such as `#include` lines and functions.
    timer: the clock; the default synchronises where there is an accelerator, which is found out once.
    globals: names the statement may use; `torch` is always among them. C++ has none.
    language: "python" or "cpp". C++ sees torch's own API, is compiled when it is first needed, together with all other
        C++ timers that wait for that.
    label, sub_label, description, env: where the result stands in a `Compare` table.

    >>> timer = Timer("x + y", setup="x, y = torch.ones(4), torch.ones(4)", label="add")
    >>> timer.blocked_autorange(min_run_time=0.01).title
    'add'
    """

    _timer_cls: ClassVar[Callable[..., Engine]] = SnippetTimer

    def __init__(
        self,
        stmt: Statement = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = default_timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
        *,
        setup_once: bool = False,
    ) -> None:
        if not isinstance(stmt, str) and not callable(stmt):
            raise UsageError(f"A statement is a `str` or a callable without arguments, not {type(stmt)}.")
        is_cpp = _LANGUAGES.get(language)
        if is_cpp is None:
            choices = "Language.PYTHON or 'python', and Language.CPP or 'cpp'"
            raise UsageError(f"Invalid language `{language}`. The choices are {choices}.")
        normalise = _normalise_cpp if is_cpp else _normalise
        if isinstance(stmt, str):
            stmt = normalise(stmt)
        setup = normalise(setup)
        if is_cpp:
            setup = "" if setup == "pass" else setup
            global_setup = normalise(global_setup)
        self._task_spec = TaskSpec(
            stmt=stmt if isinstance(stmt, str) else name_callable(stmt),
            setup=setup,
            global_setup=global_setup,
            label=label,
            sub_label=sub_label,
            description=description,
            env=env,
            num_threads=num_threads,
        )
        self._is_text = isinstance(stmt, str)
        self._globals = dict(globals or {})
        self._engine: Engine
        if is_cpp:
            if self._timer_cls is not SnippetTimer:
                raise AssertionError("_timer_cls has already been swapped.")
            if not isinstance(stmt, str):
                raise UsageError("A C++ statement is a `str`.")
            self._engine = CppTimer(stmt, setup, global_setup, timer, self._globals)
        else:
            self._engine = self._make_python_engine(stmt, setup, global_setup, timer)
        if setup_once and not hasattr(self._engine, "follow"):
            raise UsageError(f"{type(self._engine)} runs the setup before each block: leave out `setup_once`.")
        self._setup_once = setup_once

    def _make_python_engine(self, stmt: Statement, setup: str, global_setup: str, timer: Callable[[], float]) -> Engine:
        if global_setup:
            raise UsageError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`."
            )
        return self._timer_cls(
            stmt=stmt,
            setup=setup,
            timer=choose_clock() if timer is default_timer else timer,
            globals={"torch": torch, **CopyIfCallgrind.unwrap_all(self._globals)},
        )

    def _carry_out(self, steps: Steps[R]) -> R:
        """Measure with the thread count and the setups as asked for."""
        if isinstance(self._engine, CppTimer):
            # Before any clock is read: compiling is no part of the time that a measurement may take.
            self._engine.compile()
        with set_torch_threads(self._task_spec.num_threads):
            return share_setup(self._engine, steps) if self._setup_once else carry_out(self._engine, steps)

    def _measure(self, steps: Steps[Times]) -> Measurement:
        times = self._carry_out(steps)
        optimised_away = getattr(self._engine, "optimised_away", False)
        return make_measurement(dataclasses.replace(times, optimised_away=optimised_away), self._task_spec)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Warm up, then time one block of `number` runs: a measurement of a single sample.

        `repeat` and the autoranges give the scatter too.
        """
        return self._measure(steps.one_block(self._check_count("number", number)))

    def repeat(self, repeat: int = steps.REPEATS, number: int = 1_000_000) -> Measurement:
        """Warm up, then time `repeat` blocks of `number` runs and keep each: `repeat(100, 1)` times single runs."""
        repeats = steps.repeated(self._check_count("repeat", repeat), self._check_count("number", number))
        return self._measure(repeats)

    def autorange(self, callback: steps.Callback | None = None) -> Measurement:
        """As `python -m timeit` does, find a block that takes 0.2 s; then time five of them and keep all five.

        The search goes 1, 2, 5, 10, 20, ... runs, and its last block is the first of the five.
        `callback(number, seconds)` sees every block of the search.
        """
        return self._measure(steps.preferred(callback))

    def blocked_autorange(
        self,
        callback: steps.Callback | None = None,
        min_run_time: float = steps.RUN_TIME_S,
        *,
        max_run_time: float | None = None,
    ) -> Measurement:
        """Choose a block size, then time blocks until they add up to `min_run_time` seconds.

        A block is long enough for the clock's overhead to be at most 0.01 % of it. `callback(number, seconds)` sees
        each block. Without `max_run_time` block sizes are powers of ten and the sequence of blocks is that of
        `torch.utils.benchmark`; a block may then be ten times longer than needed, nothing bounds the time, and a slow
        statement may run only once in each block, in caches and a heap that the setup left cold.

        With `max_run_time` the block is no longer than needed, slow statements run several times in it (the first run
        after a setup is a cold one), and no new block is started once that many seconds have passed since the call,
        setup included. However little that is, the setup runs at least twice: to find the block size, and for the
        one block that is always timed.
        """
        self._check_seconds("min_run_time", min_run_time)
        if max_run_time is None:
            return self._measure(steps.blocked(min_run_time, callback))
        self._check_seconds("max_run_time", max_run_time)
        return self._measure(steps.blocked_within(min_run_time, max_run_time, callback, self._now))

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: steps.Callback | None = None,
    ) -> Measurement:
        """Time blocks until the interquartile range is below `threshold` of the median.

        At least `min_run_time` seconds and four blocks, and not much more than `max_run_time` seconds.
        """
        self._check_seconds("min_run_time", min_run_time)
        return self._measure(steps.adaptive(threshold, min_run_time, max_run_time, callback))

    @overload
    def collect_callgrind(
        self,
        number: int = ...,
        *,
        repeats: None = ...,
        collect_baseline: bool = ...,
        retain_out_file: bool = ...,
        layouts: int = ...,
        simulate_caches: bool = ...,
        set_env: Mapping[str, str] | None = ...,
        timeout_s: float = ...,
    ) -> CallgrindStats: ...

    @overload
    def collect_callgrind(
        self,
        number: int = ...,
        *,
        repeats: int,
        collect_baseline: bool = ...,
        retain_out_file: bool = ...,
        layouts: int = ...,
        simulate_caches: bool = ...,
        set_env: Mapping[str, str] | None = ...,
        timeout_s: float = ...,
    ) -> tuple[CallgrindStats, ...]: ...

    def collect_callgrind(
        self,
        number: int = 100,
        *,
        repeats: int | None = None,
        collect_baseline: bool = True,
        retain_out_file: bool = False,
        layouts: int = len(DEFAULT_LAYOUTS),
        simulate_caches: bool = False,
        set_env: Mapping[str, str] | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> CallgrindStats | tuple[CallgrindStats, ...]:
        """Count the instructions of `number` runs with Valgrind's Callgrind; with `repeats`, so many times.

        The first call starts a Python with torch under Valgrind, which takes a while; it is kept until this process
        ends, and each count is taken in a fork of it. The statement runs in a loop inside a function, as it does when
        it is timed, after a warm-up and with the garbage collector off. Names that it uses must come from `setup`, or
        from `globals` wrapped in `CopyIfCallgrind`. Of the environment variables it sees those that torch and its
        libraries read, and those in `set_env`.

        The same heap gives the same count to the instruction; another may give 0.5 % more. So each count is taken in
        several `layouts` of memory, always the same ones, and the result is the median. `layouts=1` is the bare count.

        collect_baseline: count the empty loop too, in another fork of the same process.
        retain_out_file: keep what Callgrind wrote, for tools such as KCachegrind, in `stmt_callgrind_out`.
        simulate_caches: also simulate caches and branch prediction, for `estimated_cycles`.
        timeout_s: when to give up on a process that runs the statement.
        """
        number = self._check_count("number", number)
        if math.isnan(timeout_s) or timeout_s < 0:
            raise UsageError(f"`timeout_s` must be a number of seconds, not {timeout_s}.")
        if repeats is not None and repeats < 1:
            raise UsageError("If specified, `repeats` must be >= 1")
        if not self._is_text:
            raise UsageError("A callable cannot be counted: it would have to run in another process. Give a text.")
        seeds = choose_layouts(operator.index(layouts))
        givens, payload = pack_globals(self._globals)
        compiled = None
        if isinstance(self._engine, CppTimer):
            compiled = self._engine.compile()
        else:
            # A faulty statement is told at once, as the exception it raises.
            self._carry_out(steps.time_block(1))
        spec = self._task_spec
        job = CountJob(
            stmt=spec.stmt,
            setup=spec.setup,
            place=Place(os.getcwd(), tuple(visible_path())),
            number=number,
            threads=operator.index(spec.num_threads),
            layouts=seeds,
            givens=givens,
            compiled=compiled,
        )
        worker = get_worker(own_worker(os.environ, set_env, simulate=simulate_caches))
        baseline = collect_baseline and compiled is None
        attempt = partial(count, worker, job, payload, timeout_s, baseline=baseline, keep_texts=retain_out_file)
        results = tuple(collect(spec, job, worker, attempt) for _ in range(repeats or 1))
        return results[0] if repeats is None else results

    # Replaced in tests by a clock that stands still.
    _now = staticmethod(time.perf_counter)

    @staticmethod
    def _check_count(name: str, value: int) -> int:
        """A whole number of any kind as Python's own, if a loop can count to it."""
        value = operator.index(value)
        if not 1 <= value <= MOST_RUNS:
            raise UsageError(f"`{name}` must be at least 1 and less than 2**63, not {value}.")
        return int(value)

    @staticmethod
    def _check_seconds(name: str, value: float) -> None:
        if math.isnan(value):
            raise UsageError(f"`{name}` must be a number of seconds, not {value}.")


def _normalise_cpp(text: str) -> str:
    """The same for C++, but that not a blank is taken out of a literal that spans lines."""
    return text.removeprefix("\n").rstrip() if _LITERAL_OF_SEVERAL_LINES.search(text) else _normalise(text)


def _normalise(text: str) -> str:
    """Without common indentation, a first empty line and trailing white space, so that code can stand indented."""
    return textwrap.dedent(text).removeprefix("\n").rstrip()
