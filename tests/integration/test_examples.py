"""The examples, run as their first lines say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(module: str) -> str:
    done = subprocess.run([sys.executable, "-m", module], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_simple_timeit_shows_three_ways() -> None:
    out = run("examples.simple_timeit")
    assert out.count("Broadcasting add (4x8)") == 3
    assert "1 measurement, 10000 runs, 1 thread" in out


def test_compare_prints_a_plain_and_a_trimmed_table() -> None:
    out = run("examples.compare")
    assert out.count("Batched dot product") == 2
    assert out.count("1 threads: -") == out.count("2 threads: -") == 2
    assert out.count("einsum") == 4
    assert "\033" not in out
