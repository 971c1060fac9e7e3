"""Writing files whole or not at all. What users see of it is in tests/integration/test_export.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchmark.cli.output import check_output, write_text
from torchmark.errors import StoreError, UsageError


def test_a_device_is_written_to_and_stays_what_it_is() -> None:
    write_text("text", os.devnull)
    assert not Path(os.devnull).is_file()


def test_what_no_encoding_has_becomes_a_question_mark(tmp_path: Path) -> None:
    write_text("a\udc80b", str(tmp_path / "file"))
    assert (tmp_path / "file").read_bytes() == b"a?b"


@pytest.mark.parametrize("output", [None, "-"])
def test_without_a_file_it_goes_to_standard_output(output: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    write_text("text\n", output)
    assert capsys.readouterr().out == "text\n"


@pytest.mark.parametrize("output", [None, "-", "new.html", "there.html", "folder/new.html", "link.html", os.devnull])
def test_what_can_be_written_passes_and_stays_as_it_is(
    output: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "there.html").write_text("before")
    (tmp_path / "link.html").symlink_to("folder/file.html")
    check_output(output, "x.html")
    assert sorted(os.listdir()) == ["folder", "link.html", "there.html"]
    assert (tmp_path / "there.html").read_text() == "before"


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("folder", "folder is a folder. Name a file in it, such as folder/x.html."),
        ("no/such/file.html", "There is no folder .*/no/such to write file.html to"),
        ("link.html", "There is no folder .*/gone to write file.html to"),
    ],
)
def test_what_cannot_be_written_is_told_beforehand(
    output: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.html").symlink_to("gone/file.html")
    with pytest.raises(UsageError, match=message):
        check_output(output, "x.html")


def test_so_is_a_folder_that_one_may_not_write_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever runs tests as root may write anywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    check_output(os.devnull, "x.html")
    with pytest.raises(UsageError, match=f"{tmp_path} is read-only for you"):
        check_output(str(tmp_path / "x.html"), "x.html")


def test_a_file_that_could_not_be_put_in_place_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "file").write_text("before")
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(StoreError, match="No space left"):
        write_text("after", str(tmp_path / "file"))
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "before"
