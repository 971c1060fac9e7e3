"""What is remembered of self-tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmark.errors import StoreError
from torchmark.model.selftest import SelfTest
from torchmark.store.ledger import FILE, read_selftest, write_selftest

TEST = SelfTest(cpu_model="Zilog Z80", date="2026-01-01", trials=60, false_alarms=1, sd=0.0015)


def test_what_is_written_is_read_again_for_the_same_processor_only(tmp_path: Path) -> None:
    assert write_selftest(tmp_path / "new", TEST) == tmp_path / "new" / FILE
    assert read_selftest(tmp_path / "new", "Zilog Z80") == TEST
    assert read_selftest(tmp_path / "new", "MOS 6502") is None
    assert [path.name for path in (tmp_path / "new").iterdir()] == [FILE]


@pytest.mark.parametrize("text", ["", "{}", "[1]", "no JSON", '{"cpu_model": 3}'])
def test_what_cannot_be_read_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    assert read_selftest(tmp_path, "Zilog Z80") is None
    (tmp_path / FILE).write_text(text)
    assert read_selftest(tmp_path, "Zilog Z80") is None


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be kept"):
        write_selftest(tmp_path / "file", TEST)
