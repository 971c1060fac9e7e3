"""Damaged and hostile files and answers, hundreds of them, against every command that reads them.

The whole campaign, of which this is a part, is `python -m benchmarks.hostile`, which can also repeat a single input.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.campaign import SHARE, list_trials
from tests.hostile.inputs import KINDS, make_input

ROOT = Path(__file__).parents[2]
LEAST_INPUTS = 5_000


def test_no_hostile_input_does_harm() -> None:
    # In a process without threads, which can be forked for each input.
    command = [sys.executable, "-m", "tests.hostile.campaign"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_a_tenth_of_all_inputs_runs_with_the_tests() -> None:
    assert len(list_trials()) >= LEAST_INPUTS
    assert len(list_trials(share=SHARE)) >= LEAST_INPUTS // SHARE


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_same_input_each_time(kind: str) -> None:
    assert make_input(kind, 1) == make_input(kind, 1)
    assert make_input(kind, 1) != make_input(kind, 2)
