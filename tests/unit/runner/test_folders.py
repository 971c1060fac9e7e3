from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from torchmark.runner.folders import cache_folder, make_scratch, sweep


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"HOME": "/home/me"}, "/home/me/.cache/torchmark"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "/caches"}, "/caches/torchmark"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "relative"}, "/home/me/.cache/torchmark"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": ""}, "/home/me/.cache/torchmark"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "/caches", "TORCHMARK_CACHE": "/mine"}, "/mine"),
    ],
)
def test_the_cache_follows_the_convention(environ: dict[str, str], expected: str) -> None:
    assert cache_folder(environ) == Path(expected)


def test_scratch_folders_of_the_dead_are_swept_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = make_scratch()
    (mine / "file").touch()
    gone = subprocess.Popen(["true"])
    gone.wait()
    here = os.stat("/proc/self/ns/pid").st_ino
    dead = tmp_path / f"torchmark-{gone.pid}-1-{here}-abc"
    reused = tmp_path / f"torchmark-{os.getpid()}-1-{here}-abc"
    contained = tmp_path / f"torchmark-{gone.pid}-1-{here + 1}-abc"
    foreign = tmp_path / "torchmark-notes"
    for folder in (dead, reused, contained, foreign):
        folder.mkdir()
        (folder / "file").touch()
    sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([mine, contained, foreign])
