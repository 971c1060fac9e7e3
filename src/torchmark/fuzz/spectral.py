"""A ready-made fuzzer for Fourier transforms, whose speed depends on the factors of a length."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import torch

from torchmark.errors import DefinitionError
from torchmark.fuzz.fuzzer import Fuzzer
from torchmark.fuzz.operators import strided_operand
from torchmark.fuzz.parameters import FuzzedParameter
from torchmark.fuzz.sizes import (
    DIM_CHOICES,
    DIMS,
    KI,
    MI,
    PRESETS,
    REFERENCE,
    STEP_CHOICES,
    any_sizes,
    choose_sizes,
    chosen_sizes,
    mixed_sizes,
)

MIN_DIM_SIZE = 16
MAX_DIM_SIZE = 16 * KI
SPECTRAL_REFERENCE = dataclasses.replace(REFERENCE, shortest=MIN_DIM_SIZE, longest=MAX_DIM_SIZE)
# Regular numbers are drawn from a list, of which most are long: dimensions have to be shorter than elsewhere for two or
# three of them to fit.
SPECTRAL_PRESETS = {
    "small": dataclasses.replace(PRESETS["small"], longest=1 * KI),
    "medium": dataclasses.replace(PRESETS["medium"], longest=32 * KI),
    "large": dataclasses.replace(PRESETS["large"], longest=2 * MI),
}


def power_range(upper_bound: int, base: int) -> Iterator[int]:
    """The powers of a number from 1 up to a bound.

    >>> list(power_range(125, 5))
    [1, 5, 25, 125]
    """
    power = 1
    while power <= upper_bound:
        yield power
        power *= base


def regular_sizes(above: int, up_to: int) -> list[int]:
    """Numbers without prime factors other than 2, 3 and 5: what transforms are fastest for.

    >>> regular_sizes(16, 30)
    [18, 20, 24, 25, 27, 30]
    """
    return sorted(
        two * three * five
        for two in power_range(up_to, 2)
        for three in power_range(up_to // two, 3)
        for five in power_range(up_to // (two * three), 5)
        if two * three * five > above
    )


REGULAR_SIZES = regular_sizes(MIN_DIM_SIZE, MAX_DIM_SIZE)


class SpectralOpFuzzer(Fuzzer):
    """Inputs `x` of one to three dimensions whose lengths are regular with some probability, and any otherwise.

    preset: "small", "medium" or "large"; by default up to 32 Mi elements, as in `torch.utils.benchmark`.
    device: where the content is drawn; see `FuzzedTensor`.
    """

    def __init__(
        self,
        *,
        seed: int | None,
        dtype: torch.dtype = torch.float64,
        cuda: bool = False,
        probability_regular: float = 1.0,
        device: torch.device | str | None = None,
        preset: str | None = None,
    ) -> None:
        if not 0 <= probability_regular <= 1:
            raise DefinitionError(f"A probability is from 0 to 1, not {probability_regular!r}.")
        sizes = choose_sizes(preset, SPECTRAL_PRESETS, SPECTRAL_REFERENCE)
        super().__init__(
            parameters=[
                FuzzedParameter("ndim", distribution=DIM_CHOICES, strict=True),
                any_sizes(sizes.shortest, sizes.longest),
                chosen_sizes("k_regular", regular_sizes(sizes.shortest, sizes.longest)),
                mixed_sizes(k_regular=probability_regular, k_any=1 - probability_regular),
                [FuzzedParameter(f"step_{i}", distribution=STEP_CHOICES) for i in range(DIMS)],
            ],
            tensors=[strided_operand("x", "k", sizes, dtype, cuda, device, step="step", dim_parameter="ndim")],
            seed=seed,
        )
