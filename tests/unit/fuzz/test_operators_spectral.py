"""The fuzzer for Fourier transforms: the reference's stream, and regular lengths."""

from __future__ import annotations

import math

import pytest
import torch
from torch.utils.benchmark.op_fuzzers import spectral as reference

from tests import reference_fuzzers
from tests.sampling import assert_shares
from torchmark import DefinitionError, SpectralOpFuzzer, UsageError
from torchmark.fuzz.operators import (
    DIM_CHOICES,
    REGULAR_SIZES,
    SPECTRAL_PRESETS,
    SPECTRAL_REFERENCE,
    power_range,
    regular_sizes,
)


@pytest.mark.parametrize("probability", [1.0, 0.6])
def test_inputs_are_those_of_the_reference(monkeypatch: pytest.MonkeyPatch, probability: float) -> None:
    reference_fuzzers.repair(monkeypatch)
    for seed in range(5):
        theirs = reference.SpectralOpFuzzer(seed=seed, probability_regular=probability)
        ours = SpectralOpFuzzer(seed=seed, probability_regular=probability, device="meta")
        for item, (tensors, properties, params) in zip(ours.take(4), reference_fuzzers.take(theirs, 4), strict=True):
            assert item.params == params
            assert item.tensors["x"].dtype == tensors["x"].dtype == torch.float64
            assert item.tensors["x"].shape == tensors["x"].shape
            assert item.tensors["x"].stride() == tensors["x"].stride()
            assert list(item.tensor_properties["x"]["order"]) == list(properties["x"]["order"])


def test_regular_sizes() -> None:
    assert REGULAR_SIZES == reference.REGULAR_SIZES
    assert len(REGULAR_SIZES) == 189
    assert REGULAR_SIZES[:5] == [18, 20, 24, 25, 27]
    assert REGULAR_SIZES[-3:] == [16000, 16200, 16384]
    # All of them, as found by dividing.
    assert regular_sizes(1, 300) == [n for n in range(2, 301) if divide_out(n) == 1]


def divide_out(number: int) -> int:
    for prime in (2, 3, 5):
        while number % prime == 0:
            number //= prime
    return number


def test_powers_up_to_a_bound_include_it() -> None:
    # Logarithms would miss 125 and 243.
    assert [list(power_range(*given)) for given in ((125, 5), (243, 3), (1, 2), (0, 2))] == [
        [1, 5, 25, 125],
        [1, 3, 9, 27, 81, 243],
        [1],
        [],
    ]


@pytest.mark.parametrize("preset", [None, *SPECTRAL_PRESETS])
def test_all_inputs_are_within_bounds(preset: str | None) -> None:
    sizes = SPECTRAL_REFERENCE if preset is None else SPECTRAL_PRESETS[preset]
    fuzzer = SpectralOpFuzzer(seed=1, preset=preset)
    dims = []
    for index in range(150):
        draft = fuzzer.draft(index)
        x = fuzzer.describe(draft)["x"]
        dims.append(draft.params["ndim"])
        assert sizes.min_elements <= x["numel"] <= sizes.max_elements
        assert 8 * math.prod(x["size"]) * math.prod(x["steps"]) <= sizes.max_allocation_bytes
        assert all(sizes.shortest < n <= sizes.longest and divide_out(n) == 1 for n in x["size"])
    assert_shares(dims, DIM_CHOICES)


@pytest.mark.parametrize("probability", [0, 0.3, 1])
def test_lengths_are_regular_as_often_as_asked_for(probability: float) -> None:
    fuzzer = SpectralOpFuzzer(seed=2, preset="small", probability_regular=probability)
    kinds = []
    for index in range(700):
        params = fuzzer.draft(index).params
        for i in range(3):
            regular, free = params[f"k_regular_{i}"], params[f"k_any_{i}"]
            assert params[f"k{i}"] in (regular, free)
            if regular != free:
                kinds.append(params[f"k{i}"] == regular)
    assert_shares(kinds, {True: probability, False: 1 - probability})


@pytest.mark.parametrize("probability", [-0.1, 1.1, math.nan])
def test_what_is_no_probability_is_refused(probability: float) -> None:
    with pytest.raises(DefinitionError, match=rf"A probability is from 0 to 1, not {probability}\."):
        SpectralOpFuzzer(seed=0, probability_regular=probability)


def test_a_preset_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match=r"There is no preset 'tiny'\. There are: small, medium, large\."):
        SpectralOpFuzzer(seed=0, preset="tiny")
