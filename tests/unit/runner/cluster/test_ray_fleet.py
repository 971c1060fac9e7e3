"""How Ray is asked for a cluster. Nothing is started or connected to here."""

from __future__ import annotations

from typing import Any

import pytest

from torchmark.errors import SetupError
from torchmark.runner.cluster import ray_fleet


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What Ray is asked for."""
    found: list[dict[str, Any]] = []
    monkeypatch.setattr("ray.init", lambda **options: found.append(options))
    return found


def test_a_cluster_is_joined_by_its_address(asked: list[dict[str, Any]]) -> None:
    ray_fleet.connect("10.0.0.5:6379")
    assert [one["address"] for one in asked] == ["10.0.0.5:6379"]


def test_the_client_protocol_is_refused(asked: list[dict[str, Any]]) -> None:
    with pytest.raises(SetupError, match="client protocol"):
        ray_fleet.connect("ray://10.0.0.5:10001")
    assert asked == []


def test_a_cluster_is_started_on_loopback_without_a_dashboard(
    asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_fleet, "_find_own_address", lambda: "127.0.0.1")
    ray_fleet.start("/tmp/x", 4, 2)
    (options,) = asked
    assert (options["address"], options["_node_ip_address"], options["_temp_dir"]) == ("local", "127.0.0.1", "/tmp/x")
    assert (options["num_cpus"], options["resources"], options["include_dashboard"]) == (4, {"torchmark": 2}, False)


def test_no_cluster_is_started_that_would_listen_on_the_network(
    asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_fleet, "_find_own_address", lambda: "10.0.0.5")
    with pytest.raises(SetupError, match=r"would listen at 10\.0\.0\.5"):
        ray_fleet.start("/tmp/x", 4, 2)
    assert asked == []
