from __future__ import annotations

from importlib import import_module

import click
import pytest

from torchmark.cli import program
from torchmark.cli.main import main
from torchmark.cli.overview import COMMANDS, overview
from torchmark.errors import SetupError, StoreError, UsageError


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_overview_is_there_under_its_name(name: str) -> None:
    command = import_module(COMMANDS[name][0]).command
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
