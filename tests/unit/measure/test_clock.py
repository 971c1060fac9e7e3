from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
import torch

from torchmark import Timer, timer
from torchmark.measure import clock


class FakeAccelerator:
    """Stands where torch.accelerator does and records what is asked of it and of the clock."""

    def __init__(self, available: bool = True) -> None:
        self.available = available
        self.events: list[str] = []

    def is_available(self) -> bool:
        self.events.append("available?")
        return self.available

    def synchronize(self) -> None:
        self.events.append("synchronise")


@pytest.fixture
def accelerator(monkeypatch: pytest.MonkeyPatch) -> FakeAccelerator:
    fake = FakeAccelerator()
    monkeypatch.setattr(torch, "accelerator", fake, raising=False)
    ticks = iter(range(10**6))

    def read() -> float:
        fake.events.append("read")
        return float(next(ticks))

    monkeypatch.setattr(time, "perf_counter", read)
    return fake


def test_an_accelerator_is_synchronised_once_before_each_clock_read(accelerator: FakeAccelerator) -> None:
    Timer("pass").timeit(1)
    # a warm-up block and a timed one, two clock reads each
    assert accelerator.events == ["available?", *["synchronise", "read"] * 4]


def test_whether_there_is_an_accelerator_is_asked_once_per_timer(accelerator: FakeAccelerator) -> None:
    task = Timer("pass")
    task.repeat(3, 1)
    task.timeit(2)
    assert accelerator.events.count("available?") == 1


def test_nothing_is_synchronised_where_there_is_no_accelerator(accelerator: FakeAccelerator) -> None:
    accelerator.available = False
    Timer("pass").timeit(1)
    assert "synchronise" not in accelerator.events


def test_a_clock_of_the_users_is_read_without_synchronising(accelerator: FakeAccelerator) -> None:
    Timer("pass", timer=time.process_time).timeit(1)
    assert accelerator.events == []


def test_the_public_clock_synchronises_too(accelerator: FakeAccelerator) -> None:
    timer()
    assert accelerator.events == ["available?", "synchronise", "read"]


def test_on_a_cpu_the_clock_is_the_bare_performance_counter() -> None:
    assert clock.choose_clock() is time.perf_counter


@pytest.mark.parametrize("name", ["cuda", "mps", "xpu"])
def test_an_older_torch_is_asked_by_name(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def absent() -> bool:
        return False

    fakes = {
        device: SimpleNamespace(is_available=(lambda: True) if device == name else absent, synchronize=object())
        for device in ("cuda", "mps", "xpu")
    }
    backends = SimpleNamespace(mps=SimpleNamespace(is_available=fakes["mps"].is_available))
    old = SimpleNamespace(backends=backends, **fakes)
    monkeypatch.setattr(clock, "torch", old)
    assert clock.find_synchronise() is fakes[name].synchronize


def test_an_older_torch_without_any_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = SimpleNamespace(is_available=lambda: False, synchronize=None)
    old = SimpleNamespace(cuda=nothing, backends=SimpleNamespace(mps=nothing))
    monkeypatch.setattr(clock, "torch", old)
    assert clock.find_synchronise() is None


def test_compiled_code_reads_its_own_clock_unless_an_accelerator_has_to_be_waited_for(
    accelerator: FakeAccelerator,
) -> None:
    accelerator.available = False
    assert clock.choose_native_clock() is None
    accelerator.available = True
    chosen = clock.choose_native_clock()
    assert chosen is not None
    accelerator.events.clear()
    chosen()
    assert accelerator.events == ["synchronise", "read"]
