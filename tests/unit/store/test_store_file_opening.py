from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.store_writer import write_journal
from tests.stored_runs import GOLDEN, INFO, make_run
from torchmark.errors import StoreError
from torchmark.store import store_file
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


def define(path: Path, name: str, sql: str) -> None:
    """Put something into the schema as only a program could that means harm."""
    row = f"INSERT INTO sqlite_master VALUES ('table', '{name}', '{name}', 0, '{sql}')"
    change(path, "PRAGMA writable_schema = ON", row)


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
    "a store whose statistics are a virtual table": (
        lambda path: define(path, "sqlite_stat1", "CREATE VIRTUAL TABLE sqlite_stat1 USING fts5(tbl,idx,stat)"),
        "no store of torchmark's",
    ),
    "a store with statistics that SQLite does not make": (
        lambda path: define(path, "sqlite_stat9", "CREATE VIRTUAL TABLE sqlite_stat9 USING fts5(x)"),
        "no store of torchmark's",
    ),
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
    assert header[68:72] == store_file.APPLICATION_ID.to_bytes(4, "big")


def test_a_store_is_made_where_files_cannot_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with open_store(tmp_path / "results.db", create=True) as store:
        assert list(store.list_runs()) == []


def list_tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    """All files below a folder with what is in them, and when they were written."""
    return {
        str(path): (path.read_bytes() if path.is_file() else b"", path.lstat().st_mtime_ns)
        for path in (folder, *folder.rglob("*"))
    }


@contextlib.contextmanager
def left_by_a_kill(path: Path) -> Iterator[None]:
    """A store whose last run is in its log only, as a process leaves it that is killed."""
    with open_store(path) as writer:
        writer.add(make_run())
        kept = {suffix: Path(f"{path}{suffix}").read_bytes() for suffix in ("", "-wal", "-shm")}
    for suffix, content in kept.items():
        Path(f"{path}{suffix}").write_bytes(content)
    assert kept["-wal"]
    yield


@pytest.mark.parametrize("mode", [{"read_only": True}, {}, {"create": True}])
def test_a_journal_that_could_delete_other_files_is_refused(mode: dict[str, bool], path: Path, tmp_path: Path) -> None:
    victim = tmp_path / "thesis.txt"
    victim.write_text("precious")
    write_journal(path, victim)
    before = list_tree(tmp_path)
    with pytest.raises(StoreError, match=r"results\.db-journal beside it.*move that file away"):
        open_store(path, **mode)
    assert list_tree(tmp_path) == before


@pytest.mark.parametrize("mode", [{"read_only": True}, {}])
def test_an_empty_journal_does_no_harm(mode: dict[str, bool], path: Path) -> None:
    Path(f"{path}-journal").touch()
    with open_store(path, **mode) as store:
        assert store.load(INFO.id, profiles=True) == make_run()


def test_reading_changes_nothing_not_even_beside_a_store_that_a_kill_has_left(tmp_path: Path) -> None:
    path = tmp_path / "store" / "results.db"
    open_store(path, create=True).close()
    with left_by_a_kill(path):
        before = list_tree(path.parent)
        with open_store(path, read_only=True) as store:
            assert store.load(INFO.id, profiles=True) == make_run()
        assert list_tree(path.parent) == before
    with open_store(path) as store:
        assert store.load(INFO.id, profiles=True) == make_run()


def test_a_copy_that_is_read_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with open_store(path) as writer:
        writer.remove([INFO.id])
        writer.add(make_run())
        with open_store(path, read_only=True) as store:
            # Also if the process is killed now.
            assert list((tmp_path / "temporary").iterdir()) == []
            assert store.load(INFO.id, profiles=True) == make_run()
        with pytest.MonkeyPatch.context() as full:
            full.setattr("shutil.disk_usage", lambda _: shutil._ntuple_diskusage(9, 9, 0))
            with pytest.raises(StoreError, match=r"no room.*TMPDIR"):
                open_store(path, read_only=True)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_store_is_copied_again_if_its_log_was_begun_anew_meanwhile(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_file, "COPY_PAUSE_S", 0.0)
    copy_file, changes = store_file._copy_file, iter([True])

    def disturb(source: Path, copy: Path) -> None:
        copy_file(source, copy)
        if source == path and next(changes, False):
            # The copy of the store is of before this, its log of after.
            writer._database._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            writer.add(make_run())

    with open_store(path) as writer:
        writer.remove([INFO.id])
        with writer._database.transaction():
            writer._database.change("INSERT INTO subjects (name) VALUES ('x')")
        monkeypatch.setattr(store_file, "_copy_file", disturb)
        with open_store(path, read_only=True) as store:
            assert store.load(INFO.id, profiles=True) == make_run()
        changes = iter([True] * 1000)
        monkeypatch.setattr(store_file, "_read_log_header", lambda _: os.urandom(32))
        monkeypatch.setattr(store_file, "_copy_file", copy_file)
        with pytest.raises(StoreError, match=r"keeps changing.*Try again"):
            open_store(path, read_only=True)


def test_what_was_read_of_a_store_that_changed_meanwhile_is_not_given_out(path: Path) -> None:
    with open_store(path, read_only=True) as store:
        assert len(store.list_runs()) == 1
        # Another file of that name is no concern of who reads the old one.
        shutil.copy(path, path.with_name("new.db"))
        os.rename(path, path.with_name("old.db"))
        os.rename(path.with_name("new.db"), path)
        assert len(store.list_runs()) == 1
    with open_store(path, read_only=True) as store:
        with open_store(path) as writer:
            writer.remove([INFO.id])
        with pytest.raises(StoreError, match=r"changed the store while it was being read\. Try again"):
            store.list_runs()


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder"])
@pytest.mark.parametrize("read_only", [True, False])
def test_what_is_beside_a_store_and_is_not_an_ordinary_file_is_refused(
    suffix: str, kind: str, read_only: bool, path: Path, tmp_path: Path
) -> None:
    beside = Path(f"{path}{suffix}")
    victim = tmp_path / "victim"
    if kind == "pipe":
        os.mkfifo(beside)
    elif kind == "folder":
        beside.mkdir()
    else:
        beside.symlink_to(victim)
        if kind == "link":
            victim.write_text("precious")
    with pytest.raises(StoreError, match=f"results.db{suffix} is not an ordinary file"):
        open_store(path, read_only=read_only)
    assert not victim.exists() or victim.read_text() == "precious"


@pytest.mark.parametrize("mode", [{"read_only": True}, {}, {"create": True}])
def test_a_pipe_in_the_place_of_a_store_is_neither_waited_for_nor_replaced(
    mode: dict[str, bool], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "results.db")
    with pytest.raises(StoreError, match="not an ordinary file"):
        open_store(tmp_path / "results.db", **mode)
    assert [one.name for one in tmp_path.iterdir() if one.is_fifo()] == ["results.db"]


def test_what_an_earlier_store_has_left_does_not_get_into_a_new_one(path: Path) -> None:
    with left_by_a_kill_of_a_removed_store(path):
        log = Path(f"{path}-wal").read_bytes()
        Path(f"{path}-journal").write_text("x")
        with open_store(path, create=True) as store:
            assert store.list_runs() == ()
            assert sorted(one.name.rpartition(".left-")[0] for one in store.left) == [
                "results.db-journal",
                "results.db-wal",
            ]
            assert store.left[0].read_bytes() == log
            store.add(make_run())
        with open_store(path, create=True) as store:
            assert store.left == ()
            assert store.load(INFO.id, profiles=True) == make_run()


@contextlib.contextmanager
def left_by_a_kill_of_a_removed_store(path: Path) -> Iterator[None]:
    path.unlink()
    open_store(path, create=True).close()
    with left_by_a_kill(path):
        path.unlink()
        yield


def test_a_path_that_sqlite_cannot_hold_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    room = store_file.LONGEST_PATH - len(os.fsencode(tmp_path))
    folder = tmp_path.joinpath(*["d" * 60] * (room // 61), "e" * (room % 61 - 2 or 1))
    folder = Path(str(folder)[: store_file.LONGEST_PATH - 23].rstrip("/"))
    longest = folder / "r".ljust(store_file.LONGEST_PATH - len(str(folder)) - 1, "r")
    with open_store(longest, create=True) as store:
        store.add(make_run())
    with open_store(longest, read_only=True) as store:
        assert len(store.list_runs()) == 1
    before = list_tree(tmp_path)
    for name in (f"{longest.name}r", f"deeper/{'r' * 100}"):
        for mode in ({"create": True}, {"read_only": True}):
            with pytest.raises(StoreError, match=r"path has \d+ bytes.*shorter path"):
                open_store(folder / name, **mode)
    assert list_tree(tmp_path) == before


def test_a_copy_that_is_not_in_wal_mode_can_be_written_and_is_from_then_on(path: Path) -> None:
    change(path, "PRAGMA journal_mode = DELETE")
    assert path.read_bytes()[18:20] == b"\1\1"
    with open_store(path, read_only=True) as store:
        assert len(store.list_runs()) == 1
    with open_store(path) as store:
        store.remove([INFO.id])
    assert path.read_bytes()[18:20] == b"\2\2"
