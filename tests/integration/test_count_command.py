"""`torchmark count` as a user runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.in_process import Program

SETUP = "x = torch.ones(4, 4); w = torch.ones(4, 4)"


def run(stub_program: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, where what matters is what is around it."""
    return subprocess.run(
        [stub_program, "count", *arguments], capture_output=True, text=True, env={**os.environ, **environ}
    )


def heed_interrupts() -> None:
    """Whoever runs these tests in the background may have interrupts switched off, for all below."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_statements_are_counted_side_by_side_and_one_that_fails_costs_the_others_nothing(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lies_here.py").write_text("def f(x): return x + 1")
    file = tmp_path / "counts.json"
    done = program(
        "count", "x * w", "lies_here.f(x)", "1 / 0", "time.sleep(1000)",
        "--setup", f"import lies_here, time; {SETUP}", "--timeout", "8", "--json", str(file),
    )  # fmt: skip
    assert done.returncode == 1
    head, first, second, blank, *_ = done.stdout.splitlines()
    assert head.split() == ["instructions", "spread", "baseline", "mallocs", "tensors"]
    assert first.startswith("x * w")
    assert second.startswith("lies_here.f(x)")
    assert blank == ""
    assert "the median of 5 memory layouts" in done.stdout
    assert "Failed: 1 / 0\nTraceback (most recent call last):" in done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert "Failed: time.sleep(1000)\nIt did not end within 8 s." in done.stderr

    data = json.loads(file.read_text())
    assert (data["schema"], data["schema_version"]) == ("torchmark.count", 1)
    assert [count["task_spec"]["stmt"] for count in data["counts"]] == ["x * w", "lies_here.f(x)"]
    assert data["counts"][0]["tensor_allocations"] == 100
    assert [failure["kind"] for failure in data["failures"]] == ["raised", "timed_out"]
    assert data["difference"] == []


def test_variables_are_set_for_what_is_counted_and_kept_with_it(stub_program: str) -> None:
    setup = "import os; assert os.environ['MY_SWITCH'] == 'on'"
    done = run(stub_program, "pass", "--setup", setup, "--layouts", "1", "--set-env", "MY_SWITCH=on", "--json", "-")
    assert done.returncode == 0, done.stderr
    (count,) = json.loads(done.stdout)["counts"]
    assert count["environment"]["variables"]["MY_SWITCH"] == "on"


def test_a_difference_is_shown_by_function(program: Program) -> None:
    done = program("count", "x * w", "x + w", "--setup", SETUP, "--diff", "--layouts", "3")
    assert done.returncode == 0, done.stderr
    assert "Instructions per run from  x * w  to  x + w" in done.stdout
    assert "at::_ops::add_Tensor::call(" in done.stdout
    assert all(len(line) <= 100 for line in done.stdout.splitlines())
    table = done.stdout.partition("Instructions per run")[2].splitlines()
    # A name that would look like another one is shown whole, on more lines than one.
    numbers = (re.match(r"  +([-+]?[\d,]+\.\d)  ", line) for line in table)
    *parts, total = (float(found[1].replace(",", "")) for found in numbers if found)
    assert sum(parts) == pytest.approx(total, abs=0.5)


def test_json_alone_goes_to_standard_output(program: Program) -> None:
    setup = f"print('noise'); {SETUP}"
    done = program("count", "x * w", "--setup", setup, "--layouts", "1", "--json", "-", "--threads", "1,2")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    data = json.loads(done.stdout)
    assert [count["task_spec"]["num_threads"] for count in data["counts"]] == [1, 2]
    one, two = ([caveat["kind"] for caveat in count["caveats"]] for count in data["counts"])
    # The only one that the machine may add, to both: Valgrind does not know all instruction sets.
    assert set(one) <= {"other_instruction_set"}
    assert two == ["several_threads", *one]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["x", "--diff"], "--diff compares two statements"),
        (["x", "x", "--diff"], "--diff compares two statements"),
        (["x", "y", "--diff", "--threads", "1,2"], "--diff compares two statements"),
        ([], "Missing argument"),
        (["x", "--layouts", "0"], "0 is not in the range"),
        (["x", "--number", "0"], "0 is not in the range"),
        (["x", "--set-env", "OMP_NUM_THREADS"], "is not a variable with its value"),
        (["x", "--set-env", "=1"], "is not a variable with its value"),
        (["x", "--timeout", "soon"], "is not a number of seconds"),
        (["x", "--json", "/nowhere/at/all"], "There is no folder"),
    ],
)
def test_a_call_that_means_nothing_is_told_at_once(program: Program, arguments: list[str], problem: str) -> None:
    done = program("count", *arguments)
    assert done.returncode == 2
    assert problem in done.stderr
    assert done.stdout == ""


def only(folder: Path, *programs: str) -> str:
    """A path on which nothing but these can be found."""
    for program in programs:
        found = subprocess.run(["which", program], capture_output=True, text=True, check=True).stdout.strip()
        (folder / program).symlink_to(found)
    return str(folder)


def test_without_valgrind_one_sentence_says_what_to_install(stub_program: str, tmp_path: Path) -> None:
    done = run(stub_program, "pass", PATH=only(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("torchmark: Missing: valgrind. Install it")
    assert len(done.stderr.splitlines()) == 1


def test_without_a_compiler_one_sentence_says_what_to_install(stub_program: str, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    done = run(stub_program, "pass", PATH=only(folder, "valgrind"), TORCHMARK_CACHE=str(tmp_path / "cache"))
    assert (done.returncode, done.stdout) == (3, "")
    assert "There is no C compiler" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_valgrind_that_cannot_run_this_is_told_in_its_own_words(stub_program: str, tmp_path: Path) -> None:
    fake = tmp_path / "valgrind"
    fake.write_text("#!/bin/sh\necho 'valgrind: failed to start tool' >&2\nexit 1\n")
    fake.chmod(0o755)
    done = run(stub_program, "pass", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 3
    assert "Valgrind cannot run" in done.stderr
    assert "valgrind: failed to start tool" in done.stderr


def test_a_valgrind_that_does_not_watch_is_noticed(stub_program: str, tmp_path: Path) -> None:
    fake = tmp_path / "valgrind"
    fake.write_text('#!/bin/sh\nwhile true; do case "$1" in -*) shift;; *) break;; esac; done\nexec "$@"\n')
    fake.chmod(0o755)
    done = run(stub_program, "pass", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert "does not run under Valgrind" in done.stderr


def test_a_cache_that_cannot_be_written_is_told(stub_program: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run(stub_program, "pass", TORCHMARK_CACHE=str(tmp_path / "file" / "cache"))
    assert done.returncode == 3
    assert "TORCHMARK_CACHE" in done.stderr


def test_an_interrupt_keeps_what_has_been_counted_and_leaves_nothing_behind(stub_python: str, tmp_path: Path) -> None:
    started = tmp_path / "started"
    # The first run, without Valgrind, is to pass.
    slow = f"""
import time
if "vgpreload" in open("/proc/self/maps").read():
    open({str(started)!r}, "w").close()
    time.sleep(1000)
"""
    with subprocess.Popen(
        [sys.executable, "-m", "torchmark", "count", "x * w", slow, "--setup", SETUP, "--python", stub_python],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    ) as process:
        while not started.exists() and process.poll() is None:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "x * w" in out
    assert "interrupted" in err


@pytest.mark.parametrize(
    "arguments",
    [("count", "nope", "x +"), ("flame", "nope", "-o", "graph.svg"), ("ab", "nope", "1", "-q")],
    ids=lambda arguments: arguments[0],
)
def test_code_that_fails_at_once_is_reported_before_valgrind_starts(
    stub_program: str, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    started = tmp_path / "started"
    fake = tmp_path / "bin" / "valgrind"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\necho \"$@\" >> '{started}'\nexit 1\n")
    fake.chmod(0o755)
    done = subprocess.run(
        [stub_program, *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}"},
    )
    assert done.returncode == 1, done.stderr
    assert "NameError: name 'nope' is not defined" in done.stdout + done.stderr
    assert ("SyntaxError" in done.stdout + done.stderr) == ("x +" in arguments)
    assert not started.exists()
