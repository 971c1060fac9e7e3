from __future__ import annotations

import dataclasses
from importlib import import_module
from pathlib import Path

import click
import pytest

from tests.sample_runs import sample_run
from torchmark import __version__
from torchmark.cli import program
from torchmark.cli.main import main
from torchmark.cli.startup import COMMANDS, overview
from torchmark.errors import SetupError, StoreError, UsageError
from torchmark.store.runs import open_store


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_overview_is_there_under_its_name(name: str) -> None:
    command = import_module(f"torchmark.cli.commands.cmd_{name}").command
    assert isinstance(command, click.Command)
    assert command.name == name
    assert command.help


def test_the_overview_fits_into_eighty_columns() -> None:
    assert max(map(len, overview().splitlines())) <= 80


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_is_the_overview(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert capsys.readouterr().out == overview() + "\n"


def test_help_after_other_words_is_the_overview_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help", "time"]) == 0
    assert capsys.readouterr().out == overview() + "\n"


@pytest.mark.parametrize("arguments", [["nonsense"], ["--nonsense"], ["time"], ["time", "pass", "--nonsense"]])
def test_what_makes_no_sense_exits_with_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "Error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("u"), 2),
        (SetupError("s.", missing="torch", advice="Install it."), 3),
        (StoreError("st"), 4),
        (KeyboardInterrupt(), 130),
    ],
)
def test_errors_become_a_sentence_and_an_exit_code(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(program.program, "main", fail)
    assert program.run([]) == code
    err = capsys.readouterr().err
    assert err.startswith("torchmark: ")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "proposal"),
    [
        (["timeit", "x"], "Did you mean 'torchmark time'?"),
        (["bench"], "Did you mean 'torchmark run'?"),
        (["diff", "a", "b"], "Did you mean 'torchmark compare'?"),
        (["version"], "Did you mean 'torchmark --version'?"),
        (["tiem"], "Did you mean 'torchmark time'?"),
        (["x + y"], "To time it as a statement: torchmark time 'x + y'"),
        (["x+y", "--setup", "x = y = 1"], "torchmark time x+y --setup 'x = y = 1'"),
        (["qqqq"], "'torchmark --help' lists the commands."),
    ],
)
def test_an_unknown_command_gets_a_proposal(
    arguments: list[str], proposal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert proposal in capsys.readouterr().err


def test_a_file_in_place_of_a_command_gets_the_command_that_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, command in (("bench_a.py", "run"), ("a.json", "compare")):
        (tmp_path / name).touch()
        assert main([str(tmp_path / name)]) == 2
        assert f"torchmark {command} {tmp_path / name}" in capsys.readouterr().err


def test_help_is_a_command_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == 0
    assert capsys.readouterr().out == overview() + "\n"
    assert main(["help", "time"]) == 0
    assert capsys.readouterr().out.startswith("Usage: torchmark time ")


def test_a_capital_v_shows_the_version_as_in_python(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-V"]) == 0
    assert capsys.readouterr().out == f"torchmark, version {__version__}\n"


def complete(words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shell: str) -> str:
    """What the program answers to a shell that wants to complete the last of these words."""
    monkeypatch.setenv("_TORCHMARK_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    # fish gives the word itself, the others its place.
    last = words.split(" ")[-1]
    monkeypatch.setenv("COMP_CWORD", last if shell == "fish" else str(words.count(" ")))
    with pytest.raises(SystemExit) as ended:
        main([])
    assert not ended.value.code
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("shell", "answer"),
    [("bash", "plain,selftest\n"), ("zsh", "plain\nselftest\n"), ("fish", "plain,selftest\t")],
)
def test_shells_complete_names_of_commands(
    shell: str, answer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complete("torchmark se", monkeypatch, capsys, shell).startswith(answer)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_get_the_script_that_completes(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_TORCHMARK_COMPLETE", f"{shell}_source")
    with pytest.raises(SystemExit) as ended:
        main([])
    assert not ended.value.code
    assert f"_TORCHMARK_COMPLETE={shell}_complete" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("torchmark time --thr", "plain,--threads\n"),
        ("torchmark time --language c", "plain,cpp\n"),
        ("torchmark run mod", "file,mod\nplain,modern\n"),
        ("torchmark list mod", "file,mod\nplain,modern\n"),
    ],
)
def test_options_their_choices_and_suites_are_completed(
    words: str, answer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complete(words, monkeypatch, capsys, "bash") == answer


def test_names_of_runs_are_completed_but_for_those_that_steer_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TORCHMARK_STORE", str(tmp_path / "results.db"))
    assert not complete("torchmark show n", monkeypatch, capsys, "bash").strip()
    with open_store(tmp_path / "results.db", create=True) as store:
        for number, name in enumerate(("nightly", "n\x1b[2J", "other")):
            run = sample_run()
            info = dataclasses.replace(run.info, name=name, id=f"{number:032x}")
            with store.begin(run.plan, info):
                pass
    assert complete("torchmark show n", monkeypatch, capsys, "bash") == "plain,nightly\n"
