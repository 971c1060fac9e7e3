"""Writing files whole or not at all. What users see of it is in tests/integration/test_export.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchmark.cli.writing import write_text
from torchmark.errors import StoreError


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
