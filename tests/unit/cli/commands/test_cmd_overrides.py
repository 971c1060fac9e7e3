"""What the command makes of results, wherever they come from: nothing is measured here."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fake_backend import FakeBackend
from tests.in_process import Program
from tests.made_overrides import make_tally
from torchmark.model.outcome import Failure, FailureKind, Result
from torchmark.model.plan import Case, Metric, Order, Target
from torchmark.model.run import Run
from torchmark.model.task import Times
from torchmark.store.runs import open_store

RAISED = Failure(FailureKind.RAISED, "AttributeError: 'Mine' object has no attribute 'add'")


class Machine:
    """Measures nothing: plain Tensors take a microsecond and 1000 instructions, all else twice as much."""

    def __init__(self) -> None:
        self.asked: list[Order] = []
        self.broken: set[tuple[str, ...]] = set()
        self.on_order: Callable[[], object] = lambda: None

    def measure(self, order: Order) -> Result:
        self.asked.append(order)
        self.on_order()
        if order.case.label in self.broken:
            return RAISED
        factor = 1 if "plain" in order.case.tags else 2
        if order.metric is Metric.COUNT:
            return make_tally(900 * factor, 37, 63)
        return Times(500, tuple(factor * 500 * us * 1e-6 for us in (1.0, 1.1, 1.2, 1.1, 1.0, 1.3)))

    def make_backend(self, cores: Sequence[int]) -> FakeBackend:
        return FakeBackend(self.measure)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    monkeypatch.chdir(tmp_path)
    machine = Machine()
    monkeypatch.setattr("torchmark.api.override_comparison.LocalBackend", machine.make_backend)
    monkeypatch.setattr("torchmark.api.override_comparison.find_faults", lambda cases, target: {})
    return machine


def load(path: str = ".torchmark/results.db") -> Run:
    with open_store(Path(path), read_only=True) as store:
        return store.load(store.list_runs()[0].id)


def run_json(program: Program, *arguments: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(program("overrides", "--json", "-", *arguments).stdout)
    return data


def test_all_is_measured_in_blocks_of_the_size_that_is_asked_for_and_kept(machine: Machine, program: Program) -> None:
    done = program("overrides", "--nreps", "500", "--nrepreps", "6")
    assert done.returncode == 0, done.stderr
    assert len(machine.asked) == 2 * 79
    run = load()
    assert run.info.name == "overrides"
    assert (run.plan.sampling.number, run.plan.sampling.blocks) == (500, 6)
    assert run.info.finished is not None
    assert "All of 79 cases measured." in done.stdout
    assert "Type tensor had a minimum time of 1 us and a standard deviation of" in done.stdout


@pytest.mark.parametrize("size", [("-n", "0"), ("-m", "0"), ("-n", "x"), ("--nrepreps", "-1")])
def test_sizes_are_whole_numbers_from_one_on(machine: Machine, program: Program, size: tuple[str, str]) -> None:
    assert program("overrides", *size).returncode == 2
    assert not Path(".torchmark").exists()


def test_what_is_selected_is_measured_with_the_plain_tensors_it_is_held_against(
    machine: Machine, program: Program
) -> None:
    data = run_json(program, "-k", "neg and SubTensor or 'deep add' and '16'")
    assert [case["label"] for case in data["cases"]] == [
        ["add", "Tensor"],
        ["neg", "Tensor"],
        ["neg", "SubTensor"],
        ["deep add", "empty, depth 16"],
        ["deep add", "overriding, depth 16"],
    ]
    overheads = [case["overhead"] for case in data["cases"]]
    assert [overhead and overhead["instructions"] for overhead in overheads] == [None, None, 900, 900, 900]


def test_nothing_that_fits_is_told_and_makes_no_store(machine: Machine, program: Program) -> None:
    done = program("overrides", "-k", "nothing_like_it")
    assert done.returncode == 1
    assert "No case has 'nothing_like_it'" in done.stderr
    assert not Path(".torchmark").exists()


def test_types_of_the_users_are_measured_beside_the_others_in_every_call(machine: Machine, program: Program) -> None:
    data = run_json(program, "--type", "here:Mine", "--type", "here:Mine", "--type", "a.b:C.D", "-k", "Mine or D")
    mine = [case for case in data["cases"] if case["operands"] == "here:Mine"]
    assert [case["call"] for case in mine] == [
        *("add", "neg", "sum", "cat", "out", "method", "operator", "in-place", "index", "shape", "data"),
    ]
    assert all(case["overhead"]["against"] == [case["call"], "Tensor"] for case in mine)
    assert sum("here:Mine" in case["operands"] for case in data["cases"]) == 13
    setup = next(order.case.args.setup for order in machine.asked if order.case.label == ("add", "a.b:C.D"))
    assert "from a.b import C\nx = C.D([1.0])" in setup
    assert dict(load().info.options)["types"] == ("here:Mine", "here:Mine", "a.b:C.D")


def test_what_is_no_type_is_refused(machine: Machine, program: Program) -> None:
    done = program("overrides", "--type", "Mine")
    assert done.returncode == 2
    assert "--type mymodule:MyTensor" in done.stderr
    assert machine.asked == []


@pytest.mark.parametrize("how", [(), ("--base", "/base/python"), ("--head", "/head/python")])
def test_a_type_that_makes_no_operand_is_reported_before_anything_is_measured(
    machine: Machine, program: Program, monkeypatch: pytest.MonkeyPatch, how: tuple[str, ...]
) -> None:
    tried: list[tuple[str | None, list[tuple[str, str]]]] = []

    def find(cases: Sequence[Case], target: Target) -> dict[Case, Failure]:
        tried.append((target.python, [(case.args.stmt, case.args.setup.splitlines()[-1]) for case in cases]))
        raised = Failure(FailureKind.RAISED, "ModuleNotFoundError: No module named 'nowhere'")
        return {} if target.python == "/base/python" else {cases[1]: raised}

    monkeypatch.setattr("torchmark.api.override_comparison.find_faults", find)
    done = program("overrides", *how, "--type", "here:Mine", "--type", "nowhere:Mine")
    assert done.returncode == 2
    where = {(): "", "--base": f" in {sys.executable}", "--head": f" in {sys.executable}"}[how[:1] and how[0]]
    assert (
        f"--type nowhere:Mine: no operand can be made of it{where}: ModuleNotFoundError: No module named 'nowhere'."
        in done.stderr
    )
    calls = [("Mine([1.0])", "from here import Mine"), ("Mine([1.0])", "from nowhere import Mine")]
    assert all(found == calls for _, found in tried)
    assert tried[0][0] == (None if not how else "/base/python" if how[0] == "--base" else sys.executable)
    assert machine.asked == []


def test_a_failure_is_told_and_costs_no_other_case(machine: Machine, program: Program) -> None:
    machine.broken = {("neg", "SubTensor"), ("sum", "Tensor")}
    done = program("overrides", "-k", "neg or sum")
    assert done.returncode == 1
    assert "2 cases failed:" in done.stdout
    assert "7 of 9 cases measured, 2 failed." in done.stdout


def test_findings_are_no_failures(machine: Machine, program: Program) -> None:
    done = program("overrides", "-k", "add", "-q")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "Not met: Tensor-likes" not in done.stdout
    assert "Met: plain Tensors are cheapest in every call." in done.stdout
    assert "Not met: subclasses of Tensor pay 1.00 us to 1.00 us more" in done.stdout


def test_json_goes_where_it_is_told_and_the_text_is_there_too(machine: Machine, program: Program) -> None:
    done = program("overrides", "-k", "neg", "--json", "results.json", "--store", "elsewhere.db")
    assert json.loads(Path("results.json").read_text())["schema"] == "torchmark.overrides"
    assert "neg: torch.neg(x)" in done.stdout
    assert len(load("elsewhere.db").outcomes) == 8


def test_an_interrupt_shows_what_there_is_and_the_run_can_go_on(
    machine: Machine, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.on_order = lambda: signal.raise_signal(signal.SIGINT)
    done = program("overrides", "-k", "neg and SubTensor", "-n", "500", "-m", "6")
    assert done.returncode == 130
    assert "0 of 2 cases measured, 2 not measured yet" in done.stdout
    machine.on_order = lambda: None
    monkeypatch.setattr("torchmark.runner.local.LocalBackend", machine.make_backend)
    assert program("run", "--resume").returncode == 0
    sampling = load().plan.sampling
    assert (sampling.number, sampling.blocks) == (500, 6)


def test_the_interpreter_is_the_one_that_is_named(machine: Machine, program: Program) -> None:
    program("overrides", "-k", "neg", "--python", "/opt/python")
    assert {order.target.python for order in machine.asked} == {"/opt/python"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--base", "a", "--nreps", "5"], "leave out --nreps"),
        (["--base", "a", "--python", "b"], "either --python"),
        (["-o", "x.zip"], "Nothing is compared: leave out --output, or say --base"),
        (["--fail-on", "slower"], "leave out --fail-on"),
        (["--all"], "leave out --all"),
    ],
)
def test_what_would_have_no_effect_is_refused(
    machine: Machine, program: Program, arguments: list[str], message: str
) -> None:
    done = program("overrides", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert not machine.asked


@pytest.mark.parametrize(
    ("output", "message"),
    [("no/x.zip", "There is no folder"), (".", ". is a folder"), ("-", "Name a file for the ZIP")],
)
def test_a_bundle_that_cannot_be_written_is_told_before_anything_is_measured(
    program: Program, output: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    measured: list[object] = []
    monkeypatch.setattr(
        "torchmark.cli.commands.cmd_overrides.compare_overrides", lambda *given, **_: measured.append(given)
    )
    done = program("overrides", "--base", "/some/python", "-o", output)
    assert done.returncode == 2
    assert message in done.stderr
    assert measured == []


def test_an_interpreter_that_is_none_cannot_be_compared(program: Program, tmp_path: Path) -> None:
    done = program("overrides", "--base", "/nowhere/python", "-o", str(tmp_path / "x.zip"), "-k", "shape", "--quiet")
    assert done.returncode == 2
    assert "/nowhere/python" in done.stderr
    assert not (tmp_path / "x.zip").exists()
