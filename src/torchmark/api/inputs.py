"""`measure_inputs`: statements timed in turns on the inputs of a fuzzer, each input in a process of its own."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from torchmark.api.measurement import Measurement, make_measurement
from torchmark.cluster.backend import ClusterBackend
from torchmark.cluster.parcels import Race
from torchmark.errors import UsageError
from torchmark.fuzz.features import outline
from torchmark.fuzz.fuzzer import Fuzzer
from torchmark.model.environment import Environment
from torchmark.model.inputs import FuzzedInput
from torchmark.model.job import Place, RaceJob
from torchmark.model.line import name_value
from torchmark.model.outcome import Failure
from torchmark.model.plan import Metric, Plan, Sampling, Target
from torchmark.model.task import TaskSpec
from torchmark.model.times import Times
from torchmark.report.failures import describe_failure, sum_up_failure
from torchmark.report.inputs import word_input
from torchmark.report.notebook import render_panel, show_input
from torchmark.report.units import format_time
from torchmark.runner.backend import Stop
from torchmark.runner.cores import choose_cores
from torchmark.runner.racing import race
from torchmark.runner.spec import other_worker, own_worker, visible_path
from torchmark.runner.turns import Turns
from torchmark.runner.worker import DEFAULT_TIMEOUT_S, Worker
from torchmark.stats.paired import PairedRatio, compare_paired

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
        return word_input(self.input)

    def __repr__(self) -> str:
        if self.failure is not None:
            came = f"failed, {sum_up_failure(self.failure)}"
        else:
            came = ", ".join(f"{m.stmt} {_median(m)}" for m in self.measurements)
        return name_value(self, f"{self.index}: {self.describe()}: {came}")

    def _repr_html_(self) -> str:
        failure = None if self.failure is None else describe_failure(self.failure)
        measured = [(m.stmt, m._as_times()) for m in self.measurements]
        return render_panel(show_input(f"input {self.index}: {self.describe()}", measured, failure))

    def __str__(self) -> str:
        if self.failure is not None:
            return f"{self.describe()}\n{describe_failure(self.failure)}"
        return "\n".join([self.describe(), *(f"  {format_time(m.median)}  {m.stmt}" for m in self.measurements)])


def _median(measurement: Measurement) -> str:
    return format_time(measurement.median) if measurement.raw_times else "not timed"


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
    return race_on(outlines, RaceJob(chosen, setup, choose_place(python), threads, min_run_time), python, timeout_s)


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
    with contextlib.closing(Worker(spec)) as worker, contextlib.closing(Turns()) as turns:
        worker.pin(choose_cores()[-job.threads :])
        told = False
        for one in inputs:
            while not turns.claim():
                if not told:
                    tell_waiting()
                    told = True
                time.sleep(LOOKING_INTERVAL_S)
            try:
                result = _race(worker, one, job, timeout_s)
            finally:
                turns.leave()
            yield result


def _race(worker: Worker, one: FuzzedInput, job: RaceJob, timeout_s: float) -> FuzzedResult:
    times = race(worker, dataclasses.replace(job, making=one.code), timeout_s=timeout_s)
    return make_result(one, job, times, worker.environment)


def race_away(
    inputs: Iterable[FuzzedInput], job: RaceJob, python: str | None, timeout_s: float, backend: ClusterBackend
) -> Iterator[FuzzedResult]:
    """The same on a cluster, each input with a node for itself; results come as they are there.

    Where there is a single statement, inputs are compared with each other: all are timed on processors of one kind.
    """
    sampling = Sampling((Metric.WALL,), timeout_s=timeout_s)
    backend.open(Plan((), (Target(python=python),), sampling))
    races = [Race(one, dataclasses.replace(job, making=one.code), timeout_s) for one in inputs]
    with contextlib.closing(backend.race(races, Stop(), alike=len(job.stmts) == 1)) as answers:
        for asked, raced in answers:
            yield make_result(asked.input, job, raced.result, raced.environment)


def make_result(
    one: FuzzedInput, job: RaceJob, times: Sequence[Times] | Failure, environment: Environment | None
) -> FuzzedResult:
    """What came of an input."""
    if isinstance(times, Failure):
        return FuzzedResult(one, failure=times, environment=environment)
    setup = f"{one.code}\n{job.setup}"
    tasks = [TaskSpec(stmt, setup, description=word_input(one), num_threads=job.threads) for stmt in job.stmts]
    measurements = tuple(make_measurement(*pair) for pair in zip(times, tasks, strict=True))
    return FuzzedResult(one, measurements, environment=environment)
