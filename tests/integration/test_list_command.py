"""`torchmark list` with files as users write them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from torchmark.cli.main import main

IMPORTS = """\
from torchmark.define.groups import GroupedModules, GroupedStmts
from torchmark.model.plan import TimerArgs
"""
GOOD = f"""{IMPORTS}
print("printed while loading")
BENCHMARKS = {{
    "Pointwise": {{
        "mul": GroupedStmts(
            "y = x * w", "auto y = x * w;", signature="f(x, w) -> y", torchscript=True, autograd=True, tags="quick"
        ),
    }},
    "relu": GroupedModules("model = torch.nn.ReLU()", signature="f(x) -> y", compile=True, num_threads=(1, 2)),
    "bare": TimerArgs("x"),
}}
"""
FAULTY = f"""{IMPORTS}
BENCHMARKS = {{
    "good": GroupedStmts("x"),
    "bad": {{"signature": GroupedStmts("x", signature="f(a b) -> y")}},
    "comma": (GroupedStmts("x"),),
}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a good file and a faulty one below."""
    (tmp_path / "bench_good.py").write_text(GOOD)
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "bench_faulty.py").write_text(FAULTY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_good_file_is_listed(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "bench_good.py"]) == 0
    out, err = capfd.readouterr()
    assert "Pointwise / mul" in out
    assert "13 cases" in out
    assert "Tags: 8 quick" in out
    assert err == "printed while loading\n"


@pytest.mark.usefixtures("folder")
def test_faults_are_told_with_their_places_and_good_cases_are_listed(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "."]) == 2
    out, err = capfd.readouterr()
    assert "14 cases" in out
    assert (
        "2 faulty definitions:\n\n"
        "below/bench_faulty.py: comma\n"
        "  What stands at comma is <class 'tuple'>, not TimerArgs, GroupedStmts, GroupedModules, GroupedVariants, "
        "or a dictionary of them. A comma behind a group makes a tuple of it.\n"
    ) in err
    assert err.endswith(
        "\n\nbelow/bench_faulty.py:6: bad / signature\n"
        "  Invalid signature: `f(a b) -> y`: expected `,` or `)`, found `b`.\n"
        "    f(a b) -> y\n"
        "        ^\n"
    )


@pytest.mark.usefixtures("folder")
def test_json_has_texts_and_faults(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["list", ".", "--json", "-", "-k", "mul or good", "--language", "python", "--runtime", "eager"]) == 2
    data = json.loads(capfd.readouterr().out)
    assert [(case["suite"], case["label"], case["stmt"]) for case in data["cases"]] == [
        ("below/bench_faulty.py", ["good"], "x"),
        ("bench_good.py", ["Pointwise", "mul"], "y = x * w"),
        ("bench_good.py", ["Pointwise", "mul"], "y = x * w\ny.backward()"),
    ]
    assert [(fault["label"], fault["line"]) for fault in data["faults"]] == [
        (["comma"], None),
        (["bad", "signature"], 6),
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["bench_good.py", "-k", "softmax"], 1, "None of 13 cases is selected by -k softmax."),
        (["bench_god.py"], 2, "'bench_god.py' is neither a suite nor a file or folder."),
        (["standrad"], 2, "Did you mean standard?"),
        (["empty"], 2, "There is no bench_*.py in the folder 'empty' or below."),
        (["nothing.py"], 1, "There are no benchmarks here."),
        (["without.py"], 2, "without.py\n  There is no BENCHMARKS.\n"),
        (["syntax.py"], 2, "syntax.py:2\n  It is not Python: invalid syntax.\n    y = = 2\n        ^\n"),
    ],
)
def test_what_cannot_be_listed_is_explained(
    arguments: list[str], code: int, message: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty").mkdir()
    (folder / "nothing.py").write_text("BENCHMARKS = {}")
    (folder / "without.py").write_text("")
    (folder / "syntax.py").write_text("x = 1\ny = = 2\n")
    assert main(["list", *arguments]) == code
    out, err = capfd.readouterr()
    assert out == ""
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize("line", ["sys.stdout.close()", "sys.stdout = None", "import io; sys.stdout = io.StringIO()"])
def test_whatever_a_suite_does_to_standard_output_the_list_is_printed(folder: Path, line: str) -> None:
    (folder / "bench_rude.py").write_text(f"{GOOD}\nimport sys\n{line}\n")
    done = subprocess.run(
        [sys.executable, "-m", "torchmark", "list", "bench_rude.py"], capture_output=True, text=True, cwd=folder
    )
    assert "13 cases" in done.stdout
    assert "Traceback" not in done.stderr


def test_without_standard_output_there_is_no_traceback(folder: Path) -> None:
    command = f"{sys.executable} -m torchmark list bench_good.py >&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, cwd=folder)
    assert "Traceback" not in done.stderr


def test_a_file_for_json_keeps_what_it_has_until_there_is_something_to_write(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "out.json").write_text("x" * 100_000)
    assert main(["list", "nonsense", "--json", "out.json"]) == 2
    assert (folder / "out.json").read_text() == "x" * 100_000
    assert main(["list", "bench_good.py", "--json", "out.json"]) == 0
    assert len(json.loads((folder / "out.json").read_text())["cases"]) == 13


def test_a_reader_that_has_enough_ends_the_list_in_silence(folder: Path) -> None:
    command = f"{sys.executable} -m torchmark list standard --json - | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=folder)
    assert (done.stdout, done.stderr) == ("{\n", "")
