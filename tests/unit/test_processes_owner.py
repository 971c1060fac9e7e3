from __future__ import annotations

import dataclasses
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from torchmark.processes import is_alive, make_scratch, read_start, sweep, this_process


def test_a_process_knows_itself_to_be_alive() -> None:
    assert is_alive(this_process())


def test_others_of_the_same_number_are_not_meant() -> None:
    here = this_process()
    for other in (
        dataclasses.replace(here, started=here.started + 1),
        dataclasses.replace(here, boot="another"),
        dataclasses.replace(here, namespace=here.namespace + 1),
    ):
        assert not is_alive(other)


def test_what_has_ended_is_gone_even_if_nobody_has_waited_for_it() -> None:
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    owner = dataclasses.replace(this_process(), pid=child.pid, started=read_start(child.pid) or 0)
    assert is_alive(owner)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(owner)
    child.communicate()
    assert not is_alive(owner)


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
