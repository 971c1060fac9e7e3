from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchmark.store.runs import KEY_BYTES, is_sealed, seal

WHAT = ["run", ["/a", "b\udcff"]]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def key(environ: dict[str, str]) -> Path:
    """The file, after something was sealed."""
    assert seal(WHAT, environ)
    return Path(environ["XDG_STATE_HOME"], "torchmark", "seal.key")


def test_a_seal_holds_for_the_same_values_and_for_no_others(environ: dict[str, str]) -> None:
    made = seal(WHAT, environ)
    assert is_sealed(made, WHAT, environ)
    assert not is_sealed(made, ["run", ["/a", "c"]], environ)
    assert not is_sealed("", WHAT, environ)


def test_the_key_is_for_the_user_alone_and_is_made_once(environ: dict[str, str], key: Path) -> None:
    content = key.read_bytes()
    assert len(content) == KEY_BYTES
    assert (key.stat().st_mode & 0o777, key.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert os.listdir(key.parent) == [key.name]
    seal(WHAT, environ)
    assert key.read_bytes() == content


def test_another_key_or_another_machine_makes_another_seal(environ: dict[str, str], key: Path, tmp_path: Path) -> None:
    made = seal(WHAT, environ)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/machine-id").write_text("0123\n")
    assert not is_sealed(made, WHAT, environ, tmp_path)
    assert is_sealed(seal(WHAT, environ, tmp_path), WHAT, environ, tmp_path)
    key.write_bytes(bytes(KEY_BYTES))
    assert not is_sealed(made, WHAT, environ)


@pytest.mark.parametrize(("of_folder", "mode"), [(False, 0o640), (False, 0o604), (True, 0o770), (True, 0o701)])
def test_a_key_that_others_may_use_is_not_used(environ: dict[str, str], key: Path, of_folder: bool, mode: int) -> None:
    made = seal(WHAT, environ)
    (key.parent if of_folder else key).chmod(mode)
    assert seal(WHAT, environ) == ""
    assert not is_sealed(made, WHAT, environ)


def test_a_key_of_somebody_else_is_not_used(
    environ: dict[str, str], key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, user = seal(WHAT, environ), os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert seal(WHAT, environ) == ""
    assert not is_sealed(made, WHAT, environ)


def test_a_link_a_pipe_and_a_torn_file_are_not_keys(environ: dict[str, str], key: Path) -> None:
    key.rename(key.with_name("elsewhere"))
    key.symlink_to("elsewhere")
    assert seal(WHAT, environ) == ""
    key.unlink()
    os.mkfifo(key, 0o600)
    assert seal(WHAT, environ) == ""
    key.unlink()
    key.write_bytes(b"torn")
    key.chmod(0o600)
    assert seal(WHAT, environ) == ""


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "here"}, {"XDG_STATE_HOME": "here"}])
def test_without_a_folder_of_the_users_nothing_is_sealed_and_nothing_is_written(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert seal(WHAT, environ) == ""
    assert not is_sealed("", WHAT, environ)
    assert os.listdir() == []


def test_looking_at_a_seal_makes_no_key(environ: dict[str, str]) -> None:
    assert not is_sealed("0" * 64, WHAT, environ)
    assert not Path(environ["XDG_STATE_HOME"]).exists()


def test_without_xdg_the_key_is_in_the_home_folder(tmp_path: Path) -> None:
    assert seal(WHAT, {"HOME": str(tmp_path)})
    assert (tmp_path / ".local/state/torchmark/seal.key").exists()
