from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.store_writer import check_integrity
from tests.stored_runs import INFO, PLAN, make_outcomes, make_run
from torchmark.model.run import Run
from torchmark.store.database import StoreLost
from torchmark.store.runs import Store, open_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".torchmark" / "results.db"


def remove_all(path: Path) -> None:
    shutil.rmtree(path.parent)


def remove(*suffixes: str) -> Callable[[Path], None]:
    def unlink(path: Path) -> None:
        for suffix in suffixes:
            os.unlink(f"{path}{suffix}")

    return unlink


def rename_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


DISTURBANCES = {
    "the file": remove(""),
    "the log": remove("-wal"),
    "the index": remove("-shm"),
    "both beside it": remove("-wal", "-shm"),
    "all three": remove("", "-wal", "-shm"),
    "its folder": remove_all,
    "its folder, renamed": rename_folder,
}


@pytest.mark.parametrize("name", DISTURBANCES)
def test_what_was_saved_in_a_store_that_is_removed_meanwhile_is_saved_again_and_that_is_told(
    name: str, path: Path
) -> None:
    first, second, *_ = make_outcomes()

    def run() -> None:
        with open_store(path, create=True) as store, store.begin(PLAN, INFO) as recorder:
            recorder.append(first)
            DISTURBANCES[name](path)
            recorder.append(second)
            raise AssertionError("not reached")

    with pytest.raises(StoreLost) as caught:
        run()
    assert "while" in str(caught.value)
    assert f"torchmark run --resume --store {path}" in str(caught.value)
    assert caught.value.exit_code == 4
    check_integrity(path)
    with open_store(path) as store:
        assert store.load(INFO.id).outcomes == (first, second)
    assert sorted(one.name for one in path.parent.iterdir() if one.name != ".gitignore") == ["results.db"]


def test_what_is_removed_behind_the_last_result_is_noticed_when_the_store_is_closed(path: Path) -> None:
    store = open_store(path, create=True)
    store.add(make_run())
    path.unlink()
    with pytest.raises(StoreLost, match="saved again in"):
        store.close()
    with open_store(path, read_only=True) as store:
        assert store.load(INFO.id, profiles=True) == make_run()


def test_a_recorder_that_has_nothing_more_to_save_notices_it_too(path: Path) -> None:
    with open_store(path, create=True) as store:
        with pytest.raises(StoreLost), store.begin(PLAN, INFO):
            path.unlink()
        assert len(store.list_runs()) == 1


def read_kept(lost: StoreLost) -> Run:
    """The run in the file that an error says everything was saved in."""
    with open_store(Path(str(lost).rpartition("--store ")[2]), read_only=True) as saved:
        return saved.load(INFO.id, profiles=True)


def test_what_has_taken_the_place_of_a_store_stays_as_it_is(path: Path) -> None:
    store = open_store(path, create=True)
    store.add(make_run())
    path.unlink()
    # It gets the log of the old one out of the way.
    open_store(path, create=True).close()
    other = path.read_bytes()
    with pytest.raises(StoreLost, match=r"saved again in \S+results\.db\.left-[0-9a-f]{8}\. ") as caught:
        store.close()
    assert path.read_bytes() == other
    assert read_kept(caught.value) == make_run()


def test_what_was_saved_is_kept_elsewhere_where_another_process_has_begun_another_log(path: Path) -> None:
    store = open_store(path, create=True)
    store.add(make_run())
    os.unlink(f"{path}-wal")
    Path(f"{path}-wal").write_bytes(b"of another process")
    with pytest.raises(StoreLost, match="saved again in") as caught:
        store.close()
    assert read_kept(caught.value) == make_run()


def test_if_nothing_can_be_saved_again_that_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(path, create=True)
    store.add(make_run())
    path.unlink()

    def refuse(self: Store, *_: object, **__: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("torchmark.store.database.Database._save_again", refuse)
    with pytest.raises(StoreLost, match=r"could not be saved again .*No space left.*Results are lost"):
        store.close()


def test_a_store_that_nobody_touches_is_closed_in_silence(path: Path) -> None:
    with open_store(path, create=True) as store, open_store(path) as other:
        store.add(make_run())
        # A checkpoint of somebody else's changes files, and not which ones they are.
        other._database.shrink()
        assert len(store.list_runs()) == 1
        store.remove([INFO.id])
    assert [one.name for one in path.parent.iterdir() if one.name != ".gitignore"] == ["results.db"]


def test_what_was_saved_is_kept_elsewhere_where_somebody_reads_the_log_that_is_gone(path: Path) -> None:
    store = open_store(path, create=True)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM runs").fetchall()
    store.add(make_run())
    store._database._connection.execute("PRAGMA busy_timeout = 1")
    os.unlink(f"{path}-wal")
    with pytest.raises(StoreLost, match="saved again in") as caught:
        store.close()
    reader.close()
    assert read_kept(caught.value) == make_run()
