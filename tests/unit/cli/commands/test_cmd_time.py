from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click
import pytest

from tests.in_process import Program
from torchmark import SetupError, TaskSpec, UsageError
from torchmark.analysis.summarise import StatementGroup, TimedStatement
from torchmark.api.statements import Outcomes, Stopwatch, TimeBudget, choose_budget, is_over
from torchmark.cli.main import main
from torchmark.cli.options import SECONDS, THREAD_COUNTS
from torchmark.model.job import PairedSide, Place, RaceJob, TimeJob
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.plan import Target
from torchmark.model.task import Compiled, Times
from torchmark.report.as_json import to_json_times
from torchmark.report.text.failures import describe_statements
from torchmark.report.text.measurement import describe_groups
from torchmark.runner.lab import Lab
from torchmark.runner.worker import Reply, Worker
from torchmark.worker.protocol import Raced

BUDGET = TimeBudget(0.2, 10.0, False, None)


class FakeLab:
    """Answers at once: times by statement, a failure for those that fail, another for those that fail together."""

    def __init__(self, costs: dict[str, float], failing: Sequence[str] = (), together: bool = True) -> None:
        self.costs, self.failing, self.together = costs, failing, together
        self.jobs: list[TimeJob | RaceJob] = []

    def run(self, job: TimeJob | RaceJob, *_: object, **__: object) -> Reply | Failure:
        """Stands for the timer."""
        self.jobs.append(job)
        if isinstance(job, TimeJob):
            if job.stmt in self.failing:
                return CRASH
            number = job.number or 10
            return Reply(Times(number, (self.costs[job.stmt] * number,) * (job.blocks or 7)), ())
        if set(job.stmts) & set(self.failing) or (len(job.stmts) > 1 and not self.together):
            return CRASH
        return Reply(Raced(tuple(Times(1, (self.costs[stmt],) * 8) for stmt in job.stmts)), ())

    def time(
        self, threads: Sequence[int] = (1,), budget: TimeBudget = BUDGET, compiled: Compiled | None = None
    ) -> Outcomes:
        lab = Lab(Target(), {}, statements=True)
        lab.timer = self  # type: ignore[assignment]
        specs = [TaskSpec(stmt, "s") for stmt in self.costs]
        ready = {
            dataclasses.replace(spec, num_threads=n): PairedSide(
                spec.stmt, spec.setup, Place("/"), threads=n, compiled=compiled
            )
            for spec in specs
            for n in threads
        }
        stopwatch = Stopwatch(Outcomes(), lab, ready, budget, 3.0)
        stopwatch.time_all(specs, threads)
        return stopwatch.outcomes


CRASH = Failure(FailureKind.CRASHED, "The process was ended by SIGSEGV.")


@pytest.mark.parametrize(
    ("min_run_time", "adaptive", "number", "expected"),
    [
        (None, False, None, (0.2, 10.0, None, None)),
        (3.0, False, None, (3.0, 30.0, None, None)),
        (None, True, None, (0.01, 10.0, 0.1, None)),
        (3.0, True, None, (3.0, 30.0, 0.1, None)),
        (None, False, 50, (0.2, 10.0, None, 50)),
    ],
)
def test_options_reach_the_jobs(
    min_run_time: float | None,
    adaptive: bool,
    number: int | None,
    expected: object,
) -> None:
    budget = choose_budget(min_run_time, adaptive, number)
    for costs in ({"a": 1.0}, {"a": 1.0, "b": 2.0}):
        fake = FakeLab(costs)
        fake.time(budget=budget)
        job = fake.jobs[-1]
        assert (job.min_run_time_s, job.max_run_time_s, job.threshold, job.number) == expected


def test_statements_are_raced_after_each_has_shown_that_it_runs() -> None:
    fake = FakeLab({"a": 1.0, "b": 2.0, "c": 3.0}, failing=["b"])
    outcomes = fake.time((1, 2))
    raced = [job.stmts for job in fake.jobs if isinstance(job, RaceJob)]
    # What failed with one thread is not tried with two.
    assert raced == [("a",), ("b",), ("c",), ("a", "c"), ("a",), ("c",), ("a", "c")]
    assert outcomes.failures == {"b": CRASH}
    assert [(r.spec.stmt, r.spec.num_threads) for r in outcomes.results] == [("a", 1), ("c", 1), ("a", 2), ("c", 2)]
    assert [group.rounds for group in outcomes.groups] == [[(1.0,) * 8, (3.0,) * 8]] * 2


def test_the_only_statement_that_runs_is_timed_as_one_alone_is() -> None:
    fake = FakeLab({"a": 1.0, "b": 2.0}, failing=["a"])
    outcomes = fake.time()
    assert isinstance(fake.jobs[-1], TimeJob)
    assert [result.spec.stmt for result in outcomes.results] == ["b"]


def test_statements_that_fail_only_together_take_turns_in_processes_of_their_own() -> None:
    fake = FakeLab({"a": 1e-6, "b": 2e-6}, together=False)
    outcomes = fake.time()
    (group,) = outcomes.groups
    assert not outcomes.failures
    assert group.obstacle == CRASH
    assert group.rounds is not None
    assert [len(series) for series in group.rounds] == [12, 12]
    turns = [job.stmt for job in fake.jobs if isinstance(job, TimeJob) and job.blocks is not None]
    assert all(set(turns[i : i + 2]) == {"a", "b"} for i in range(0, len(turns), 2))
    assert set(turns[::2]) == {"a", "b"}
    text = describe_groups(outcomes.groups, 80)
    assert "because together they fail: The process was ended" in " ".join(text.split())


def test_one_statement_is_compared_with_itself_by_threads() -> None:
    fake = FakeLab({"x @ x": 1e-6})
    outcomes = fake.time((1, 2))
    lines = describe_groups(outcomes.groups, 80).splitlines()
    assert lines[1].startswith("x @ x ")
    assert [line[:11] for line in lines[2:4]] == ["  1 thread ", "  2 threads"]
    assert "ab" not in lines[-1]


def test_cpp_takes_turns_in_processes_of_its_own() -> None:
    fake = FakeLab({"a": 1.0, "b": 2.0})
    outcomes = fake.time(compiled=Compiled("lib", "key"))
    assert not any(isinstance(job, RaceJob) for job in fake.jobs)
    assert outcomes.groups[0].rounds is not None


@pytest.mark.parametrize(
    ("rounds", "elapsed_s", "over"),
    [(11, 1.0, False), (12, 1.0, True), (6, 100.0, True), (5, 50.0, False), (1, 90.0, True)],
)
def test_visits_end_when_there_are_enough_or_time_is_up(rounds: int, elapsed_s: float, over: bool) -> None:
    assert is_over([[1.0] * rounds] * 2, BUDGET, elapsed_s) == over


@pytest.mark.parametrize(("min_run_time", "adaptive"), [(1.0, False), (None, True)])
def test_a_fixed_number_contradicts_a_chosen_one(min_run_time: float | None, adaptive: bool) -> None:
    with pytest.raises(UsageError, match="--number"):
        choose_budget(min_run_time, adaptive, 5)


@pytest.mark.parametrize(("text", "numbers"), [("1", (1,)), ("1,2,16", (1, 2, 16)), ("4, 2", (4, 2))])
def test_thread_lists(text: str, numbers: tuple[int, ...]) -> None:
    assert THREAD_COUNTS.convert(text, None, None) == numbers


@pytest.mark.parametrize("text", ["", "0", "1,-2", "two", "1,,2", "1.5", "99999999999"])
def test_what_is_no_thread_list_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="such as 1,2,4"):
        THREAD_COUNTS.convert(text, None, None)


@pytest.mark.parametrize(("text", "seconds"), [("0", 0.0), ("1.5", 1.5), ("1e-3", 0.001)])
def test_seconds(text: str, seconds: float) -> None:
    assert SECONDS.convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "soon", ""])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"such as 0\.5"):
        SECONDS.convert(text, None, None)


STEADY = [1e-6, 1.01e-6, 0.99e-6, 1e-6, 1.02e-6, 0.98e-6]


def group_of(*specs: TaskSpec, samples: Sequence[float] = STEADY, turns: bool = True) -> StatementGroup:
    results = [TimedStatement(spec, Times(1, tuple(samples))) for spec in specs]
    return StatementGroup(results, [result.times.per_run for result in results] if turns else None)


def test_one_result_is_shown_in_full_with_its_interval() -> None:
    out = describe_groups([group_of(TaskSpec("x", "pass"))], 80)
    assert out.startswith("x\n  Median: 1.00 us\n")
    assert "  The median lies between 0.980 us and 1.020 us (97% confidence)." in out.splitlines()
    assert "NOTE" not in out


def test_an_interval_is_rounded_alike_alone_and_in_a_table() -> None:
    close = [1.1902e-6, 1.1914e-6, 1.1957e-6, 1.1961e-6, 1.1988e-6, 1.2013e-6]
    alone = describe_groups([group_of(TaskSpec("x", "pass"), samples=close)], 80)
    assert "between 1.190 us and 1.201 us " in alone
    table = describe_groups([group_of(TaskSpec("x", "pass"), TaskSpec("y", "pass"), samples=close)], 80)
    assert table.count(" 1.190 to 1.201 us ") == 2


def test_several_results_are_a_table_with_their_setup_and_notes_that_say_whose_they_are() -> None:
    group = group_of(TaskSpec("x", "x = 1"), TaskSpec("y\nz", "x = 1"))
    group.results[1] = group.results[1]._replace(times=Times(1, tuple(STEADY[:2])))
    out = describe_groups([group], 80, used={"number"})
    assert out.startswith("setup: x = 1\n1 thread ")
    (note,) = [line for line in out.splitlines() if "NOTE" in line]
    assert note == "  NOTE: y ..., 1 thread: 2 samples; an interval of the median takes 6."


def test_advice_that_fits_several_notes_is_given_once() -> None:
    out = describe_groups([group_of(*(TaskSpec(name, "pass") for name in "xyz"), samples=STEADY[:2])], 80)
    assert out.count("NOTE: ") == 3
    assert out.count("Take more with a larger --min-run-time.") == 1


def show_rivals(*stmts: str, setup: str = "pass", threads: int = 1, **options: Any) -> str:
    group = group_of(*(TaskSpec(stmt, setup, num_threads=threads) for stmt in stmts))
    return describe_groups([group], 80, **options)


@pytest.mark.parametrize(
    ("stmts", "more", "command"),
    [
        (["x + y", "y"], {"setup": "x = 'a b'"}, ["x + y", "y", "--setup", "x = 'a b'"]),
        (["-x", "x"], {}, ["--", "-x", "x"]),
        (["x;", "y;"], {"language": "cpp", "threads": 2}, ["x;", "y;", "--language", "cpp", "--threads", "2"]),
    ],
)
def test_where_times_cannot_tell_the_command_that_can_is_named(
    stmts: list[str], more: dict[str, Any], command: list[str]
) -> None:
    *_, heading, line = show_rivals(*stmts, **more).splitlines()
    assert heading == "To find out:"
    assert shlex.split(line) == ["torchmark", "ab", *command]


def test_for_another_interpreter_there_is_no_such_command() -> None:
    out = show_rivals("x", "y", python="/usr/bin/python3")
    assert "cannot tell" in out
    assert "torchmark ab" not in out
    assert out.endswith("Measure for longer, with a larger --min-run-time.")


def test_what_an_interrupt_left_is_said_to_be_measured_one_after_the_other() -> None:
    text = describe_groups([group_of(TaskSpec("x", "pass"), TaskSpec("y", "pass"), turns=False)], 80)
    assert "Measured one after the other. These measurements cannot tell" in text


@pytest.mark.parametrize("stmt", ["", "pass", "# nothing"])
def test_the_cost_of_the_empty_loop_is_called_that(stmt: str) -> None:
    assert "this is the empty loop's own cost" in describe_groups([group_of(TaskSpec(stmt, "pass"))], 80)


def as_json(outcomes: Outcomes) -> dict[str, Any]:
    return to_json_times(outcomes.groups, outcomes.measurements, outcomes.failures, "python")


def test_json_has_raw_times_statistics_ratios_and_failures() -> None:
    group = group_of(TaskSpec("x", "pass"), TaskSpec("y", "pass"), samples=[2.0] * 6)
    assert group.rounds is not None
    group.rounds[1] = (4.0,) * 6
    data = as_json(Outcomes([group], {"z": CRASH}))
    assert [entry["summary"]["median_s"] for entry in data["measurements"]] == [2.0, 2.0]
    assert data["failures"] == [
        {"stmt": "z", "traceback": f"{CRASH.message}\n", "kind": "crashed", "message": CRASH.message}
    ]
    (comparison,) = data["comparisons"]
    assert comparison["in_turns"] is True
    assert comparison["fastest"] == {"stmt": "x", "num_threads": 1}
    assert comparison["ratios"][1] == {
        "stmt": "y",
        "num_threads": 1,
        "ratio": pytest.approx(2.0),
        "low": pytest.approx(2.0),
        "high": pytest.approx(2.0),
        "confidence": 0.96875,
    }


def test_json_of_one_result_has_its_caveats_and_compares_nothing() -> None:
    data = as_json(Outcomes([group_of(TaskSpec("x", "pass"), samples=[4.0])], {}))
    (entry,) = data["measurements"]
    assert entry["raw_times"] == [4.0]
    assert entry["caveats"] == [{"kind": "few_samples", "samples": 1, "wanted": 6}]
    assert data["comparisons"] == []


def test_a_missing_file_and_an_unknown_name_are_said_with_what_to_do(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["time", "no/such-step.py"]) == 2
    assert "There is no file 'no/such-step.py' here." in capsys.readouterr().err
    unknown = Failure(FailureKind.RAISED, "NameError: name 'y' is not defined")
    late = Failure(FailureKind.TIMED_OUT, "It did not end within 1 s.")
    failures = {"y": unknown, "y + 1": unknown, "while True: pass": late, "f()": CRASH}
    assert describe_statements(failures, with_names=True)[-2:] == [
        'Define the name with --setup, such as --setup "y = torch.ones(4)".',
        "Give it more time with --timeout SECONDS.",
    ]


def test_notes_fit_the_terminal() -> None:
    noisy = Times(1, tuple(1e-6 * (1 + i % 7) for i in range(40)))
    group = StatementGroup([TimedStatement(TaskSpec(stmt, "s"), noisy) for stmt in ("x" * 20, "y")])
    lines = describe_groups([group], 70).splitlines()
    assert len([line for line in lines if line.startswith("  NOTE: ")]) >= 2
    assert max(map(len, lines)) <= 70


@pytest.mark.parametrize("stmts", [("x +",), ("x +", "1 1")])
def test_code_that_does_not_compile_is_reported_without_starting_a_process(
    program: Program, monkeypatch: pytest.MonkeyPatch, stmts: tuple[str, ...]
) -> None:
    monkeypatch.setattr(Worker, "start", refuse)
    done = program("time", *stmts)
    assert done.returncode == 1
    assert done.stderr.count("SyntaxError: invalid syntax") == len(stmts)
    assert done.stdout == ""


def test_another_interpreter_may_know_more_syntax(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "start", refuse)
    with pytest.raises(Started):
        main(["time", "x +", "--python", "/another/python"])


class Started(BaseException):
    """A process was to be started."""


def refuse(*_: object, **__: object) -> NoReturn:
    raise Started


@pytest.mark.parametrize("command", ["time", "count"])
def test_a_compiler_that_is_missing_is_an_error_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    def build(*_: object, **__: object) -> NoReturn:
        raise SetupError("There is no C++ compiler.", missing="compiler", advice="Install one.")

    monkeypatch.setattr("torchmark.runner.worker.Worker", IdleWorker)
    monkeypatch.setattr("torchmark.api.statements.find_valgrind", lambda path: "valgrind")
    monkeypatch.setattr("torchmark.api.statements.build_snippets", build)
    assert main([command, "x + 1;", "x;", "--language", "cpp"]) == 3
    assert capsys.readouterr().err == "torchmark: There is no C++ compiler. Install one.\n"


class IdleWorker:
    """Stands for a process that has nothing to do."""

    sdk = None
    is_up = True

    def __init__(self, *_: object) -> None: ...

    def start(self) -> None: ...

    abandon = start_ahead = start
