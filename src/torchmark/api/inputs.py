"""`measure_inputs`: statements timed in turns on the inputs of a fuzzer, which is found by name or in a file."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import inspect
import math
import os
import re
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch

from torchmark.api.measurement import Measurement, make_measurement
from torchmark.define.discovery import import_file
from torchmark.errors import TorchmarkError, UsageError
from torchmark.files import MachineLock
from torchmark.fuzz.fuzzer import Fuzzer, outline
from torchmark.fuzz.operators import (
    BinaryOpFuzzer,
    BinaryOpSparseFuzzer,
    SpectralOpFuzzer,
    UnaryOpFuzzer,
    UnaryOpSparseFuzzer,
)
from torchmark.model.environment import Environment
from torchmark.model.inputs import FuzzedInput
from torchmark.model.job import Place, RaceJob
from torchmark.model.outcome import Failure
from torchmark.model.plan import Metric, Plan, Sampling, Target
from torchmark.model.task import TaskSpec, Times, name_value
from torchmark.processes import StopRequest
from torchmark.report.html.fragments import render_input_panel, render_panel
from torchmark.report.text.failures import describe_failure, summarise_failure
from torchmark.report.text.inputs import describe_input
from torchmark.report.text.units import format_time
from torchmark.runner.cluster.backend import ClusterBackend
from torchmark.runner.cluster.protocol import Race
from torchmark.runner.machine import choose_cores
from torchmark.runner.spec import other_worker, own_worker, visible_path
from torchmark.runner.worker import DEFAULT_TIMEOUT_S, Worker, race, retry_if_killed
from torchmark.stats.intervals import PairedRatio, compare_paired

T = TypeVar("T")

DEFAULT_PRESET = "small"
# As large as those of torch.utils.benchmark.
FULL = "full"

# As many names of a module as an error lists.
MOST_NAMES = 10

# Folders whose lines say nothing about a mistake in a file of the user's.
NOT_THEIRS = (os.path.dirname(importlib.__file__), os.path.dirname(os.path.dirname(__file__)))

OWN: Mapping[str, Callable[..., Fuzzer]] = {
    "unary": UnaryOpFuzzer,
    "binary": BinaryOpFuzzer,
    "spectral": SpectralOpFuzzer,
    "sparse-unary": UnaryOpSparseFuzzer,
    "sparse-binary": BinaryOpSparseFuzzer,
}


def make_fuzzer(name: str, options: Mapping[str, Any]) -> Fuzzer:
    """A fuzzer that comes along, or `FILE.py:NAME` or `MODULE:NAME`: a fuzzer, or what makes one of these options."""
    if ":" in name:
        found = _look_up(name)
        if isinstance(found, Fuzzer):
            if options:
                raise UsageError(
                    f"{name!r} is a fuzzer as it is: {', '.join(options)} cannot be chosen. "
                    "Leave that out, or name a function that makes fuzzers of such options."
                )
            return found
    else:
        found = OWN.get(name.replace("_", "-"))
        if found is None:
            raise UsageError(f"There is no fuzzer {name!r}. There are: {', '.join(OWN)}; yours are spelt FILE.py:NAME.")
    if not callable(found):
        raise UsageError(f"{name!r} is neither a fuzzer nor a function that makes one: {found!r:.80}")
    try:
        inspect.signature(found).bind(**options)
    except TypeError as error:
        given = ", ".join(options) or "none"
        raise UsageError(f"{name!r} does not take these options ({given}): {error}.") from error
    except ValueError:
        pass  # some functions written in C do not tell
    made = run_code(f"{name!r} makes no fuzzer", lambda: found(**options))
    if not isinstance(made, Fuzzer):
        raise UsageError(f"{name!r} made {made!r:.80}, which is no fuzzer.")
    return made


def outline_all(made: Sequence[tuple[str | None, Fuzzer]], indices: Iterable[int]) -> Iterator[FuzzedInput]:
    """Inputs of fuzzers by the names of their types of elements; if there are several, each has its turn."""
    for index in indices:
        name, fuzzer = made[index % len(made)]
        # Constraints are functions of the user's.
        one = run_code(f"Input {index} cannot be made", partial(outline, fuzzer, index))
        yield one if name is None or len(made) == 1 else replace(one, features={"dtype": name, **one.features})


def run_code(trouble: str, code: Callable[[], T]) -> T:
    """Call what may be the user's code. If it fails, that is told as `trouble`, with the place."""
    try:
        return code()
    except TorchmarkError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(f"{trouble}: {type(error).__name__}: {error}{_locate(error)}.") from error


def _locate(error: BaseException) -> str:
    """The user's own last line, if any; a syntax error tells its place itself."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(("<frozen", *NOT_THEIRS))]
    if not theirs or isinstance(error, SyntaxError):
        return ""
    return f" ({Path(theirs[-1].filename).name}, line {theirs[-1].lineno})"


def find_dtype(name: str) -> torch.dtype:
    """A type of torch's by its name.

    >>> find_dtype("bfloat16")
    torch.bfloat16
    """
    found = getattr(torch, name.removeprefix("torch."), None)
    if not isinstance(found, torch.dtype):
        raise UsageError(
            f"torch has no dtype {name!r}. There are float32, int64, bool, complex64, bfloat16 and others."
        )
    return found


def choose_fuzzer(texts: Sequence[str]) -> str:
    """One that makes what the texts use: two operands if there is a `y`.

    >>> choose_fuzzer(["x + y", "torch.add(x, y)"]), choose_fuzzer(["x.yield_()", "yy = x"])
    ('binary', 'unary')
    """
    return "binary" if any(re.search(r"(?<![\w.])y(?!\w)", text) for text in texts) else "unary"


@dataclasses.dataclass(frozen=True)
class FuzzerOptions:
    """A fuzzer by its name, and what it is to be like."""

    name: str
    preset: str | None = None
    seed: int | None = None
    dtypes: str | None = None
    device: str | None = None

    def make(self) -> list[tuple[str | None, Fuzzer]]:
        """A fuzzer for each type of elements, by the type's name."""
        names = [None] if self.dtypes is None else [name.strip() for name in self.dtypes.split(",")]
        options = {"device": self.device, "seed": self.seed, "preset": self.preset}
        if ":" not in self.name:
            # Those of the user's decide for themselves what they are like if nothing is said.
            options |= {"seed": self.seed or 0, "preset": self.preset or DEFAULT_PRESET}
        if options["preset"] == FULL:
            options["preset"] = None
        given = {name: value for name, value in options.items() if value is not None}
        return [
            (name, make_fuzzer(self.name, given if name is None else given | {"dtype": find_dtype(name)}))
            for name in names
        ]

    def to_json_options(self, seed: int) -> dict[str, Any]:
        """The options that give the same inputs again."""
        own = ":" not in self.name
        return {
            "fuzzer": self.name,
            "preset": self.preset or (DEFAULT_PRESET if own else None),
            "seed": seed if own else self.seed,
            "dtype": self.dtypes,
            "device": self.device,
        }


def _look_up(name: str) -> Any:
    where, _, attribute = name.rpartition(":")
    if not where or not attribute:
        raise UsageError(f"{name!r} is not FILE.py:NAME or MODULE:NAME.")
    load, path = partial(importlib.import_module, where), Path(where)
    if where.endswith(".py"):
        if not path.is_file():
            raise UsageError(f"There is no file {os.fspath(path)!r}.")
        load = partial(import_file, os.fspath(path.resolve()))
    module = run_code(f"{where} cannot be loaded", load)
    if not hasattr(module, attribute):
        named = [one for one in vars(module) if not one.startswith("_")][:MOST_NAMES]
        raise UsageError(f"{where} has no {attribute!r}. It has: {', '.join(named) or 'no names'}.")
    return getattr(module, attribute)


# Of each statement on each input. With blocks of an eighth of it, an input takes less than a tenth of a second.
RUN_TIME_S = 0.02
# While another run of torchmark on this machine times, this one looks so often whether it is done.
LOOKING_INTERVAL_S = 0.1


@dataclasses.dataclass(frozen=True, repr=False)
class FuzzedResult:
    """What came of one input: the times of each statement, or why there are none."""

    input: FuzzedInput
    measurements: tuple[Measurement, ...] = ()
    """One for each statement. Blocks at the same position were timed in one round."""
    failure: Failure | None = None
    environment: Environment | None = None
    """What it was measured in."""

    @property
    def index(self) -> int:
        """The number of the input: `fuzzer[index]` has its tensors."""
        return self.input.index

    @property
    def code(self) -> str:
        """Python that makes the input, with torch alone."""
        return self.input.code

    def ratio(self, other: int = 1, base: int = 0) -> PairedRatio:
        """How many times as long a statement takes as another, round by round; as a logarithm."""
        return compare_paired(self.measurements[base].times, self.measurements[other].times)

    def describe(self) -> str:
        """The input in a few words."""
        return describe_input(self.input)

    def __repr__(self) -> str:
        if self.failure is not None:
            came = f"failed, {summarise_failure(self.failure)}"
        else:
            medians = [format_time(m.median) if m.raw_times else "not timed" for m in self.measurements]
            came = ", ".join(f"{m.stmt} {median}" for m, median in zip(self.measurements, medians, strict=True))
        return name_value(self, f"{self.index}: {self.describe()}: {came}")

    def _repr_html_(self) -> str:
        failure = None if self.failure is None else describe_failure(self.failure)
        measured = [(m.stmt, m._as_times()) for m in self.measurements]
        return render_panel(render_input_panel(f"input {self.index}: {self.describe()}", measured, failure))

    def __str__(self) -> str:
        if self.failure is not None:
            return f"{self.describe()}\n{describe_failure(self.failure)}"
        return "\n".join([self.describe(), *(f"  {format_time(m.median)}  {m.stmt}" for m in self.measurements)])


def measure_inputs(
    fuzzer: Fuzzer,
    stmts: str | Sequence[str],
    indices: int | Iterable[int] = 100,
    *,
    setup: str = "",
    threads: int = 1,
    min_run_time: float = RUN_TIME_S,
    python: str | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> Iterator[FuzzedResult]:
    """Time statements in turns on the inputs of a fuzzer, one after the other; what fails costs the others nothing.

    stmts: one or several; they use tensors and parameters by their names.
    indices: which inputs: `fuzzer[index]`; a number means the first so many.
    setup: runs once on each input, after the tensors have been made.
    min_run_time: seconds for each statement on each input.
    python: another interpreter, with its own torch. It sees none of your modules.

    >>> from torchmark import UnaryOpFuzzer
    >>> fuzzer = UnaryOpFuzzer(seed=0, preset="small")
    >>> for result in measure_inputs(fuzzer, ["x.neg()", "-x"], 2, min_run_time=0.001):
    ...     print(result.index, [m.stmt for m in result.measurements])
    0 ['x.neg()', '-x']
    1 ['x.neg()', '-x']
    """
    chosen = (stmts,) if isinstance(stmts, str) else tuple(stmts)
    if not chosen or not all(isinstance(stmt, str) for stmt in chosen):
        raise UsageError(f"Statements are texts, one or several, not {stmts!r}.")
    numbers = range(indices) if isinstance(indices, int) else indices
    for name, seconds in (("min_run_time", min_run_time), ("timeout_s", timeout_s)):
        if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
            raise UsageError(f"`{name}` is a number of seconds, not {seconds!r}.")
    if type(threads) is not int or threads < 1:
        raise UsageError(f"`threads` is a whole number from 1, not {threads!r}.")
    outlines = (outline(fuzzer, index) for index in numbers)
    return race_on(
        outlines,
        RaceJob(stmts=chosen, setup=setup, place=choose_place(python), threads=threads, min_run_time_s=min_run_time),
        python,
        timeout_s,
    )


def choose_place(python: str | None) -> Place:
    """The working folder, and for our own interpreter, where modules are found."""
    return Place(os.getcwd(), None if python else tuple(visible_path()))


def race_on(
    inputs: Iterable[FuzzedInput],
    job: RaceJob,
    python: str | None,
    timeout_s: float,
    tell_waiting: Callable[[], None] = lambda: None,
) -> Iterator[FuzzedResult]:
    """Carry a job out on each of the inputs, after the code that makes them.

    `tell_waiting` is called before it waits for another run of torchmark on this machine for the first time.
    """
    spec = (
        own_worker(os.environ, counting=False)
        if python is None
        else other_worker(python, os.environ, {}, counting=False)
    )
    with contextlib.closing(Worker(spec)) as worker, contextlib.closing(MachineLock()) as turns:
        worker.pin(choose_cores()[-job.threads :])
        told = False
        for one in inputs:
            while not turns.claim():
                if not told:
                    tell_waiting()
                    told = True
                time.sleep(LOOKING_INTERVAL_S)
            try:
                making = functools.partial(race, worker, dataclasses.replace(job, making=one.code), timeout_s=timeout_s)
                times = retry_if_killed(making)
            finally:
                turns.leave()
            yield make_result(one, job, times, worker.environment)


def race_inputs(
    inputs: Iterable[FuzzedInput],
    job: RaceJob,
    python: str | None,
    timeout_s: float,
    cluster: ClusterBackend | None,
    tell_waiting: Callable[[], None],
) -> Iterator[FuzzedResult]:
    """Carry a job out on each of the inputs: here, or on a cluster if there is one, each with a node for itself.

    Results of a cluster come as they are there. Where there is a single statement, inputs are compared with each other:
    all are timed on processors of one kind.
    """
    if cluster is None:
        yield from race_on(inputs, job, python, timeout_s, tell_waiting)
        return
    cluster.open(Plan((), (Target(python=python),), Sampling((Metric.WALL,), timeout_s=timeout_s)))
    races = [Race(one, dataclasses.replace(job, making=one.code), timeout_s) for one in inputs]
    with contextlib.closing(cluster.race(races, StopRequest(), alike=len(job.stmts) == 1)) as answers:
        for asked, raced in answers:
            yield make_result(asked.input, job, raced.result, raced.environment)


def make_result(
    one: FuzzedInput, job: RaceJob, times: Sequence[Times] | Failure, environment: Environment | None
) -> FuzzedResult:
    """What came of an input."""
    if isinstance(times, Failure):
        return FuzzedResult(one, failure=times, environment=environment)
    setup = f"{one.code}\n{job.setup}"
    tasks = [TaskSpec(stmt, setup, description=describe_input(one), num_threads=job.threads) for stmt in job.stmts]
    measurements = tuple(make_measurement(*pair) for pair in zip(times, tasks, strict=True))
    return FuzzedResult(one, measurements, environment=environment)
