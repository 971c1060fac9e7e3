"""Which Ray cluster is joined, and when one is started. Nothing is connected to here but a socket of this test."""

from __future__ import annotations

import os
import socket
import stat
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.strangers import give_away
from torchmark.errors import SetupError
from torchmark.model.plan import Metric, Plan, Sampling, Target
from torchmark.runner.cluster import backend
from torchmark.runner.cluster.backend import choose_address, count_slots, open_ray
from torchmark.runner.spec import choose_variables, travels

PLAN = Plan((), (Target(),), Sampling((Metric.WALL,)))


@pytest.fixture
def listening() -> Iterator[str]:
    """Where something listens that may be a cluster."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def silent(listening: str) -> str:
    """Where nothing listens."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{other.getsockname()[1]}"


def note(folder: Path, address: str) -> dict[str, str]:
    """Variables with which Ray has noted this address."""
    path = folder / "ray" / "ray_current_cluster"
    path.parent.mkdir()
    path.write_text(address)
    path.chmod(0o644)
    return {"RAY_TMPDIR": str(folder)}


def test_a_cluster_that_is_named_is_joined_whatever_runs_here(tmp_path: Path, listening: str) -> None:
    environ = note(tmp_path, listening)
    assert choose_address("10.0.0.5:6379", environ) == "10.0.0.5:6379"
    assert choose_address(None, {**environ, "RAY_ADDRESS": "10.0.0.6:6379"}) == "10.0.0.6:6379"
    assert choose_address("10.0.0.5:6379", {**environ, "RAY_ADDRESS": "10.0.0.6:6379"}) == "10.0.0.5:6379"


def test_the_cluster_that_this_user_has_started_is_joined_by_its_address(tmp_path: Path, listening: str) -> None:
    environ = note(tmp_path, listening)
    assert choose_address(None, environ) == listening
    assert choose_address("auto", environ) == listening


@pytest.mark.parametrize("fault", ["owner", "mode", "link"])
def test_a_cluster_that_another_user_may_have_named_is_refused_unless_it_is_named_by_address(
    tmp_path: Path, listening: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = note(tmp_path, listening)
    path = tmp_path / "ray" / "ray_current_cluster"
    if fault == "owner":
        give_away(path, monkeypatch)
    elif fault == "mode":
        path.chmod(0o666)
    else:
        path.rename(path.with_name("other"))
        path.symlink_to(path.with_name("other"))
    with pytest.raises(SetupError, match=r"Other users may have written .* Name the cluster with --address"):
        choose_address(None, environ)
    assert choose_address(listening, environ) == listening


def test_without_a_cluster_one_is_started(tmp_path: Path) -> None:
    assert choose_address(None, {"RAY_TMPDIR": str(tmp_path)}) is None
    assert choose_address(None, {**note(tmp_path, ""), "RAY_ADDRESS": ""}) is None


def test_a_cluster_that_has_ended_is_one_that_is_not_there(tmp_path: Path, silent: str) -> None:
    assert choose_address(None, note(tmp_path, silent)) is None


def test_a_cluster_that_cannot_be_reached_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(*_: object) -> None:
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", wait)
    assert choose_address(None, note(tmp_path, "10.0.0.5:6379")) == "10.0.0.5:6379"
    with pytest.raises(SetupError, match=r"no Ray cluster to be found at 10.0.0.5:6379: timed out. .*--address local"):
        open_ray("10.0.0.5:6379")(PLAN)


def test_who_asks_for_a_new_cluster_gets_one_though_another_runs(tmp_path: Path, listening: str) -> None:
    environ = note(tmp_path, listening)
    assert choose_address("local", environ) is None
    assert choose_address(None, {**environ, "RAY_ADDRESS": "local"}) is None


def test_who_asks_for_the_running_cluster_is_told_that_there_is_none(tmp_path: Path, silent: str) -> None:
    with pytest.raises(SetupError, match=r"no Ray cluster .* --address local"):
        choose_address("auto", {"RAY_TMPDIR": str(tmp_path)})
    with pytest.raises(SetupError, match=f"no Ray cluster to be found at {silent}: .*refused"):
        open_ray("auto", note(tmp_path, silent))(PLAN)


# --- one that is started -----------------------------------------------------------------------------


class FakeRay(types.ModuleType):
    """Stands for `ray_fleet`, and sees what Ray would see while it is loaded."""

    def __init__(self) -> None:
        super().__init__("torchmark.runner.cluster.ray_fleet")
        self.fault: Exception | None = None
        self.started: list[tuple[str, int, int]] = []
        self.variables: dict[str, str] = {}
        self.token = ""

    def start(self, folder: str, cores: int, slots: int) -> None:
        self.started.append((folder, cores, slots))
        self.variables = {name: value for name, value in os.environ.items() if name.startswith("RAY_")}
        path = Path(self.variables["RAY_AUTH_TOKEN_PATH"])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        self.token = path.read_text()
        if self.fault is not None:
            raise self.fault

    def RayFleet(self, run_setup: Any, at_end: Any) -> Any:  # noqa: N802 (a class there)
        return types.SimpleNamespace(close=at_end)


@pytest.fixture
def fake_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)
    # A copy, so that what is set for Ray is gone after the test.
    monkeypatch.setattr(os, "environ", os.environ.copy())
    fake = FakeRay()
    monkeypatch.setitem(sys.modules, fake.__name__, fake)
    return fake


def test_a_cluster_is_started_for_itself_on_loopback_and_said_so(tmp_path: Path, fake_ray: FakeRay) -> None:
    report: list[str] = []
    fleet, run_setup = open_ray(None, {"RAY_TMPDIR": str(tmp_path), "LANG": "C"}, notify=report.append)(PLAN)
    cores, slots = count_slots()
    assert len(report) == 1
    assert f"a local one with {slots} slot" in report[0]
    assert "started on 127.0.0.1, and stopped at the end." in report[0]
    ((folder, *size),) = fake_ray.started
    assert size == [cores, slots]
    assert fake_ray.variables["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "0"
    assert fake_ray.variables["RAY_USAGE_STATS_ENABLED"] == "0"
    assert fake_ray.variables["RAY_AUTH_MODE"] == "token"
    assert len(fake_ray.token) == 64
    assert run_setup.variables == (("LANG", "C"),)
    assert Path(folder).is_dir()
    fleet.close()
    assert not Path(folder).exists()


def test_no_variable_that_is_set_for_ray_reaches_what_is_measured(tmp_path: Path, fake_ray: FakeRay) -> None:
    fleet, _ = open_ray("local")(PLAN)
    fleet.close()
    assert len(fake_ray.variables) == 4
    assert not set(fake_ray.variables) & set(choose_variables(fake_ray.variables, {}, own=True))
    assert not any(travels(name) for name in fake_ray.variables)


def test_why_ray_could_not_be_started_is_told_and_no_folder_stays(fake_ray: FakeRay) -> None:
    fake_ray.fault = RuntimeError("The port is taken.\nA long story.")
    with pytest.raises(SetupError, match=r"could not be started on this machine: The port is taken\. Measure without"):
        open_ray("local")(PLAN)
    ((folder, *_),) = fake_ray.started
    assert not Path(folder).exists()


def test_slots_are_bounded_by_cores_and_by_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def have(cores: int, pages: int) -> tuple[int, int]:
        monkeypatch.setattr(backend, "choose_cores", lambda: list(range(cores)))
        monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 1 << 12, "SC_PHYS_PAGES": pages}.__getitem__)
        return count_slots()

    assert have(2, 1 << 22) == (2, 2)
    assert have(16, 1 << 22) == (16, 8)
    assert have(4, 1 << 18) == (4, 1)
