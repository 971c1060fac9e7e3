"""How the Ray cluster of this machine is found. Nothing is connected to here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.strangers import give_away
from torchmark.cluster import ray_fleet
from torchmark.errors import SetupError


@pytest.fixture
def note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    path = tmp_path / "ray" / "ray_current_cluster"
    path.parent.mkdir()
    path.write_text("10.0.0.5:6379")
    path.chmod(0o644)
    return path


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that Ray is asked to connect to."""
    addresses: list[str] = []

    def init(address: str, **_: Any) -> None:
        addresses.append(address)

    monkeypatch.setattr("ray.init", init)
    monkeypatch.setattr(ray_fleet, "_knock", lambda address: None)
    return addresses


def test_the_cluster_that_this_user_has_started_is_joined_by_its_address(note: Path, joined: list[str]) -> None:
    ray_fleet.connect(None)
    assert joined == ["10.0.0.5:6379"]


@pytest.mark.parametrize("fault", ["owner", "mode", "link"])
def test_a_cluster_that_another_user_may_have_named_is_refused_unless_it_is_named_by_address(
    note: Path, joined: list[str], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fault == "owner":
        give_away(note, monkeypatch)
    elif fault == "mode":
        note.chmod(0o666)
    else:
        note.rename(note.with_name("other"))
        note.symlink_to(note.with_name("other"))
    with pytest.raises(SetupError, match=r"Other users may have written .* Name the cluster with --address"):
        ray_fleet.connect(None)
    assert joined == []
    ray_fleet.connect("10.0.0.5:6379")
    assert joined == ["10.0.0.5:6379"]


def test_without_a_note_no_cluster_is_joined_that_happens_to_run_here(note: Path, joined: list[str]) -> None:
    note.unlink()
    with pytest.raises(SetupError, match="--address"):
        ray_fleet.connect(None)
    assert joined == []
