"""What `torchmark ab` refuses before it begins. What it does is in tests/integration/test_ab.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.in_process import Program


def test_a_page_that_cannot_be_written_is_told_before_anything_is_measured(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[object] = []
    monkeypatch.setattr("torchmark.cli.cmd_ab.carry_out", lambda *given, **_: measured.append(given))
    done = program("ab", "1", "2", "--html", str(tmp_path))
    assert done.returncode == 2
    assert f"{tmp_path} is a folder. Name a file in it, such as {tmp_path}/ab.html." in done.stderr
    assert measured == []
