"""Measures statements in a worker: tries them first, compiles C++, times one or several in turns, and counts."""

from __future__ import annotations

import dataclasses
import functools
import os
import random
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from torchmark.analysis.summarise import SUSPECT_IQR, StatementGroup, TimedStatement, is_suspect, summarise
from torchmark.api.callgrind_stats import CallgrindStats, make_stats
from torchmark.api.measurement import make_measurement
from torchmark.callgrind.command import find_valgrind
from torchmark.define.selection import LANGUAGES
from torchmark.errors import SetupError, UsageError
from torchmark.measure.snippet import warned_already
from torchmark.measure.source import STMT_NAME
from torchmark.measure.steps import BLOCKS_OF_FIXED_SIZE
from torchmark.model.environment import Sdk
from torchmark.model.inputs import Feature, RuleSearch
from torchmark.model.job import PairedSide, RaceJob
from torchmark.model.outcome import Failure
from torchmark.model.plan import AutogradMode, AutoLabels, Case, RuntimeMode, Target, TimerArgs
from torchmark.model.task import Compiled, Language, Snippet, TaskSpec, Times
from torchmark.report.text.terminal import COMPILING, one_line, show_waiting
from torchmark.runner.lab import Lab
from torchmark.runner.prepare import Models, build_snippets, find_syntax_faults, make_parts, try_sides
from torchmark.runner.spec import choose_layouts
from torchmark.runner.worker import Worker, explain_torch, race, retry_if_killed


def load_inputs() -> ModuleType:
    """What makes fuzzers by their names, and times statements on their inputs."""
    try:
        from torchmark.api import inputs
    except (ImportError, OSError) as error:
        # A shared library of torch's that cannot be loaded is an OSError.
        missing = isinstance(error, ModuleNotFoundError) and error.name == "torch"
        advice = "Install it there, or run torchmark in the environment that has it."
        raise explain_torch(sys.executable, None if missing else str(error), advice) from error
    return inputs


def look_for_rules(
    features: Sequence[Feature], effects: Sequence[float], noise: Sequence[float], neutral: float | None
) -> RuleSearch:
    """Look for rules. This loads scipy, which takes a second: for when all is measured."""
    from torchmark.analysis.rules import find_rules

    return find_rules(features, effects, noise, neutral=neutral)


DEFAULT_RUN_TIME_S = 0.2
DEFAULT_ADAPTIVE_RUN_TIME_S = 0.01
# The setup runs before every block and may take far longer than what is timed: stop after this many times the
# run time asked for, and at ten seconds at the earliest.
LIMIT_FACTOR = 10
SHORTEST_LIMIT_S = 10.0
STARTING_PLAIN = "Starting a Python with torch"
STARTING = f"{STARTING_PLAIN} under Valgrind (once; takes half a minute or so)"
# Before statements share a process, each runs for so long in one of its own, to find those that would end it.
TRIAL_S = 0.02
# Processes of each statement that take turns. An interval of the ratio of two statements takes 6 of them at 95 %; with
# 12, the intervals of ten statements hold together.
VISITS = 12
FEWEST_VISITS = 6
# Those are made even if there is no time left for them, unless they alone take this many times the time there is.
TOO_SLOW = 3.0
# The order of turns is the same whenever a command is repeated.
ORDER_SEED = 0


class TimeBudget(NamedTuple):
    """How much to measure: for how long, until it is steady or not, or how many runs a block."""

    run_time_s: float
    limit_s: float
    adaptive: bool
    number: int | None

    @property
    def threshold(self) -> float | None:
        """The share of the median below which the interquartile range is steady, if that is to be waited for."""
        return SUSPECT_IQR if self.adaptive else None


def choose_budget(min_run_time: float | None, adaptive: bool, number: int | None) -> TimeBudget:
    """How much to measure, given the options; options that contradict each other are refused."""
    if number is not None and (adaptive or min_run_time is not None):
        raise UsageError("--number fixes the work to do: leave out --adaptive and --min-run-time with it.")
    default = DEFAULT_ADAPTIVE_RUN_TIME_S if adaptive else DEFAULT_RUN_TIME_S
    run_time = default if min_run_time is None else min_run_time
    return TimeBudget(run_time, max(run_time * LIMIT_FACTOR, SHORTEST_LIMIT_S), adaptive, number)


@dataclasses.dataclass
class Outcomes:
    """What came out so far: the results, group by group, and why statements failed."""

    groups: list[StatementGroup] = dataclasses.field(default_factory=list)
    failures: dict[str, Failure] = dataclasses.field(default_factory=dict)

    @property
    def results(self) -> list[TimedStatement]:
        return [result for group in self.groups for result in group.results]

    @property
    def measurements(self) -> list[dict[str, Any]]:
        return [make_measurement(result.times, result.spec).to_dict() for result in self.results]


class Visitor:
    """A task that is timed in a new process every time: what the first one took, and the visits so far."""

    def __init__(self, spec: TaskSpec, first: Times, visit_s: float) -> None:
        self.spec, self.first = spec, first
        self.number = first.number_per_run
        # As many as the first visit takes to run for so long.
        self.blocks = max(1, min(round(visit_s / min(first.raw_times)), len(first.raw_times)))
        self.visits: list[Times] = []

    @property
    def medians(self) -> tuple[float, ...]:
        return tuple(summarise(visit.per_run).median for visit in self.visits)

    def measure(self) -> TimedStatement:
        """All visits as one result; the first one, which is not in turns, only while there is no other."""
        visits = self.visits or [self.first]
        raw_times = tuple(t for visit in visits for t in visit.raw_times)
        return TimedStatement(self.spec, dataclasses.replace(self.first, raw_times=raw_times))


def is_over(rounds: Sequence[Sequence[float]], budget: TimeBudget, elapsed_s: float) -> bool:
    """Whether visits have been enough, with the medians of each task, or have taken all the time there is."""
    done = len(rounds[0])
    limit_s = budget.limit_s * len(rounds)
    late = elapsed_s * (done + 1) / done > limit_s
    if done < FEWEST_VISITS:
        return late and elapsed_s / done * FEWEST_VISITS > TOO_SLOW * limit_s
    if budget.number is not None:
        return done >= BLOCKS_OF_FIXED_SIZE
    steady = not budget.adaptive or not any(is_suspect(summarise(series)) for series in rounds)
    return late or (done >= VISITS and steady)


Ready = Mapping[TaskSpec, "PairedSide | Failure"]
"""Statements as workers run them, or why they cannot be run."""


class Stopwatch:
    """Times tasks in the workers of a lab, and puts what comes out into `outcomes` at once."""

    def __init__(self, outcomes: Outcomes, lab: Lab, ready: Ready, budget: TimeBudget, timeout_s: float) -> None:
        self.outcomes = outcomes
        self._lab, self._ready, self._budget, self._timeout_s = lab, ready, budget, timeout_s

    def time_all(self, stmts: Sequence[TaskSpec], threads: Sequence[int]) -> None:
        """Time each statement with each number of threads.

        Statements are compared with each other for each number of threads; a single one with itself.
        """
        tasks = [[dataclasses.replace(spec, num_threads=n) for spec in stmts] for n in threads]
        if len(stmts) == 1:
            tasks = [[spec for (spec,) in tasks]]
        for group in tasks:
            left = [spec for spec in group if spec.stmt not in self.outcomes.failures]
            self.outcomes.groups.append(StatementGroup())
            if len(left) == 1:
                self._time_alone(left[0])
            # What is compiled cannot share a process.
            elif len(stmts) > 1 and all(
                isinstance(side, PairedSide) and side.compiled is None for side in map(self._ready.get, left)
            ):
                self._race(left)
            else:
                self._take_visits(left)

    def _time_alone(self, spec: TaskSpec) -> None:
        if times := self._time(spec, self._budget):
            self.outcomes.groups[-1].results.append(TimedStatement(spec, times))

    def _race(self, specs: Sequence[TaskSpec]) -> None:
        """In one process, which one setup prepares for all, after each has shown that it does not end its process."""
        group, survivors = self.outcomes.groups[-1], []
        for spec in specs:
            trial = self._have_raced([spec], min(TRIAL_S, self._budget.run_time_s))
            if isinstance(trial, Failure):
                self.outcomes.failures[spec.stmt] = trial
            else:
                survivors.append(spec)
                group.results.append(TimedStatement(spec, trial[0]))
        if len(survivors) == 1:
            group.results.clear()
            self._time_alone(survivors[0])
        if len(survivors) < 2:
            return
        raced = self._have_raced(survivors, self._budget.run_time_s)
        if isinstance(raced, Failure):
            group.obstacle = raced
            self._take_visits(survivors)
            return
        group.results = [TimedStatement(*pair) for pair in zip(survivors, raced, strict=True)]
        group.rounds = [times.per_run for times in raced]

    def _have_raced(self, specs: Sequence[TaskSpec], run_time_s: float) -> tuple[Times, ...] | Failure:
        side = self._ready[specs[0]]
        assert isinstance(side, PairedSide)
        job = RaceJob(
            stmts=tuple(spec.stmt for spec in specs),
            setup=side.setup,
            place=side.place,
            threads=side.threads,
            min_run_time_s=run_time_s,
            max_run_time_s=self._budget.limit_s,
            threshold=self._budget.threshold,
            number=self._budget.number,
        )
        return retry_if_killed(lambda: race(self._lab.timer, job, timeout_s=self._timeout_s))

    def _take_visits(self, specs: Sequence[TaskSpec]) -> None:
        """In turns, each in a new process every time: for those that cannot share one."""
        group = self.outcomes.groups[-1]
        group.results.clear()
        short = self._budget._replace(run_time_s=self._budget.run_time_s / VISITS, adaptive=False)
        timed = [(spec, self._time(spec, short)) for spec in specs]
        visitors = [Visitor(spec, times, short.run_time_s) for spec, times in timed if times]
        group.results = [visitor.measure() for visitor in visitors]
        chance, start, rounds, over = random.Random(ORDER_SEED), time.perf_counter(), 0, False
        while len(visitors) > 1 and not over:
            for visitor in chance.sample(visitors, len(visitors)):
                if times := self._time(visitor.spec, short._replace(number=visitor.number), visitor.blocks):
                    visitor.visits.append(times)
            rounds += 1
            visitors = [visitor for visitor in visitors if visitor.spec.stmt not in self.outcomes.failures]
            group.results = [visitor.measure() for visitor in visitors]
            group.rounds = [visitor.medians for visitor in visitors]
            over = is_over(group.rounds, self._budget, time.perf_counter() - start)

    def _time(self, spec: TaskSpec, budget: TimeBudget, blocks: int | None = None) -> Times | None:
        """None where it failed, which `outcomes` have then."""
        side = self._ready[spec]
        found: Times | Failure
        if isinstance(side, Failure):
            found = side
        else:
            found = retry_if_killed(
                lambda: self._lab.time_side(
                    side,
                    self._timeout_s,
                    run_time_s=budget.run_time_s,
                    limit_s=budget.limit_s,
                    threshold=budget.threshold,
                    number=budget.number,
                    blocks=blocks,
                )
            )
        if isinstance(found, Times):
            return found
        self.outcomes.failures[spec.stmt] = found
        return None


def time_statements(
    outcomes: Outcomes,
    specs: Sequence[TaskSpec],
    threads: Sequence[int],
    budget: TimeBudget,
    *,
    python: str | None,
    language: str,
    timeout_s: float,
) -> None:
    """Time statements, which have one setup. `outcomes` has what came out, also after an interrupt."""
    tasks = [dataclasses.replace(spec, num_threads=n) for n in threads for spec in specs]
    cases = {task: make_task_case(task, LANGUAGES[language]) for task in tasks}
    lab = _open_lab(python)
    try:
        faults = _find_syntax_faults(cases.values(), lab.target)
        ready = _get_ready({task: case for task, case in cases.items() if case not in faults}, lab)
        outcomes.failures |= {case.args.stmt: fault for case, fault in faults.items()}
        Stopwatch(outcomes, lab, ready, budget, timeout_s).time_all(specs, threads)
    finally:
        lab.abandon()


@dataclasses.dataclass
class CountOutcomes:
    """What came out so far: the counts, and why tasks failed."""

    results: list[CallgrindStats] = dataclasses.field(default_factory=list)
    failures: list[tuple[TaskSpec, Failure]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class CountOptions:
    """How to count, as it was asked for."""

    language: str
    number: int
    layouts: int
    python: str | None
    given: tuple[tuple[str, str], ...]
    caches: bool
    timeout: float


def count_statements(outcomes: CountOutcomes, tasks: Sequence[TaskSpec], asked: CountOptions) -> None:
    """Count the instructions of each task. `outcomes` has what came out, also after an interrupt."""
    cases = {task: make_task_case(task, LANGUAGES[asked.language]) for task in tasks}
    seeds = choose_layouts(asked.layouts)
    lab = _open_lab(asked.python, dict(asked.given), simulate=asked.caches)
    counter = lab.make_counter()
    try:
        sides = _try_first(cases, lab, counter)
        outcomes.failures += [(task, found) for task, found in sides.items() if isinstance(found, Failure)]
        if len(outcomes.failures) < len(tasks):
            start_counting(counter)
        for task, side in sides.items():
            if isinstance(side, Failure):
                continue
            attempt = functools.partial(lab.count_side, side, counter, seeds, asked.timeout, number=asked.number)
            found = retry_if_killed(attempt)
            if isinstance(found, Failure):
                outcomes.failures.append((task, found))
                continue
            compiled = side.compiled is not None
            outcomes.results.append(make_stats(task, found, counter.environment, compiled=compiled))
    finally:
        # After an interrupt a worker may still be starting.
        lab.abandon()


def _try_first(cases: Mapping[TaskSpec, Case], lab: Lab, counter: Worker) -> dict[TaskSpec, PairedSide | Failure]:
    """Compile and run each task once without Valgrind, so that code that fails at once is reported at once."""
    found: dict[Case, PairedSide | Failure] = dict(_find_syntax_faults(cases.values(), lab.target))
    left = {task: case for task, case in cases.items() if case not in found}
    if left:
        find_valgrind(os.environ.get("PATH", os.defpath))
        if any(case.args.language == Language.CPP for case in left.values()):
            # Compiling takes long: meanwhile the worker that counts can start.
            counter.start_ahead()
        ready = _get_ready(left, lab)
        found |= try_sides({case: ready[task] for task, case in left.items()}, lab)
        lab.timer.close()
    return {task: found[case] for task, case in cases.items()}


def _find_syntax_faults(cases: Collection[Case], target: Target) -> dict[Case, Failure]:
    """The statements that do not compile in this interpreter. (Another one may know more syntax.)"""
    if target.python is not None or any(case.args.language == Language.CPP for case in cases):
        return {}
    wrong = [
        case for case in cases if not (_compiles(case.args.setup, "<setup>") and _compiles(case.args.stmt, STMT_NAME))
    ]
    if not wrong:
        return {}
    with warned_already():
        return find_syntax_faults(wrong, target)


def _compiles(text: str, name: str) -> bool:
    try:
        compile(text, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return False
    return True


def _open_lab(python: str | None, variables: Mapping[str, str] | None = None, *, simulate: bool = False) -> Lab:
    lab = Lab(Target(python=python), os.environ, variables=variables, simulate=simulate, statements=True)
    if python is None:
        # As `python -m` does, so that a setup can import what lies here; not torch, which does not lie here.
        sys.path.insert(0, os.getcwd())
    return lab


def _get_ready(cases: Mapping[TaskSpec, Case], lab: Lab) -> dict[TaskSpec, PairedSide | Failure]:
    """Start the worker that tasks are timed in, and compile those that are C++."""
    if not cases:
        return {}
    with show_waiting(STARTING_PLAIN):
        lab.start()
    if all(case.args.language == Language.PYTHON for case in cases.values()):
        return {task: lab.make_side(case) for task, case in cases.items()}
    missing: list[SetupError] = []

    def build(snippets: Sequence[Snippet], sdk: Sdk, jobs: int) -> Mapping[Snippet, Compiled | Failure]:
        try:
            return build_snippets(snippets, sdk, os.environ, jobs=jobs)
        except SetupError as error:
            missing.append(error)
            raise

    with show_waiting(COMPILING), Models(os.environ) as models:
        sides = make_parts(list(cases.values()), lab, models, build=build)
    if missing:
        # No statement is at fault, and none can be measured.
        raise missing[0]
    return {task: sides[case] for task, case in cases.items()}


def start_counting(worker: Worker) -> None:
    """Start a worker under Valgrind, and show meanwhile what is waited for."""
    if not worker.is_up:
        with show_waiting(STARTING):
            worker.start()


def make_case(args: TimerArgs) -> Case:
    """A statement as a case of its own."""
    labels = AutoLabels(RuntimeMode.EXPLICIT, AutogradMode.EXPLICIT, args.language)
    return Case((one_line(args.stmt),), labels, args)


def make_task_case(task: TaskSpec, language: Language) -> Case:
    """The same of a task, whose labels are left out."""
    return make_case(
        TimerArgs(
            stmt=task.stmt,
            setup=task.setup,
            global_setup=task.global_setup,
            num_threads=task.num_threads,
            language=language,
        )
    )
