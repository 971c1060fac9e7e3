"""The examples of the pages in docs/ run, one after the other as on the page."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = sorted((Path(__file__).parents[1] / "docs").glob("*.md"))
EXAMPLES = [
    (page, language, code)
    for page in DOCS
    for language, code in re.findall(r"^```(python|sh)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
]
PYTHON = [
    pytest.param(code, id=f"{page.stem}-{n}") for n, (page, kind, code) in enumerate(EXAMPLES) if kind == "python"
]
LINES = [
    line for _, kind, code in EXAMPLES if kind == "sh" for line in code.splitlines() if line.startswith("torchmark")
]


@pytest.mark.parametrize("code", PYTHON)
def test_python_examples_run(code: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    # A case that fails is a result that is printed, too.
    assert "Traceback" not in done.stdout
    assert "Error" not in done.stdout


@pytest.mark.parametrize("line", LINES)
def test_command_lines_run(line: str, tmp_path: Path) -> None:
    # The suite of the page itself: the longest example that defines one.
    suite = max((code for _, _, code in EXAMPLES if "BENCHMARKS = {" in code), key=len)
    (tmp_path / "bench_mine.py").write_text(suite.partition("\nfor ")[0])
    _, *arguments = shlex.split(line, comments=True)
    done = subprocess.run([sys.executable, "-m", "torchmark", *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_there_are_examples_to_run() -> None:
    assert PYTHON
    assert LINES
