"""Streams of random numbers that leave torch's own alone."""

from __future__ import annotations

import pytest
import torch

from torchmark.fuzz.random_values import Entropy

CPU = torch.device("cpu")


def test_a_stream_is_the_one_after_manual_seed() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(2**62 + 5)
        expected = torch.rand(5)
    assert torch.equal(torch.rand(5, generator=Entropy(2**62 + 5).on(CPU)), expected)


def test_code_that_knows_of_no_generators_takes_part_in_the_stream() -> None:
    entropy, other = Entropy(3), Entropy(3)
    before = torch.get_rng_state()
    first = torch.rand(4, generator=entropy.on(CPU))
    with entropy.as_global(CPU):
        second = torch.rand(4)
    third = torch.rand(4, generator=entropy.on(CPU))
    assert torch.equal(torch.cat([first, second, third]), torch.rand(12, generator=other.on(CPU)))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_failure_leaves_the_callers_numbers_alone() -> None:
    before = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError), Entropy(3).as_global(CPU):
        torch.rand(4 // 0)
    assert torch.equal(torch.get_rng_state(), before)


def test_nothing_is_drawn_on_the_meta_device() -> None:
    assert Entropy(3).on(torch.device("meta")) is None
    with Entropy(3).as_global(torch.device("meta")):
        assert torch.rand(2, device="meta").shape == (2,)
