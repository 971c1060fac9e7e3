"""`torchmark flame` as a user runs it: exact graphs, sampled ones and differences, in all formats."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.in_process import Program
from tests.shared_workers import DEBIAN
from torchmark.runner.worker import Worker

SETUP = "def slow(): return [i for i in range(50)]\nx = torch.ones(1)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_statement_is_drawn_with_its_python_functions(program: Program, folder: Path, tracing_worker: Worker) -> None:
    done = program("flame", "slow(); torch.add(x, x)", "--setup", SETUP)
    assert done.returncode == 0, done.stderr
    assert "flame.svg" in done.stdout
    assert "instructions per run" in done.stdout
    texts = "".join(ET.parse(folder / "flame.svg").getroot().itertext())
    assert "slow" in texts
    assert "add" in texts


def test_collapsed_stacks_add_up_and_end_with_numbers(program: Program, folder: Path, tracing_worker: Worker) -> None:
    done = program("flame", "slow()", "--setup", SETUP, "-o", "x.txt", "--no-native", "--number", "10")
    assert done.returncode == 0, done.stderr
    stacks = dict(line.rsplit(" ", 1) for line in (folder / "x.txt").read_text().splitlines())
    assert "statement;slow" in stacks
    assert all(value.isdigit() for value in stacks.values())


def test_cases_of_a_suite_go_to_a_folder(program: Program, folder: Path, tracing_worker: Worker) -> None:
    done = program("flame", "standard", "-k", "relu and eager and forward", "--language", "python", "-o", "graphs/",
                   "--format", "speedscope", "--autograd", "forward")  # fmt: skip
    assert done.returncode == 0, done.stderr
    files = sorted((folder / "graphs").iterdir())
    assert files
    for file in files:
        profile = json.loads(file.read_text())["profiles"][0]
        assert sum(profile["weights"]) == profile["endValue"]


def test_a_statement_that_fails_is_told_and_leaves_no_file(
    program: Program, folder: Path, tracing_worker: Worker
) -> None:
    done = program("flame", "torch.nothing()")
    assert done.returncode == 1
    assert "has no attribute 'nothing'" in done.stderr
    assert not (folder / "flame.svg").exists()


def test_an_interpreter_that_is_none_is_told(program: Program, folder: Path) -> None:
    done = program("flame", "pass", "--python", "/nowhere/python")
    assert done.returncode != 0
    assert "/nowhere/python" in done.stderr


def test_sampling_sees_the_functions_of_another_interpreter(program: Program, folder: Path) -> None:
    arguments = ["--sampled", "--seconds", "1", "--no-native", "--python", DEBIAN, "-o", "x.txt"]
    done = program("flame", "slow()", "--setup", SETUP, *arguments)
    assert done.returncode == 0, done.stderr
    assert any(line.startswith("statement;slow") for line in (folder / "x.txt").read_text().splitlines())


def test_sampling_tells_what_a_statement_raised(program: Program, folder: Path) -> None:
    done = program("flame", "torch.nothing()", "--sampled", "--seconds", "1")
    assert done.returncode == 1
    assert "has no attribute 'nothing'" in done.stderr
