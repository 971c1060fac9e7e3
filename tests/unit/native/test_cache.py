from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path

import pytest

from tests.strangers import give_away
from torchmark.errors import SetupError, UsageError
from torchmark.native.cache import TOUCH_INTERVAL_S, Cache, note_headers, parse_size

KEYS = ["a" * 32, "b" * 32]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "unit.so"
    path.write_bytes(b"a library" * 100)
    return path


def test_what_is_published_is_found_by_each_of_its_keys(tmp_path: Path, library: Path) -> None:
    cache = Cache(tmp_path / "cache")
    cache.publish(library, {}, KEYS)
    paths = [cache.path(key) for key in KEYS]
    for key, path in zip(KEYS, paths, strict=True):
        assert Cache(tmp_path / "cache").find(key) == path
        assert path.read_bytes().startswith(library.read_bytes())
    assert cache.find("c" * 32) is None
    usage = cache.measure()
    assert (usage.snippets, usage.libraries) == (2, 1)
    assert usage.size_bytes == paths[0].stat().st_size


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b"", lambda b: b[:40] + b"x" + b[41:], lambda b: b + b"x"]
)
def test_a_damaged_entry_is_none(tmp_path: Path, library: Path, damage: object) -> None:
    cache = Cache(tmp_path / "cache")
    cache.publish(library, {}, KEYS[:1])
    path = cache.path(KEYS[0])
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    assert Cache(tmp_path / "cache").find(KEYS[0]) is None
    # It is replaced as if it was not there.
    cache.publish(library, {}, KEYS[:1])
    assert Cache(tmp_path / "cache").find(KEYS[0]) == path


def test_an_entry_whose_header_changed_is_none(tmp_path: Path, library: Path) -> None:
    header, other = tmp_path / "my header.h", tmp_path / "other.h"
    header.write_text("int a;")
    other.write_text("int b;")
    os.utime(header, (1000, 1000))
    os.utime(other, (1000, 1000))
    folder = tmp_path / "cache"
    Cache(folder).publish(library, note_headers([str(header), str(other)], 2000 * 10**9), KEYS[:1])
    assert Cache(folder).find(KEYS[0])
    os.utime(header, (1001, 1001))
    assert Cache(folder).find(KEYS[0]) is None
    os.utime(header, (1000, 1000))
    assert Cache(folder).find(KEYS[0])
    other.unlink()
    assert Cache(folder).find(KEYS[0]) is None


def test_a_header_that_changed_while_it_was_read_never_fits(tmp_path: Path, library: Path) -> None:
    header = tmp_path / "a.h"
    header.write_text("")
    os.utime(header, (1000, 1000))
    Cache(tmp_path / "cache").publish(library, note_headers([str(header)], 1000 * 10**9), KEYS[:1])
    assert Cache(tmp_path / "cache").find(KEYS[0]) is None


def test_the_oldest_make_room_and_use_keeps_young(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", limit_bytes=3500)
    for i in range(3):
        library = tmp_path / f"{i}.so"
        library.write_bytes(bytes([i]) * 1000)
        cache.publish(library, {}, [f"{i:032x}"])
        path = cache.path(f"{i:032x}")
        age = 10 * TOUCH_INTERVAL_S - i
        os.utime(path, (path.stat().st_mtime - age,) * 2)
    assert cache.find(f"{0:032x}")
    (tmp_path / "3.so").write_bytes(b"3" * 1000)
    cache.publish(tmp_path / "3.so", {}, [f"{3:032x}"])
    cache.evict()
    assert [i for i in range(4) if cache.find(f"{i:032x}")] == [0, 2, 3]


def test_what_was_just_made_stays_however_large(tmp_path: Path, library: Path) -> None:
    cache = Cache(tmp_path / "cache", limit_bytes=10)
    cache.publish(library, {}, KEYS)
    cache.evict(spared=[cache.path(KEYS[0])])
    assert cache.find(KEYS[1])


def test_clearing_leaves_nothing_and_says_what_there_was(tmp_path: Path, library: Path) -> None:
    cache = Cache(tmp_path / "cache")
    cache.publish(library, {}, KEYS)
    assert cache.clear().snippets == 2
    assert list((tmp_path / "cache").iterdir()) == []
    assert cache.clear().snippets == 0


def test_the_workshops_of_the_dead_are_removed_and_those_of_the_living_are_not(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    left = tmp_path / "making-left_abc"
    left.mkdir()
    (left / "owner").touch()
    half_removed = tmp_path / "making-half_abc"
    half_removed.mkdir()
    with cache.workshop() as one, cache.workshop() as two:
        assert one.exists()
        assert two.exists()
        assert not left.exists()
        assert not half_removed.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="TORCHMARK_CACHE"), Cache(tmp_path / "file" / "cache").workshop():
        pass


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("1024", 1024), ("1k", 1024), ("1.5 GiB", 3 * 2**29), ("2MB", 2**21)]
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1", "1X", "nan", "inf", "G"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        parse_size(text)


def test_a_prelude_is_found_once_it_is_complete(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    name = "c" * 32
    header = cache.begin_prelude(name, "#include <vector>")
    assert cache.find_prelude(name) is None
    (tmp_path / "prelude.gch").write_bytes(b"compiled")
    cache.publish_prelude(name, tmp_path / "prelude.gch", {str(tmp_path / "gone.h"): (1, 2)})
    # Its header is not there.
    assert cache.find_prelude(name) is None
    (tmp_path / "prelude.gch").write_bytes(b"compiled")
    cache.publish_prelude(name, tmp_path / "prelude.gch", {})
    found = cache.find_prelude(name)
    assert found is not None
    assert found.header == header
    assert cache.measure().preludes == 1
    assert cache.clear().preludes == 1
    assert cache.find_prelude(name) is None


def test_who_is_in_a_hurry_does_not_wait_for_another_that_makes_the_same(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    looks = iter((False, True))
    with cache.turn("unit"), cache.turn("unit", lambda: next(looks)):
        pass
    assert next(looks, None) is None


@pytest.mark.parametrize("fault", ["owner", "mode", "link"])
def test_an_entry_that_others_may_have_written_is_none(
    tmp_path: Path, library: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path / "cache")
    cache.publish(library, {}, KEYS[:1])
    path = cache.path(KEYS[0])
    assert cache.find(KEYS[0]) == path
    if fault == "owner":
        give_away(path, monkeypatch)
    elif fault == "mode":
        path.chmod(0o666)
    else:
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    assert Cache(tmp_path / "cache").find(KEYS[0]) is None


def test_a_prelude_that_others_may_have_written_is_none(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    header = cache.begin_prelude(KEYS[0], "#include <vector>")
    (tmp_path / "prelude.gch").write_bytes(b"compiled")
    cache.publish_prelude(KEYS[0], tmp_path / "prelude.gch", {})
    assert cache.find_prelude(KEYS[0]) is not None
    header.with_name("prelude.h.gch").chmod(0o666)
    assert cache.find_prelude(KEYS[0]) is None


def test_what_has_another_kind_of_name_is_not_removed(tmp_path: Path, library: Path) -> None:
    cache = Cache(tmp_path / "cache", limit_bytes=0)
    cache.publish(library, {}, KEYS)
    users = [tmp_path / "cache" / name for name in ("mylib.so", "making-of", "new-ideas", "door.lock", "my.prelude")]
    for path in users:
        path.mkdir()
    cache.evict()
    cache.clear()
    assert sorted((tmp_path / "cache").iterdir()) == sorted(users)


def test_a_header_from_the_future_fits_until_it_changes(tmp_path: Path, library: Path) -> None:
    header = tmp_path / "a.h"
    header.write_text("")
    tomorrow = time.time() + 86400
    os.utime(header, (tomorrow, tomorrow))
    Cache(tmp_path / "cache").publish(library, note_headers([str(header)], time.time_ns()), KEYS[:1])
    assert Cache(tmp_path / "cache").find(KEYS[0])
    os.utime(header, (tomorrow + 1, tomorrow + 1))
    assert Cache(tmp_path / "cache").find(KEYS[0]) is None


def test_without_locks_entries_are_made_and_work_of_the_dead_goes_after_a_day(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    cache = Cache(tmp_path / "cache")
    with cache.turn(KEYS[0]):
        cache.publish(library, {}, KEYS)
    assert cache.find(KEYS[0])
    for name, age_s in (("making-left_old", 90000), ("making-left_new", 9000)):
        (cache.folder / name).mkdir()
        (cache.folder / name / "owner").touch(0o600)
        os.utime(cache.folder / name, (time.time() - age_s,) * 2)
    with cache.workshop():
        assert not (cache.folder / "making-left_old").exists()
        assert (cache.folder / "making-left_new").exists()
