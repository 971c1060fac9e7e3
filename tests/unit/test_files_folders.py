from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.strangers import give_away
from torchmark import files
from torchmark.files import TAG, MachineLock, cache_folder, locate_cache, lock_folder


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_told", set())
    monkeypatch.setattr(files, "_private", {})


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
    assert locate_cache(environ) == Path(expected)


@pytest.mark.parametrize("home", ["", "relative", None])
def test_without_a_usable_home_in_the_environment_that_of_the_password_database_counts(
    home: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = pwd.struct_passwd(("me", "x", os.geteuid(), 0, "", str(tmp_path), ""))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: entry)
    assert locate_cache({} if home is None else {"HOME": home}) == tmp_path / ".cache/torchmark"


def test_without_any_home_nothing_is_kept_and_that_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", refuse)
    folder = cache_folder({"HOME": "relative"})
    assert folder.is_relative_to(tempfile.gettempdir())
    assert "TORCHMARK_CACHE" in capsys.readouterr().err
    shutil.rmtree(folder)


def test_a_folder_that_is_new_or_empty_is_the_cache_and_stays_so(tmp_path: Path) -> None:
    for folder in (tmp_path / "new" / "one", tmp_path / "empty"):
        if folder.name == "empty":
            folder.mkdir()
        environ = {"TORCHMARK_CACHE": str(folder)}
        assert cache_folder(environ) == folder
        assert (folder / TAG).read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
        assert folder.stat().st_mode & 0o077 == 0 or folder.name == "empty"
        (folder / "of the user").touch()
        assert cache_folder(environ) == folder


@pytest.mark.parametrize("names", [["thesis.tex"], ["models", "snippets"], ["CACHEDIR.TAG"], ["models.lock", "notes"]])
def test_in_a_folder_with_other_things_the_cache_is_a_folder_of_its_own(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text("Signature: of another program")
    assert cache_folder({"TORCHMARK_CACHE": str(tmp_path)}) == tmp_path / "torchmark"


@pytest.mark.parametrize("name", ["models.lock", f"watched-{'0a' * 8}.so", f"lowering-{'0a' * 8}"])
def test_a_cache_of_an_earlier_version_is_found_again(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    (tmp_path / "snippets").mkdir()
    assert cache_folder({"TORCHMARK_CACHE": str(tmp_path)}) == tmp_path


@pytest.mark.parametrize("fault", ["owner", "mode", "owner of a folder below"])
def test_a_cache_that_others_can_write_is_not_used_and_that_is_told_once(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = tmp_path / "cache"
    environ = {"TORCHMARK_CACHE": str(cache)}
    assert cache_folder(environ) == cache
    (cache / "snippets").mkdir()
    if fault == "mode":
        cache.chmod(0o777)
    else:
        give_away(cache if fault == "owner" else cache / "snippets", monkeypatch)
    private = cache_folder(environ)
    assert private != cache
    assert private.stat().st_mode & 0o077 == 0
    assert cache_folder(environ) == private
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert f"The cache {cache} is not used" in told
    assert "name a folder of your own in TORCHMARK_CACHE" in told
    files._remove_private(private, os.getpid() + 1)
    assert private.exists()
    files._remove_private(private, os.getpid())
    assert not private.exists()


def test_locks_lie_in_a_folder_that_nobody_else_can_look_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = lock_folder()
    assert folder == tmp_path / f"torchmark-{os.geteuid()}"
    assert folder is not None
    assert folder.stat().st_mode & 0o077 == 0
    assert lock_folder() == folder


@pytest.mark.parametrize("trap", ["link", "open", "file"])
def test_a_folder_for_locks_that_somebody_else_has_made_is_not_used(
    trap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    temporary, runtime = tmp_path / "tmp", tmp_path / "run"
    temporary.mkdir()
    runtime.mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    path = temporary / f"torchmark-{os.geteuid()}"
    if trap == "link":
        path.symlink_to(runtime)
    elif trap == "open":
        path.mkdir()
        path.chmod(0o777)
    else:
        path.touch()
    assert lock_folder() is None
    assert str(path) in capsys.readouterr().err
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    assert lock_folder() == runtime / "torchmark"
    runtime.chmod(0o777)
    assert lock_folder() is None


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
    "import sys; from pathlib import Path; from torchmark.files import MachineLock\n"
    "turns = MachineLock(Path(sys.argv[1])); turns.claim(); print(flush=True); input()"
)


def test_whoever_waits_long_is_told_for_which_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "TELLING_AFTER_S", 0.0)
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
        monkeypatch.setattr(files, "LONGEST_WAIT_FOR_UNSEEN_S", 0.0)
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
    monkeypatch.setattr(files, "TELLING_AFTER_S", 0.0)
    # It is this process, which is none of those that are waited for.
    assert not two.claim()
    assert "in another container" in told[-1]
    monkeypatch.setattr(files, "LONGEST_WAIT_FOR_UNSEEN_S", 0.0)
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
