"""How `make bench` ends: with a page of what was measured, and with the code of the run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A run says who it is where it is asked to, which is last; a report says what it was asked for.
RUN = """#!/bin/sh
if [ "$1" = run ]; then
  echo "ran $2"
  for file; do :; done
  if [ {measured} = yes ]; then printf '{{\\n  "run": {{\\n    "id": "0123abcd",\\n' > "$file"; else touch "$file"; fi
  exit {run}
fi
shift
echo "reported $*"
exit {report}
"""


def bench(folder: Path, *, measured: str = "yes", run: int = 0, report: int = 0) -> subprocess.CompletedProcess[str]:
    """`make bench` where everything is set up, with a program that ends as it is told to."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, text in (
        ("torchmark", RUN.format(measured=measured, run=run, report=report)),
        ("python", "#!/bin/sh\nexit 0\n"),
    ):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (folder / ".venv" / ".ready").touch()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "bench", "BENCH=modern", "REPORT=my page.html"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_a_page_is_written_of_the_run_that_was_just_made(tmp_path: Path) -> None:
    done = bench(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["ran modern", "reported 0123abcd -o my page.html"]


@pytest.mark.parametrize(("run", "report"), [(1, 0), (0, 4), (1, 4)])
def test_what_fails_fails_and_the_page_is_written_all_the_same(tmp_path: Path, run: int, report: int) -> None:
    done = bench(tmp_path, run=run, report=report)
    assert done.returncode != 0
    assert f"Error {run or report}" in done.stderr
    assert "reported 0123abcd" in done.stdout


def test_where_nothing_was_measured_there_is_no_page_of_something_else(tmp_path: Path) -> None:
    done = bench(tmp_path, measured="no", run=2)
    assert done.returncode != 0
    assert "reported" not in done.stdout
