"""The README's examples run, and the commands it names exist."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.in_process import Program

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("code", blocks("python"), ids=lambda code: code.splitlines()[0])
def test_python_examples_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if "compile=" in code:
        # Inductor then compiles nothing only to find out what the processor can do.
        monkeypatch.setenv("TORCHINDUCTOR_VEC_ISA_OK", "1")
    exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})


TORCHMARK_LINES = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("torchmark ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all commands, which follow each other as in the text."""
    path = tmp_path_factory.mktemp("readme")
    (path / "bench_ops.py").write_text("from torchmark import GroupedStmts\nBENCHMARKS = {'f': GroupedStmts('1 + 1')}")
    return path


@pytest.mark.parametrize("line", TORCHMARK_LINES)
def test_command_lines_run(program: Program, line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    _, *arguments = shlex.split(line, comments=True)
    arguments = [re.sub("/(path/to|other)/python", sys.executable, argument) for argument in arguments]
    if "--env" in arguments or "--base" in arguments:
        # Two more workers under Valgrind would take a minute.
        arguments += ["--metric", "wall"]
    if arguments[0] == "ab":
        # Each layout has processes of its own, which load torch; fresh ones would do so again. So coarse a question is
        # soon decided, and the budget is enough for a slow machine to start them.
        arguments += ["--layouts", "2", "--equivalence", "40%", "--budget", "300"]
    done = program(*arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout or "-o" in arguments


def test_there_are_examples_to_run() -> None:
    assert blocks("python")
    assert TORCHMARK_LINES


def test_make_targets_exist() -> None:
    named = set(re.findall(r"^make (\w+)", "\n".join(blocks("sh")), re.MULTILINE))
    assert {"bench", "test"} <= named
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert named <= targets
