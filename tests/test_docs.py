"""The examples of the pages in docs/ run, one after the other as on the page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.in_process import Program, lend_workers

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
def test_python_examples_run(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lend_workers(monkeypatch)
    exec(compile(code, "example.py", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    assert printed.strip()
    # A case that fails is a result that is printed, too.
    assert "Traceback" not in printed
    assert "Error" not in printed


@pytest.mark.parametrize("line", LINES)
def test_command_lines_run(program: Program, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # The suite of the page itself: the longest example that defines one.
    suite = max((code for _, _, code in EXAMPLES if "BENCHMARKS = {" in code), key=len)
    Path("bench_mine.py").write_text(suite.partition("\nfor ")[0])
    _, *arguments = shlex.split(line, comments=True)
    done = program(*arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_there_are_examples_to_run() -> None:
    assert PYTHON
    assert LINES
