from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.stored_runs import GOLDEN, INFO, make_run
from torchmark.errors import StoreError
from torchmark.store import store_file
from torchmark.store.runs import Store, open_store

STORES = sorted(GOLDEN.glob("store_v*.db"))


def add_a_column(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT 'none'")


def fail_halfway(connection: sqlite3.Connection) -> None:
    add_a_column(connection)
    connection.execute("no SQL at all")


def read_notes(store: Store) -> list[tuple[object, ...]]:
    return store._database.rows("SELECT note FROM runs")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(shutil.copy(GOLDEN / "store_v1.db", tmp_path / "results.db"))


@pytest.fixture
def version_2(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torchmark of the future."""
    monkeypatch.setattr(store_file, "STEPS", (*store_file.STEPS, add_a_column))


def test_there_is_a_store_of_every_version() -> None:
    assert [path.name for path in STORES] == [f"store_v{n}.db" for n in range(1, store_file.SCHEMA_VERSION + 1)]


@pytest.mark.parametrize("path", STORES, ids=lambda path: path.stem)
def test_stores_of_every_version_are_read_and_stay_as_they_are(path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    with open_store(path, read_only=True) as store:
        assert store.load(INFO.id, profiles=True) == make_run()
        assert store.list_runs() == (make_run().info,)
    assert path.read_bytes() == before
    with open_store(Path(shutil.copy(path, tmp_path))) as store:
        assert store.load(INFO.id, profiles=True) == make_run()


def test_an_older_store_is_brought_up_to_date_when_it_is_opened_for_writing(path: Path, version_2: None) -> None:
    with open_store(path) as store:
        assert read_notes(store) == [("none",)]
        assert store.load(INFO.id, profiles=True) == make_run()
    assert int.from_bytes(path.read_bytes()[60:64], "big") == 2
    with open_store(path) as store:
        assert read_notes(store) == [("none",)]


def test_an_older_store_that_is_only_read_stays_as_it_is(path: Path, version_2: None) -> None:
    before = path.read_bytes()
    with open_store(path, read_only=True) as store:
        assert read_notes(store) == [("none",)]
        assert store.load(INFO.id, profiles=True) == make_run()
        with pytest.raises(StoreError, match="reading only"):
            store.remove([INFO.id])
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_new_stores_and_those_brought_up_to_date_are_alike(path: Path, tmp_path: Path, version_2: None) -> None:
    open_store(path).close()
    open_store(tmp_path / "new.db", create=True).close()
    one, two = (sqlite3.connect(file) for file in (path, tmp_path / "new.db"))
    assert store_file.read_objects(one) == store_file.read_objects(two) == store_file.expect_objects(store_file.STEPS)
    one.close()
    two.close()


def test_a_step_that_fails_leaves_the_version_before(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(store_file, "STEPS", (*store_file.STEPS, fail_halfway))
        with pytest.raises(StoreError, match="syntax error"):
            open_store(path)
    with open_store(path) as store:
        assert store.load(INFO.id, profiles=True) == make_run()


def test_the_program_of_before_refuses_what_was_brought_up_to_date(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(store_file, "STEPS", (*store_file.STEPS, add_a_column))
        open_store(path).close()
    with pytest.raises(StoreError, match="newer torchmark"):
        open_store(path, read_only=True)
