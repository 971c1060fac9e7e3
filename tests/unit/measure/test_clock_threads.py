from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from torchmark import Timer, set_torch_threads


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_the_number_is_set_and_put_back() -> None:
    with set_torch_threads(3):
        assert torch.get_num_threads() == 3
    assert torch.get_num_threads() == 2


def test_the_number_is_put_back_after_an_error() -> None:
    with pytest.raises(KeyError), set_torch_threads(1):
        raise KeyError
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("method", ["timeit", "repeat", "autorange", "blocked_autorange", "adaptive_autorange"])
def test_every_method_puts_the_number_back_when_the_statement_raises(method: str) -> None:
    with pytest.raises(ZeroDivisionError):
        getattr(Timer("1 / 0", num_threads=1), method)()
    assert torch.get_num_threads() == 2


def test_the_statement_runs_with_its_own_number() -> None:
    seen: list[int] = []
    Timer("seen.append(torch.get_num_threads())", globals={"seen": seen}, num_threads=1).timeit(1)
    assert set(seen) == {1}


@pytest.mark.parametrize("n", [1, 2])
def test_the_number_is_put_back_when_the_statement_changes_it(n: int) -> None:
    Timer("torch.set_num_threads(3)", num_threads=n).timeit(1)
    assert torch.get_num_threads() == 2


def test_nothing_is_set_when_the_number_is_right_already(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", calls.append)
    with set_torch_threads(2):
        pass
    assert calls == []
