"""`torchmark doctor` on this machine, and on one that lacks everything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

# Keeps to one core, as a container that was given one does, and then becomes the program.
ONE_CORE = (
    "import os, sys; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); os.execv(sys.argv[1], sys.argv[1:])"
)


def by_topic(output: str) -> dict[str, dict[str, Any]]:
    return {finding["topic"]: finding for finding in json.loads(output)["findings"]}


def test_this_machine_is_described() -> None:
    done = subprocess.run([sys.executable, "-m", "torchmark", "doctor", "--json", "-"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["machine"]["torch"]["version"] == torch.__version__
    assert data["machine"]["torch"]["cpu_capability"] == torch.backends.cpu.get_cpu_capability()
    assert data["machine"]["cores_allowed"] == len(os.sched_getaffinity(0))
    assert data["machine"]["py_spy"]["version"].startswith("py-spy")
    assert by_topic(done.stdout)["torch"]["status"] == "good"


def test_a_machine_that_lacks_everything_gets_clear_findings(stub_program: str, tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path)}
    command = [sys.executable, "-c", ONE_CORE, stub_program, "doctor", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    findings = by_topic(done.stdout)
    for topic, fact in (("Valgrind", "not found"), ("C++ compiler", "not found"), ("cores", "1 of ")):
        assert findings[topic]["status"] == "problem"
        assert fact in findings[topic]["fact"]
        assert findings[topic]["advice"]
    assert findings["torch"]["status"] == "good"


def test_the_text_for_people_fits_into_eighty_columns(stub_program: str, tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "COLUMNS": "80"}
    done = subprocess.run([stub_program, "doctor"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "apt-get install valgrind" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_folder_called_torch_is_not_taken_for_torch(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise RuntimeError('not me')\n")
    done = subprocess.run(
        [str(Path(sys.executable).with_name("torchmark")), "doctor", "--json", "-"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert by_topic(done.stdout)["torch"]["status"] == "good"
