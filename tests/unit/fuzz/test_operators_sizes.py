"""Presets, and the parameters that lengths are drawn with."""

from __future__ import annotations

import pytest

from tests.sampling import assert_shares
from torchmark import FuzzedParameter, Fuzzer, UsageError
from torchmark.fuzz.operators import (
    DIM_CHOICES,
    PRESETS,
    REFERENCE,
    STEP_CHOICES,
    any_sizes,
    choose_sizes,
    chosen_sizes,
    mixed_sizes,
    random_value,
)


def test_sizes_by_name() -> None:
    assert choose_sizes(None) is REFERENCE
    assert choose_sizes("small") is PRESETS["small"]
    with pytest.raises(UsageError, match="There is no preset 'huge'"):
        choose_sizes("huge")


def test_powers_of_two_are_within_bounds() -> None:
    for sizes in (REFERENCE, *PRESETS.values()):
        powers = sizes.powers_of_two
        assert all(power.bit_count() == 1 for power in powers)
        assert (powers[0], powers[-1]) == (sizes.shortest, sizes.longest)
        assert len(powers) == sizes.longest.bit_length() - sizes.shortest.bit_length() + 1
    assert len(REFERENCE.powers_of_two) == 21


def test_kinds_of_lengths_have_their_shares() -> None:
    parameters = [any_sizes(100, 200), chosen_sizes("k_few", [1, 2, 3, 4]), mixed_sizes(k_any=0.7, k_few=0.3)]
    drawn = list(Fuzzer(parameters, [], seed=1).parameters(1000))
    assert_shares((params["k_few_0"] for params in drawn), dict.fromkeys([1, 2, 3, 4], 0.25))
    assert_shares((params[f"k{i}"] < 100 for params in drawn for i in range(3)), {True: 0.3, False: 0.7})


def test_choices_have_their_shares() -> None:
    steps = FuzzedParameter("step", distribution=STEP_CHOICES)
    dims = FuzzedParameter("dim", distribution=DIM_CHOICES)
    drawn = list(Fuzzer([steps, dims], [], seed=3).parameters(3000))
    assert_shares((params["step"] for params in drawn), STEP_CHOICES)
    assert_shares((params["dim"] for params in drawn), DIM_CHOICES)


def test_a_random_value_has_32_bits() -> None:
    values = [params["random_value"] for params in Fuzzer([random_value()], [], seed=0).parameters(2000)]
    assert all(0 <= value < 2**32 for value in values)
    for bit in range(32):
        assert_shares((value >> bit & 1 for value in values), {0: 0.5, 1: 0.5})
