"""The command line as a user runs it: in a process of its own, unless only its output and exit code matter."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import torchmark
from tests.in_process import Program

CONSOLE_SCRIPT = Path(sys.executable).with_name("torchmark")
QUICK = ["--min-run-time", "0.01"]
# Seven samples, however busy the machine is; a duration may pass within a single one.
SEVEN_SAMPLES = ["--number", "5"]


def run(
    *arguments: str, cwd: Path | None = None, program: str | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*([program] if program else [sys.executable, "-m", "torchmark"]), *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **variables},
    )


@pytest.mark.parametrize("program", [[str(CONSOLE_SCRIPT)], [sys.executable, "-m", "torchmark"]])
def test_both_ways_to_start_are_the_same_program(program: list[str]) -> None:
    done = subprocess.run([*program, "--version"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout == f"torchmark, version {torchmark.__version__}\n"


def test_help_loads_neither_torch_nor_numpy_nor_click() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "torchmark", "--help"], capture_output=True, text=True
    )
    assert done.stdout.startswith("Usage: torchmark")
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "torchmark.cli.main" in loaded
    assert not loaded & {"torch", "numpy", "click", "rich"}


def test_bash_completes_commands_options_and_suites() -> None:
    words = ("torchmark self", "torchmark time --thr", "torchmark list mod")
    lines = [
        'eval "$(_TORCHMARK_COMPLETE=bash_source torchmark)"',
        # Where bash runs no terminal, it refuses to say what to do with files.
        "compopt() { :; }",
        *(
            f"COMP_WORDS=({text}); COMP_CWORD={text.count(' ')}; _torchmark_completion torchmark; "
            'echo "${COMPREPLY[@]}"; COMPREPLY=()'
            for text in words
        ),
        "complete -p torchmark",
    ]
    path = f"{CONSOLE_SCRIPT.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", "\n".join(lines)], capture_output=True, text=True, env={**os.environ, "PATH": path}
    )
    assert done.stdout.splitlines()[:3] == ["selftest", "--threads", "modern"], done.stderr
    assert "_torchmark_completion" in done.stdout.splitlines()[3]


def test_completing_loads_neither_torch_nor_numpy() -> None:
    done = run(
        _TORCHMARK_COMPLETE="bash_complete",
        COMP_WORDS="torchmark time --",
        COMP_CWORD="2",
        PYTHONPROFILEIMPORTTIME="1",
    )
    assert "plain,--threads" in done.stdout
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "torchmark.api.statements" in loaded
    assert not loaded & {"torch", "numpy"}


@pytest.mark.parametrize("command", ["time", "list", "doctor"])
def test_the_help_of_a_command_loads_neither_torch_nor_numpy(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "torchmark", command, "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert f"Usage: torchmark {command}" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not loaded & {"torch", "numpy"}


def test_one_statement_is_described() -> None:
    done = run("time", "x + y", "--setup", "x, y = torch.ones(4), torch.ones(4)", "--label", "add", *SEVEN_SAMPLES)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("add\nsetup: x, y = torch.ones(4), torch.ones(4)\n  Median: ")


def test_several_statements_and_thread_counts_make_a_table(program: Program) -> None:
    done = program("time", "x + x", "x * x", "--setup", "x = torch.ones(4)", "--threads", "1,2", *QUICK)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "setup: x = torch.ones(4)"
    assert [line.split("  ")[0] for line in lines if line.endswith("95 % interval")] == ["1 thread", "2 threads"]
    assert sum(line.startswith("  x + x ") for line in lines) == 2
    assert "\033" not in done.stdout


@pytest.mark.parametrize("options", [SEVEN_SAMPLES, ["--adaptive"], QUICK], ids=["number", "adaptive", "run time"])
def test_json_on_standard_output_is_nothing_but_json(program: Program, options: list[str]) -> None:
    done = program("time", "x = 1; print(x)" if options is SEVEN_SAMPLES else "x = 1", "--json", "-", *options)
    data = json.loads(done.stdout)
    assert (data["schema"], data["schema_version"]) == ("torchmark.time", 1)
    (entry,) = data["measurements"]
    m = torchmark.Measurement.from_dict({k: v for k, v in entry.items() if k not in ("summary", "caveats")})
    assert m.median == entry["summary"]["median_s"]
    if options is SEVEN_SAMPLES:
        assert (m.number_per_run, len(m.raw_times)) == (5, 7)
    elif options is QUICK:  # One block that was interrupted may be enough: what is promised is their sum.
        assert sum(m.raw_times) >= 0.01
    else:
        assert len(m.raw_times) >= 4


def test_json_in_a_file_leaves_the_text_on_the_terminal(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    done = program("time", "pass", "--json", str(file), *SEVEN_SAMPLES)
    assert done.stdout.startswith("pass\n  Median: ")
    assert json.loads(file.read_text())["measurements"]


def test_a_statement_can_import_what_lies_here(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def f(): return 1\n")
    done = subprocess.run(
        [str(CONSOLE_SCRIPT), "time", "mine.f()", "--setup", "import mine", *QUICK],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["x = 1\nx.foo()"],
            'Traceback (most recent call last):\n  File "<stmt>", line 2, in <module>\n    x.foo()\n'
            "AttributeError: 'int' object has no attribute 'foo'\n",
        ),
        (
            ["pass", "--setup", "import nowhere"],
            'Traceback (most recent call last):\n  File "<setup>", line 1, in <module>\n    import nowhere\n'
            "ModuleNotFoundError: No module named 'nowhere'\n",
        ),
        (["x +* 2"], '  File "<stmt>", line 1\n    x +* 2\n       ^\nSyntaxError: invalid syntax\n'),
        (
            ["raise SystemExit(7)"],
            "exited with code 7\n"
            'Traceback (most recent call last):\n  File "<stmt>", line 1, in <module>\n    raise SystemExit(7)\n'
            "SystemExit: 7\n",
        ),
    ],
)
def test_a_bad_statement_gives_the_users_own_traceback(program: Program, arguments: list[str], expected: str) -> None:
    done = program("time", *arguments, *QUICK)
    assert done.returncode == 1
    assert done.stderr == expected
    assert done.stdout == ""


def test_a_bad_statement_costs_the_others_nothing(program: Program) -> None:
    done = program("time", "x = 1", "1 / 0", "x = 2", "--threads", "1,2", *QUICK)
    assert done.returncode == 1
    assert sum(line.startswith(("  x = 1 ", "  x = 2 ")) for line in done.stdout.splitlines()) == 4
    assert done.stderr.startswith("Failed: 1 / 0\nTraceback")
    assert done.stderr.count("ZeroDivisionError") == 1


def test_a_bad_setup_is_told_once(program: Program) -> None:
    done = program("time", "x = 1", "x = 2", "--setup", "import nowhere", "--json", "-", *QUICK)
    assert done.returncode == 1
    assert done.stderr.startswith("Failed: x = 1, x = 2\nTraceback")
    assert done.stderr.count("ModuleNotFoundError") == 1
    data = json.loads(done.stdout)
    assert data["measurements"] == []
    assert [failure["stmt"] for failure in data["failures"]] == ["x = 1", "x = 2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["time", "pass", "--bogus"], "No such option"),
        (["time"], "Missing argument"),
        (["time", "pass", "--threads", "0"], "such as 1,2,4"),
        (["time", "pass", "--threads", "99999999999"], "from 1 to 4096"),
        (["time", "pass", "--number", "0"], "--number"),
        (["time", "pass", "--number", "99999999999999999999999"], "--number"),
        (["time", "pass", "--min-run-time", "nan"], "is not a number of seconds"),
        (["time", "pass", "--min-run-time", "inf"], "is not a number of seconds"),
        (["time", "pass", "--number", "5", "--adaptive"], "--number fixes the work"),
        (["time", "pass", "--json", "/nowhere/at/all.json"], "/nowhere/at/all.json"),
        (["tmie"], "tmie"),
    ],
)
def test_wrong_usage_exits_with_two_and_says_why(program: Program, arguments: list[str], message: str) -> None:
    done = program(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_without_torch_there_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    done = run("time", "pass", PYTHONPATH=str(tmp_path))
    assert done.returncode == 3
    assert "has no torch. Install it" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_called_torch_is_not_taken_for_torch(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise ImportError('this is a source tree')\n")
    command = [str(CONSOLE_SCRIPT), "time", "pass", *QUICK]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_torch_that_does_not_load_is_told_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise OSError('libtorch.so: cannot open shared object file')\n")
    done = run("time", "pass", PYTHONPATH=str(tmp_path))
    assert done.returncode == 3
    assert "does not load: OSError: libtorch.so: cannot open" in done.stderr
    assert "Traceback" not in done.stderr


def shell(program: str, command: str) -> subprocess.CompletedProcess[str]:
    line = command.replace("torchmark", program)
    return subprocess.run(line, shell=True, capture_output=True, text=True)


@pytest.mark.parametrize("command", ["torchmark --help", "torchmark time pass pass --number 1", "torchmark doctor"])
def test_a_reader_that_leaves_early_is_no_error_message(stub_program: str, command: str) -> None:
    done = shell(stub_program, f"{command} | true")
    assert done.stderr == ""


@pytest.mark.parametrize("command", ["torchmark --help", "torchmark time pass --number 1", "torchmark doctor"])
def test_a_full_disk_is_told(stub_program: str, command: str) -> None:
    done = shell(stub_program, f"{command} > /dev/full")
    assert done.returncode == 1
    assert done.stderr == "torchmark: [Errno 28] No space left on device\n"


@pytest.mark.parametrize("command", ["torchmark time pass --number 1", "torchmark doctor"])
def test_json_that_could_not_be_written_is_told(stub_program: str, command: str) -> None:
    done = shell(stub_program, f"{command} --json /dev/full")
    assert done.returncode == 4
    assert done.stderr == "torchmark: Cannot write /dev/full: No space left on device.\n"


def test_what_other_programs_print_stays_out_of_the_json(stub_program: str) -> None:
    arguments = ("--setup", "import os", "--number", "1", "--json", "-")
    done = run("time", "os.system('echo hello')", *arguments, program=stub_program)
    assert json.loads(done.stdout)["measurements"]
    assert "\nhello\n" not in done.stdout


def test_standard_output_by_its_other_name_is_standard_output(stub_program: str) -> None:
    done = shell(stub_program, "torchmark time pass --number 1 --json /dev/stdout | cat")
    assert json.loads(done.stdout)["measurements"]


def test_a_terminal_that_lacks_characters_shows_the_others(stub_program: str) -> None:
    done = run("time", "s = 'é'", "pass", "--number", "1", program=stub_program, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "s = '?'" in done.stdout


def test_a_text_that_is_no_text_is_the_users_error(stub_program: str) -> None:
    done = subprocess.run([stub_program, "time", b'x = "\xff"'], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("SyntaxError: <stmt> cannot be compiled")


def test_a_slow_setup_does_not_run_without_end(stub_program: str, tmp_path: Path) -> None:
    # Each of the five empty blocks and of the search would otherwise run it once more.
    setup = "import time; open('log', 'a').write('x'); time.sleep(0.1)"
    done = run("time", "pass", "--setup", setup, "--min-run-time", "0.000001", program=stub_program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "log").read_text()) <= 4


def test_an_interrupt_keeps_what_was_timed(stub_program: str, tmp_path: Path) -> None:
    flag, file = tmp_path / "second", tmp_path / "out.json"
    second = f"open({str(flag)!r}, 'w').close(); time.sleep(60)"
    command = [stub_program, "time", "x = 1", second, "--setup", "import time", "--json", str(file)]
    # Whoever runs these tests may ignore interrupts, which would be handed down.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    for _ in range(600):
        if flag.exists():
            break
        time.sleep(0.1)
    program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=60)
    assert program.returncode == 130
    assert "interrupted" in err
    assert out.startswith("x = 1\n")
    assert [one["task_spec"]["stmt"] for one in json.loads(file.read_text())["measurements"]] == ["x = 1"]
