from __future__ import annotations

import io
import zipfile

from torchmark.report.html.overrides import pack_bundle

FILES = {"README.md": "hello\n", "flames/base-add.svg": "<svg/>"}


def test_files_lie_below_one_folder() -> None:
    with zipfile.ZipFile(io.BytesIO(pack_bundle("overrides", FILES))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["overrides/README.md", "overrides/flames/base-add.svg"]
        assert archive.read("overrides/README.md") == b"hello\n"
        assert all(info.external_attr >> 16 == 0o644 for info in archive.infolist())


def test_the_same_files_are_the_same_bytes() -> None:
    assert pack_bundle("x", FILES) == pack_bundle("x", FILES)


def test_a_character_that_no_encoding_has_is_no_reason_to_fail() -> None:
    with zipfile.ZipFile(io.BytesIO(pack_bundle("x", {"a.txt": "\ud800"}))) as archive:
        assert archive.read("x/a.txt") == b"?"
