from __future__ import annotations

import errno
import fcntl
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stored_runs import GOLDEN, INFO, make_run
from torchmark.errors import StoreError
from torchmark.store import schema
from torchmark.store.runs import open_store

STORE = GOLDEN / "store_v1.db"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A copy of a store with a run in it, alone in its folder."""
    copy = tmp_path / "store" / "results.db"
    copy.parent.mkdir()
    shutil.copy(STORE, copy)
    return copy


def change(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def overwrite(offset: int, content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[offset : offset + len(content)] = content
        path.write_bytes(data)

    return write


def make_foreign(path: Path) -> None:
    path.unlink()
    change(path, "CREATE TABLE t (x)", "PRAGMA user_version = 1")


TRIGGER = "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END"
VIEW = "CREATE VIEW v AS SELECT load_extension('x')"

NO_STORES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a text": (lambda path: (path.write_text("notes\n" * 100), None)[1], "no store of torchmark's"),
    "a short text": (lambda path: (path.write_text("notes"), None)[1], "no store of torchmark's"),
    "another program's database": (make_foreign, "no store of torchmark's"),
    "version zero": (overwrite(60, bytes(4)), "no store of torchmark's"),
    "a newer store": (lambda path: change(path, "PRAGMA user_version = 99"), "newer torchmark: its version is 99"),
    "a store with a trigger": (lambda path: change(path, TRIGGER), "no store of torchmark's"),
    "a store with a view": (lambda path: change(path, VIEW), "no store of torchmark's"),
    "a store that lacks an index": (lambda path: change(path, "DROP INDEX parts_by_blob"), "no store of torchmark's"),
    "a store that is cut off": (lambda path: (path.write_bytes(STORE.read_bytes()[:50_000]), None)[1], "damaged"),
    "a store of garbage": (overwrite(200, b"\xff" * 4000), "damaged"),
    "a store whose tables are garbage": (overwrite(4096 * 3, b"\xff" * 4096 * 20), "damaged"),
}


@pytest.mark.parametrize("name", NO_STORES)
def test_what_is_no_store_is_refused_and_left_as_it_is(name: str, path: Path) -> None:
    spoil, told = NO_STORES[name]
    spoil(path)
    before = path.read_bytes()
    for create in (False, True):
        with pytest.raises(StoreError, match=told) as caught:
            open_store(path, create=create)
        assert str(path) in str(caught.value)
    with pytest.raises(StoreError), open_store(path, read_only=True) as store:
        store.load(INFO.id, profiles=True)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_statistics_of_sqlites_own_do_no_harm(path: Path) -> None:
    change(path, "ANALYZE")
    with open_store(path) as store:
        assert len(store.list_runs()) == 1


def test_a_store_is_made_with_its_folder_and_not_committed_by_accident(tmp_path: Path) -> None:
    path = tmp_path / "a" / ".torchmark" / "results.db"
    with pytest.raises(StoreError, match="There is no store at"):
        open_store(path)
    with open_store(path, create=True) as store:
        assert store.list_runs() == ()
    assert (path.parent / ".gitignore").read_text() == "*\n"
    assert sorted(file.name for file in path.parent.iterdir()) == [".gitignore", "results.db"]
    with open_store(path, create=True) as store:
        store.add(make_run())
    with open_store(path, read_only=True) as store:
        assert len(store.list_runs()) == 1


def test_a_folder_of_the_users_own_gets_nothing_but_the_store(tmp_path: Path) -> None:
    open_store(tmp_path / "results.db", create=True).close()
    assert [file.name for file in tmp_path.iterdir()] == ["results.db"]


def test_an_empty_file_becomes_a_store_only_if_one_is_to_be_made(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    path.touch()
    with pytest.raises(StoreError, match="is empty"):
        open_store(path)
    assert path.stat().st_size == 0
    open_store(path, create=True).close()
    open_store(path).close()


def test_a_link_to_a_store_stays_one(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "real.db")
    open_store(link, create=True).close()
    assert link.is_symlink()
    open_store(tmp_path / "real.db").close()


def test_what_cannot_be_made_or_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match=r"cannot be made: (Not a directory|File exists)"):
        open_store(tmp_path / "file" / "results.db", create=True)
    with pytest.raises(StoreError, match="cannot be read: Is a directory"):
        open_store(tmp_path)


@pytest.fixture
def unwritable(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing could be written, which cannot be arranged for those who may do everything."""
    monkeypatch.setattr("os.access", lambda *_: False)


def test_a_store_that_cannot_be_written_can_be_read(path: Path, unwritable: None) -> None:
    with pytest.raises(StoreError, match="cannot be written"):
        open_store(path)
    with open_store(path, read_only=True) as store:
        assert store.load(INFO.id, profiles=True) == make_run()
        assert list(path.parent.iterdir()) == [path]


def test_what_a_process_is_writing_is_not_taken_for_a_file_that_does_not_change(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(path) as writer:
        writer.remove([INFO.id])
        writer.add(make_run())
        monkeypatch.setattr("os.access", lambda *_: False)
        with open_store(path, read_only=True) as store:
            assert store.load(INFO.id, profiles=True) == make_run()


def test_whoever_reads_cannot_write(path: Path) -> None:
    before = path.read_bytes()
    with open_store(path, read_only=True) as store, pytest.raises(StoreError, match="reading only"):
        store.remove([INFO.id])
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_settings_are_those_that_keep_what_is_saved(path: Path) -> None:
    with open_store(path) as store:
        settings = {
            name: store._database.rows(f"PRAGMA {name}")[0][0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "trusted_schema", "auto_vacuum", "busy_timeout")
        }
    assert settings == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "trusted_schema": 0,
        "auto_vacuum": 2,
        "busy_timeout": 30_000,
    }
    header = path.read_bytes()
    assert header[68:72] == schema.APPLICATION_ID.to_bytes(4, "big")


def test_a_store_is_made_where_files_cannot_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with open_store(tmp_path / "results.db", create=True) as store:
        assert list(store.list_runs()) == []
