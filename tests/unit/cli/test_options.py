"""Options that are given together; and JSON for other programs: a file is written whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import click
import pytest

from tests.in_process import Program
from torchmark.cli.options import Parsed, give_together, is_standard_output, write_json
from torchmark.errors import StoreError, UsageError

DATA = {"schema": "x", "values": [1.5, None, "é\udcff"]}


def refuse(*_: object) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_json_that_cannot_be_written_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "out.json"
    file.write_text("of the last run")
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StoreError, match=r"Cannot write .*out\.json: No space left on device"):
        write_json(DATA, str(file))
    assert file.read_text() == "of the last run"
    assert os.listdir(tmp_path) == ["out.json"]


def test_json_replaces_what_was_there_and_keeps_its_mode_and_links(tmp_path: Path) -> None:
    file, link = tmp_path / "out.json", tmp_path / "link.json"
    file.write_text("of the last run, which was longer" * 100)
    file.chmod(0o640)
    link.symlink_to(file)
    write_json(DATA, str(link))
    assert json.loads(file.read_text()) == DATA
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_pipe_a_device_and_a_descriptor_are_written_to(tmp_path: Path) -> None:
    pipe, texts = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: texts.append(pipe.read_text()))
    reader.start()
    write_json(DATA, str(pipe))
    reader.join()
    assert json.loads(texts[0]) == DATA
    assert pipe.is_fifo()
    write_json(DATA, os.devnull)
    # Whoever gave the descriptor reads from it.
    with (tmp_path / "held.json").open("w+") as held:
        held.write("before" * 100)
        held.flush()
        for name in (f"/dev/fd/{held.fileno()}", f"/proc/self/fd/{held.fileno()}"):
            write_json(DATA, name)
            held.seek(0)
            assert json.loads(held.read()) == DATA
    ends = os.pipe()
    write_json(DATA, f"/dev/fd/{ends[1]}")
    assert json.loads(os.read(ends[0], 1000)) == DATA
    for end in ends:
        os.close(end)


def test_standard_output_is_known_by_all_its_names(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("-", "/dev/stdout", "/dev/fd/1"):
        assert is_standard_output(name)
        write_json(DATA, name)
        assert json.loads(capfd.readouterr().out) == DATA
    (tmp_path / "file").touch()
    assert not is_standard_output(None)
    assert not is_standard_output(str(tmp_path / "file"))
    assert not is_standard_output(str(tmp_path / "new"))


def test_a_closed_standard_output_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(StoreError, match="standard output: it is closed"):
        write_json(DATA, "-")


@pytest.mark.parametrize("place", ["nowhere/out.json", "."])
def test_a_file_that_cannot_be_written_is_told_before_anything_is_done(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = program("list", "standard", "--json", place)
    assert done.returncode == 2
    assert f"{place}: " in done.stderr
    assert done.stdout == ""
    assert os.listdir() == []


def test_no_file_is_made_before_there_is_something_to_write(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert program("list", "standard", "-k", "nothing_is_called_this", "--store", "x", "--json", "out.json").returncode
    assert os.listdir() == []
    assert program("list", "standard", "-k", "clone", "--json", "out.json").returncode == 0
    assert json.loads(Path("out.json").read_text())


def parse_even(text: str) -> int:
    if int(text) % 2:
        raise UsageError(f"{text} is odd.")
    return int(text)


inner = give_together("both", lambda a, b: (a, b), click.option("--a", default=1), click.option("--b", default=2))
outer = give_together("all_of", lambda both, c: (*both, c), inner, click.option("--c", type=Parsed("EVEN", parse_even)))


@click.command()
@click.option("--first", is_flag=True)
@outer
@click.option("--last", is_flag=True)
def command(first: bool, all_of: tuple[Any, ...], last: bool) -> tuple[Any, ...]:
    return (first, all_of, last)


def test_options_that_are_given_together_are_one_value_in_their_place_of_the_help() -> None:
    assert command.main(["--b", "7", "--last", "--c", "4"], standalone_mode=False) == (False, (1, 7, 4), True)
    assert [parameter.name for parameter in command.params] == ["first", "a", "b", "c", "last"]


def test_a_value_that_is_refused_is_told_with_its_option() -> None:
    with pytest.raises(click.BadParameter, match="3 is odd") as raised:
        command.main(["--c", "3"], standalone_mode=False)
    assert raised.value.param is not None
    assert raised.value.param.name == "c"
    assert command.main([], standalone_mode=False) == (False, (1, 2, None), False)
