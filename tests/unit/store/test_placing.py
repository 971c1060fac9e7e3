from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.store_writer import check_integrity
from tests.stored_runs import INFO, make_run
from torchmark.errors import StoreError, UsageError
from torchmark.store.merge import new_store, refuse_same
from torchmark.store.runs import Store, open_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a run in it."""
    with open_store(tmp_path / "results.db", create=True) as store:
        store.add(make_run())
    return tmp_path / "results.db"


def list_runs(path: Path) -> list[str]:
    with open_store(path, read_only=True) as store:
        return [info.id for info in store.list_runs()]


def test_a_store_is_there_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / ".torchmark" / "new.db"
    with new_store(path, force=False) as database:
        Store(database).add(make_run())
        assert not path.exists()
    assert list_runs(path) == [INFO.id]
    check_integrity(path)
    assert sorted(one.name for one in path.parent.iterdir()) == [".gitignore", "new.db"]


@pytest.mark.parametrize("force", [False, True])
def test_if_anything_goes_wrong_nothing_has_happened(force: bool, path: Path) -> None:
    path = path if force else path.with_name("new.db")
    before = sorted(path.parent.iterdir())
    with pytest.raises(ZeroDivisionError), new_store(path, force=force):
        raise ZeroDivisionError
    assert sorted(path.parent.iterdir()) == before


def test_a_name_that_is_taken_is_refused_unless_it_is_to_be_replaced(path: Path) -> None:
    with pytest.raises(UsageError, match="is there already"), new_store(path, force=False):
        raise AssertionError("not reached")
    link = path.with_name("link.db")
    link.symlink_to(path)
    with new_store(link, force=True):
        assert list_runs(path) == [INFO.id]
    assert list_runs(path) == []
    assert link.is_symlink()
    assert sorted(one.name for one in path.parent.iterdir()) == ["link.db", "results.db"]


def test_what_came_to_be_in_the_meantime_stays(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is there already"), new_store(tmp_path / "new.db", force=False):
        (tmp_path / "new.db").write_text("mine")
    assert [one.name for one in tmp_path.iterdir()] == ["new.db"]


def test_what_is_no_store_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(StoreError, match="no store of torchmark's"), new_store(tmp_path / "notes", force=True):
        raise AssertionError("not reached")
    with pytest.raises(UsageError, match="is a folder"), new_store(tmp_path, force=True):
        raise AssertionError("not reached")
    (tmp_path / "empty").touch()
    with new_store(tmp_path / "empty", force=True):
        pass
    assert list_runs(tmp_path / "empty") == []


def test_a_store_that_is_in_use_is_not_replaced(path: Path) -> None:
    with open_store(path) as store:
        store.list_runs()
        with pytest.raises(UsageError, match="is in use"), new_store(path, force=True):
            pass
    assert list_runs(path) == [INFO.id]


def test_what_a_store_that_is_gone_has_left_does_not_get_into_the_new_one(path: Path) -> None:
    with open_store(path) as old:
        with old._database.transaction():
            old._database.change("DELETE FROM runs")
        log = Path(f"{path}-wal").read_bytes()
    path.unlink()
    Path(f"{path}-wal").write_bytes(log)
    Path(f"{path}-shm").write_bytes(bytes(32768))
    with new_store(path, force=False) as database:
        Store(database).add(make_run())
    assert list_runs(path) == [INFO.id]
    # It may have somebody's results in it.
    (left,) = (one for one in path.parent.iterdir() if one != path)
    assert left.name.startswith("results.db-wal.left-")
    assert left.read_bytes() == log


def test_what_is_not_an_ordinary_file_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="not an ordinary file"), new_store(tmp_path / "pipe", force=True):
        raise AssertionError("not reached")
    assert (tmp_path / "pipe").is_fifo()


def test_a_file_that_is_read_is_not_written_however_it_is_spelt(path: Path) -> None:
    path.with_name("link.db").symlink_to(path)
    os.link(path, path.with_name("hard.db"))
    for name in ("results.db", "link.db", "hard.db", "../" + path.parent.name + "/results.db"):
        with pytest.raises(UsageError, match="one of the stores that are read"):
            refuse_same(path.parent / name, [path.with_name("hard.db"), path])
    refuse_same(path.with_name("new.db"), [path])


def test_a_folder_that_cannot_be_written_is_told_by_the_name_that_was_meant(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "new.db"
    with pytest.raises(StoreError, match=r"file/new\.db: It cannot be made"), new_store(path, force=False):
        raise AssertionError("not reached")
