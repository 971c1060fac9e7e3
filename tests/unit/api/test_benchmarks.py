from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fake_backend import FakeBackend
from tests.in_process import Program
from torchmark import DefinitionError, GroupedStmts, UsageError, run_benchmarks
from torchmark.api.benchmarks import BenchmarkResult, choose_cases, make_result
from torchmark.define.expand import expand
from torchmark.errors import StoreError
from torchmark.model.outcome import Event, Failure, FailureKind, Outcome, Result
from torchmark.model.plan import Case, Metric, Order, Plan, Target
from torchmark.model.run import Run
from torchmark.model.task import Times
from torchmark.processes import StopRequest
from torchmark.store.runs import open_store

ADD = GroupedStmts("x + 1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"min_run_time": -1}, "`min_run_time` is a number of seconds, not -1"),
        ({"min_run_time": float("nan")}, "`min_run_time` is a number of seconds, not nan"),
        ({"min_run_time": "x"}, "`min_run_time` is a number of seconds, not 'x'"),
        ({"timeout_s": float("inf")}, "`timeout_s` is a number of seconds, not inf"),
        ({"select": None}, "`select` is a text"),
        ({"select": "subtract"}, "None of 1 cases is selected by 'subtract'"),
        ({"select": "and"}, "and"),
        ({"time": False}, "nothing to do"),
        ({"check": "no"}, "`check` is True or False, not 'no'"),
        ({"layouts": 0}, "`layouts` must be at least 1"),
        ({"benchmarks": {}}, "There are no cases"),
        ({"benchmarks": 5}, "names of suites and files, not <class 'int'>"),
        ({"benchmarks": ADD}, "names of suites and files, not <class"),
        ({"benchmarks": b"standard"}, "names of suites and files, not <class 'bytes'>"),
        ({"benchmarks": [5]}, "a name or a path, not 5"),
        ({"benchmarks": "standrad"}, "Did you mean standard"),
        ({"resume": True}, "need `store`, the file that keeps the run"),
        ({"name": "mine"}, "need `store`, the file that keeps the run"),
        ({"resume": "yes"}, "`resume` is True or False, not 'yes'"),
        ({"cores": "none"}, "none"),
        ({"name": "@1", "store": "results.db"}, "'@1' cannot be the name of a run"),
    ],
)
def test_what_cannot_be_run_is_told_before_anything_is_started(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run_benchmarks(**{"benchmarks": {"add": ADD}, **arguments})


SUITE = """
from torchmark import GroupedStmts, GroupedSetup
def group(**options):
    return GroupedStmts("y = x", setup=GroupedSetup("x = 1"), signature="f(x) -> y", compile="eager", **options)
BENCHMARKS = {"silent": group(), "checked": group(check=True), "unchecked": group(check=False)}
"""


@pytest.mark.parametrize(
    ("text", "check", "checked"),
    [
        ("", None, {"checked"}),
        ("", True, {"silent", "checked"}),
        ("", False, set()),
        ("CHECK = True", None, {"silent", "checked"}),
        ("CHECK = True", False, set()),
    ],
)
def test_whether_results_are_compared_is_said_by_the_group_the_call_or_the_suite(
    tmp_path: Path, text: str, check: bool | None, checked: set[str]
) -> None:
    path = tmp_path / "bench_mine.py"
    path.write_text(f"{SUITE}\n{text}")
    cases = choose_cases(path, "", check)
    assert {case.label[0] for case in cases if case.check is not None} == checked


def test_all_faults_of_a_suite_are_told_together(tmp_path: Path) -> None:
    (tmp_path / "bench_bad.py").write_text(
        "from torchmark import GroupedStmts\n"
        'BENCHMARKS = {"a": GroupedStmts("x +"), "b": GroupedStmts("x", signature="f("), "c": GroupedStmts("x")}'
    )
    with pytest.raises(DefinitionError) as caught:
        run_benchmarks([str(tmp_path)])
    assert "bench_bad.py:2: a" in str(caught.value)
    assert "bench_bad.py:2: b" in str(caught.value)


def case() -> Case:
    return expand({("add",): ADD})[0]


def test_a_result_says_what_failed_and_why() -> None:
    failure = Failure(FailureKind.RAISED, "There is no TorchScript of this model: no", "Traceback\nValueError: no\n")
    text = str(BenchmarkResult(case(), failures=(failure,)))
    assert text.splitlines() == [
        "add: Eager, Forward, Python",
        "  There is no TorchScript of this model: no",
        "  Traceback",
        "  ValueError: no",
    ]


def test_a_result_says_that_it_was_not_compared() -> None:
    text = str(BenchmarkResult(case(), unchecked="It does not compile."))
    assert text.endswith("NOTE: It was not compared with the other variants. It does not compile.")


FINE = Times(10, (1e-6,) * 9)
KILLED = Failure(FailureKind.CRASHED, "The process was ended by SIGKILL.")
ABC = {label: GroupedStmts(f"{label} = 1") for label in "abc"}
SUITE_OF = """
from torchmark import GroupedStmts
BENCHMARKS = {{label: GroupedStmts(stmt) for label, stmt in {cases!r}.items()}}
"""


class Machine:
    """Measures nothing, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.results: dict[str, Result] = {}
        self.arrange: Callable[[Sequence[Order]], Sequence[Order]] = lambda orders: orders
        self.closed = 0

    def measure(self, order: Order) -> Result:
        label = order.case.label[0]
        self.asked.append(label)
        return self.results.get(label, FINE)

    def make_backend(self, cores: Sequence[int], *, for_program: bool) -> FakeBackend:
        assert for_program
        machine = self

        class Backend(FakeBackend):
            def execute(self, plan: Plan, orders: Sequence[Order], stop: StopRequest) -> Generator[Event, None, None]:
                yield from super().execute(plan, machine.arrange(orders), stop)

            def close(self) -> None:
                machine.closed += 1
                super().close()

        return Backend(self.measure)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    monkeypatch.chdir(tmp_path)
    machine = Machine()
    monkeypatch.setattr("torchmark.api.benchmarks.LocalBackend", machine.make_backend)
    return machine


def labels(results: Sequence[BenchmarkResult]) -> list[str]:
    return [result.case.label[0] for result in results]


def load(store: str = "results.db") -> Run:
    with open_store(Path(store), read_only=True) as opened:
        (info,) = opened.list_runs()
        return opened.load(info.id)


def test_results_come_in_the_order_of_the_cases_whatever_is_measured_first(machine: Machine) -> None:
    machine.arrange = lambda orders: orders[::-1]
    assert labels(list(run_benchmarks(ABC))) == ["a", "b", "c"]
    assert machine.asked == ["c", "b", "a"]
    assert not any(Path().iterdir())


def test_each_result_is_handed_on_before_the_next_case_is_measured(machine: Machine) -> None:
    seen = [list(machine.asked) for _ in run_benchmarks(ABC)]
    assert seen == [["a"], ["a", "b"], ["a", "b", "c"]]


def test_a_run_is_kept_and_shown_by_the_command(machine: Machine, program: Program) -> None:
    machine.results["b"] = KILLED
    results = list(run_benchmarks(ABC, store="results.db", name="mine"))
    assert [bool(result.failures) for result in results] == [False, True, False]
    run = load()
    assert (run.info.name, run.info.finished is not None) == ("mine", True)
    assert [one.order.case for one in run.outcomes] == [result.case for result in results]
    shown = program("show", "mine", "--store", "results.db")
    assert shown.returncode == 0
    assert "SIGKILL" in shown.stdout
    assert program("report", "mine", "--store", "results.db", "-o", "page.html").returncode == 0


def test_who_has_enough_ends_the_run_and_keeps_what_was_measured(machine: Machine) -> None:
    results = run_benchmarks(ABC, store="results.db")
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert (machine.asked, machine.closed) == (["a"], 1)
    assert labels(list(run_benchmarks(ABC, store="results.db", resume=True))) == ["a", "b", "c"]
    assert machine.asked == ["a", "b", "c"]
    assert load().info.finished is not None
    again = list(run_benchmarks(ABC, store="results.db", resume=True, timeout_s=5.0))
    assert all(result.measurement is not None and list(result.measurement.raw_times) for result in again)
    assert machine.asked == ["a", "b", "c"]


def test_what_was_killed_is_measured_again(machine: Machine) -> None:
    machine.results["b"] = KILLED
    list(run_benchmarks(ABC, store="results.db"))
    machine.results.clear()
    results = list(run_benchmarks(ABC, store="results.db", resume=True))
    assert machine.asked == ["a", "b", "c", "b"]
    assert not any(result.failures for result in results)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"benchmarks": {"a": ADD}}, "has other cases"),
        ({"select": "a"}, "has another selection"),
        ({"count": True}, "has another `time` or `count`"),
        ({"min_run_time": 1.0}, r"has another `min_run_time`.*or begin a new one without `resume`"),
        ({"layouts": 1}, r"has another `layouts`.*give the same arguments, say with `name` which run you mean"),
        ({"python": "/bin/other"}, "has other interpreters"),
        ({"check": False}, r"was begun by torchmark.run_benchmarks \(dictionary\)"),
        ({"benchmarks": "standard"}, "has benchmarks"),
        ({"name": "other"}, "There is no run 'other'"),
    ],
)
def test_a_run_does_not_go_on_as_another(machine: Machine, arguments: dict[str, Any], message: str) -> None:
    list(run_benchmarks(ABC, store="results.db"))
    with pytest.raises(UsageError, match=message):
        run_benchmarks(**{"benchmarks": ABC, "store": "results.db", "resume": True, **arguments})


def test_what_is_wrong_with_the_store_is_told_in_the_words_of_the_function(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no store at all")
    with pytest.raises(StoreError, match="choose another with `store`"):
        run_benchmarks(ABC, store=tmp_path / "text")
    with pytest.raises(StoreError, match="Name one with `store`, or make one with torchmark run"):
        run_benchmarks(ABC, store=tmp_path / "absent", resume=True)


def test_there_has_to_be_a_run_to_go_on_with(machine: Machine) -> None:
    list(run_benchmarks(ABC, store="results.db"))
    with open_store(Path("results.db")) as store:
        store.remove([store.list_runs()[0].id])
    with pytest.raises(UsageError, match="There is no run to go on with"):
        run_benchmarks(ABC, store="results.db", resume=True)


def test_the_command_does_not_go_on_with_a_dictionary_and_takes_nothing_away(
    machine: Machine, program: Program
) -> None:
    list(run_benchmarks(ABC, store="results.db"))
    before = load()
    refused = program("run", "--resume", "--store", "results.db")
    assert refused.returncode == 2
    assert "was begun by torchmark.run_benchmarks (dictionary)" in refused.stderr
    assert load() == before


def test_a_file_may_change_and_the_command_goes_on_with_it(
    machine: Machine, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path("bench_mine.py")
    path.write_text(SUITE_OF.format(cases={"a": "1", "b": "2"}))
    list(run_benchmarks(path, store="results.db"))
    path.write_text(SUITE_OF.format(cases={"a": "1", "b": "3", "c": "4"}))
    assert labels(list(run_benchmarks(path, store="results.db", resume=True))) == ["a", "b", "c"]
    assert machine.asked == ["a", "b", "b", "c"]
    path.write_text(SUITE_OF.format(cases={"a": "1", "b": "3", "c": "5"}))
    monkeypatch.setattr("torchmark.runner.local.LocalBackend", lambda cores: FakeBackend(machine.measure))
    assert program("run", "--resume", "--store", "results.db").returncode == 0
    assert machine.asked == ["a", "b", "b", "c", "c"]


def test_what_could_not_be_prepared_is_told_once() -> None:
    def fail(metric: Metric, began: float) -> Outcome:
        return Outcome(Order(case(), Target(), metric), KILLED, began, 2.0)

    assert make_result(case(), [fail(Metric.WALL, 1.0), fail(Metric.COUNT, 1.0)]).failures == (KILLED,)
    assert make_result(case(), [fail(Metric.WALL, 1.0), fail(Metric.COUNT, 1.5)]).failures == (KILLED, KILLED)
