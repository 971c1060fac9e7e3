from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.strangers import give_away
from torchmark.runner import folders
from torchmark.runner.folders import MachineLock


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[MachineLock, MachineLock]]:
    one, two = MachineLock(tmp_path), MachineLock(tmp_path)
    yield one, two
    one.close()
    two.close()


def test_many_may_share(pair: tuple[MachineLock, MachineLock]) -> None:
    one, two = pair
    assert one.share()
    assert two.share()
    assert one.share()


def test_who_times_is_alone(pair: tuple[MachineLock, MachineLock]) -> None:
    one, two = pair
    assert one.claim()
    assert not two.share()
    assert not two.claim()
    one.leave()
    assert two.share()


def test_who_wants_to_time_keeps_others_from_beginning_more(pair: tuple[MachineLock, MachineLock]) -> None:
    one, two = pair
    assert one.share()
    assert not two.claim()
    assert not one.share()
    one.leave()
    assert two.claim()
    assert not one.share()
    two.leave()
    assert one.share()


def test_two_who_want_to_time_do_so_one_after_the_other(pair: tuple[MachineLock, MachineLock]) -> None:
    one, two = pair
    assert one.claim()
    assert not two.claim()
    one.leave()
    assert two.claim()
    assert not one.claim()


def test_whoever_is_gone_keeps_nobody(pair: tuple[MachineLock, MachineLock]) -> None:
    one, two = pair
    assert one.claim()
    one.close()
    assert two.claim()


def test_where_files_cannot_be_locked_nobody_is_kept_from_anything(tmp_path: Path) -> None:
    alone = MachineLock(tmp_path / "nowhere")
    assert alone.claim()
    assert alone.share()
    alone.leave()
    alone.close()


HOLDER = (
    "import sys; from pathlib import Path; from torchmark.runner.folders import MachineLock\n"
    "turns = MachineLock(Path(sys.argv[1])); turns.claim(); print(flush=True); input()"
)


def test_whoever_waits_long_is_told_for_which_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "TELLING_AFTER_S", 0.0)
    told: list[str] = []
    mine = MachineLock(tmp_path, told.append)
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert not mine.share()
        assert not mine.claim()
        assert set(told) == {f"Waiting for another run of torchmark on this machine (process {other.pid})."}
        # However long it takes: it lives.
        monkeypatch.setattr(folders, "LONGEST_WAIT_FOR_UNSEEN_S", 0.0)
        assert not mine.claim()
        other.communicate("\n")
    assert mine.claim()
    mine.close()


def test_a_process_that_cannot_be_seen_is_not_waited_for_without_end(
    pair: tuple[MachineLock, MachineLock], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    one, two = pair
    two._tell = told.append
    assert one.claim()
    monkeypatch.setattr(folders, "TELLING_AFTER_S", 0.0)
    # It is this process, which is none of those that are waited for.
    assert not two.claim()
    assert "in another container" in told[-1]
    monkeypatch.setattr(folders, "LONGEST_WAIT_FOR_UNSEEN_S", 0.0)
    assert two.claim()
    assert "times may be disturbed" in told[-1]
    assert two.share()


def test_another_users_files_in_the_temporary_folder_are_neither_followed_nor_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    victim = tmp_path / "made by us"
    folder = tmp_path / f"torchmark-{os.geteuid()}"
    folder.mkdir(mode=0o700)
    for path in (tmp_path / f"torchmark-{os.geteuid()}.room", folder / "gate", folder / "room"):
        path.symlink_to(victim)
    mine = MachineLock()
    assert mine.claim()
    mine.close()
    assert not victim.exists()
    (folder / "gate").unlink()
    (folder / "gate").touch(0o600)
    give_away(folder / "gate", monkeypatch)
    held = MachineLock(folder)
    assert held.claim()
    held.close()
