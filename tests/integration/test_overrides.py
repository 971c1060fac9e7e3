"""`torchmark overrides` as a user sees it, with real workers and Valgrind; and every case of its suite."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.in_process import Program
from tests.shared_workers import DEBIAN
from torchmark.define.discovery import discover
from torchmark.model.job import Place, TimeJob
from torchmark.model.outcome import Failure
from torchmark.runner.spec import other_worker, own_worker
from torchmark.runner.worker import Worker, measure_time
from torchmark.store.runs import open_store

# Few runs: what is claimed here is true of each.
QUICK = ("-n", "20", "-m", "7", "--quiet")
MINE = """
import torch

class Mine(torch.Tensor):
    pass

class Bare:
    def __init__(self, data):
        self.tensor = torch.tensor(data)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*(arg.tensor for arg in args))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def measure(program: Program, expression: str, *arguments: str) -> tuple[dict[tuple[str, str], Any], dict[str, Any]]:
    program("overrides", *QUICK, "-k", expression, "--json", "out.json", *arguments)
    data = json.loads(Path("out.json").read_text())
    return {(case["call"], case["operands"]): case for case in data["cases"]}, data


@pytest.mark.parametrize("python", [None, DEBIAN])
def test_every_case_runs_in_either_torch_and_its_setup_can_run_again(python: str | None) -> None:
    specify = own_worker if python is None else functools.partial(other_worker, python, given={})
    worker = Worker(specify(environ=os.environ, counting=False))
    try:
        for case in discover(["overrides"]).cases:
            # Each block has a setup of its own.
            job = TimeJob(case.args.stmt, case.args.setup, Place("/"), number=3)
            result = measure_time(worker, job)
            assert not isinstance(result, Failure), (case.label, result)
    finally:
        worker.close()


def test_plain_tensors_are_cheapest_stages_add_up_and_two_runs_agree_to_the_instruction(program: Program) -> None:
    expression = "'add / Sub' and not (mixed or disab or mode) or neg and not Like"
    first, data = measure(program, expression)
    second, _ = measure(program, expression)
    assert list(first) == [
        *(("add", name) for name in ("Tensor", "SubTensor", "SubWithTorchFunction")),
        *(("neg", name) for name in ("Tensor", "SubTensor", "SubWithTorchFunction")),
    ]
    for key, case in first.items():
        assert case["count"] == second[key]["count"]
        assert case["stages"] == second[key]["stages"]
        overhead = case["overhead"]
        if overhead is not None:
            assert overhead["instructions"] > 10_000
            stages = overhead["explanation"]["stages"]
            assert sum(stage["delta"] for stage in stages) == pytest.approx(overhead["instructions"])
    for call in ("add", "neg"):
        counts = [case["count"]["instructions_per_run"] for key, case in first.items() if key[0] == call]
        assert counts == sorted(counts)
        assert 0 < first[call, "Tensor"]["stages"]["__torch_function__"] < 100
    met = {finding["expectation"]: finding["is_met"] for finding in data["findings"]}
    assert met["plain_is_cheapest"]
    assert met["nothing_for_plain"]
    with open_store(Path(".torchmark/results.db"), read_only=True) as store:
        assert [run.name for run in store.list_runs()] == ["overrides", "overrides"]


def test_types_of_the_users_come_from_the_working_folder_and_what_they_cannot_do_is_told(
    program: Program, folder: Path
) -> None:
    (folder / "mine.py").write_text(MINE)
    done = program(
        "overrides", *QUICK, "-k", "neg and mine or method and Bare", "--type", "mine:Mine", "--type", "mine:Bare"
    )
    assert done.returncode == 1
    lines = [line.split() for line in done.stdout.splitlines()]
    for name in ("mine:Mine", "mine:Bare"):
        assert len([line for line in lines if line[:1] == [name]]) == 2
    assert "AttributeError: 'Bare' object has no attribute 'add'" in done.stdout
    assert "Type " not in done.stdout


def test_the_loop_has_nothing_in_its_process_but_torch_and_itself(folder: Path) -> None:
    (folder / "mine.py").write_text(MINE)
    code = (
        "import runpy, sys; sys.argv[1:] = ['mine:Mine', '-n', '3']; sys.path.insert(0, '')\n"
        "runpy.run_module('torchmark.suites.overrides.loop', run_name='__main__')\n"
        "print(*(name for name in sys.modules if name.startswith('torchmark')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {
        "torchmark",
        "torchmark.suites",
        "torchmark.suites.overrides",
        "torchmark.suites.overrides.tensors",
    }
