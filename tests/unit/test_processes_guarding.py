from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import is_alive, wait_until
from torchmark.processes import guarded, run_guarded

# Starts a program that starts another, tells the numbers of both, and waits.
PROGRAM = """
import subprocess, sys, time
from pathlib import Path
from torchmark.processes import run_guarded
folder = Path(sys.argv[1])
with run_guarded(["sh", "-c", "sleep 1000 & echo $$ $!; wait"], folder=folder, stdout=subprocess.PIPE) as process:
    print(process.stdout.readline().decode(), end="", flush=True)
    time.sleep(1000)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_however_a_program_is_ended_what_it_started_ends_with_it(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    (folder / "file").touch()
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as program:
        assert program.stdout is not None
        pids = [int(pid) for pid in program.stdout.readline().split()]
        assert len(pids) == 2
        program.send_signal(number)
    wait_until(lambda: not any(map(is_alive, pids)))
    if number is not signal.SIGINT:
        # Else the program goes on to the end of its block, and the folder is its own business.
        wait_until(lambda: not folder.exists())


def test_what_a_program_leaves_running_ends_with_the_block(tmp_path: Path) -> None:
    with run_guarded(["sh", "-c", "sleep 1000 > /dev/null & echo $!"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        left = int(process.stdout.readline())
        assert process.wait() == 0
        assert is_alive(left)
    wait_until(lambda: not is_alive(left))


def test_a_program_that_ends_in_time_keeps_its_folder_and_its_exit_code(tmp_path: Path) -> None:
    with run_guarded(["sh", "-c", "exit 3"], folder=tmp_path) as process:
        process.wait()
    assert process.returncode == 3
    assert tmp_path.exists()


def test_without_an_interpreter_to_start_there_is_no_guard(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with guarded(os.getpgrp(), tmp_path), run_guarded(["sh", "-c", "exit 3"]) as process:
        process.wait()
    assert process.returncode == 3


def test_a_program_that_is_not_there_says_so() -> None:
    with run_guarded(["/nowhere/compiler"], stderr=subprocess.PIPE) as process:
        _, said = process.communicate()
    assert process.returncode == 1
    assert said == b"/nowhere/compiler cannot be started: No such file or directory.\n"
