"""Ready-made fuzzers for operators of one and of two tensors."""

from __future__ import annotations

import torch

from torchmark.fuzz.fuzzer import Fuzzer
from torchmark.fuzz.parameters import FuzzedParameter, ParameterAlias
from torchmark.fuzz.sizes import DIM_CHOICES, DIMS, STEP_CHOICES, Sizes, choose_sizes, operand_sizes, random_value
from torchmark.fuzz.tensors import FuzzedTensor

PROBABILITY_CONTIGUOUS = 0.75


class UnaryOpFuzzer(Fuzzer):
    """Inputs `x` of one to three dimensions, some with steps; a quarter of those with several are shuffled in memory.

    preset: "small", "medium" or "large"; by default up to 32 Mi elements, as in `torch.utils.benchmark`.
    device: where the content is drawn; see `FuzzedTensor`.

    >>> fuzzer = UnaryOpFuzzer(seed=0, preset="small")
    >>> [params["dim"] for params in fuzzer.parameters(4)]
    [3, 2, 2, 2]
    """

    def __init__(
        self,
        seed: int | None,
        dtype: torch.dtype = torch.float32,
        cuda: bool = False,
        *,
        device: torch.device | str | None = None,
        preset: str | None = None,
    ) -> None:
        sizes = choose_sizes(preset)
        steps = [FuzzedParameter(f"x_step_{i}", distribution=STEP_CHOICES) for i in range(DIMS)]
        super().__init__(
            parameters=[
                FuzzedParameter("dim", distribution=DIM_CHOICES, strict=True),
                *operand_sizes(sizes),
                steps,
                random_value(),
            ],
            tensors=[strided_operand("x", "k", sizes, dtype, cuda, device)],
            seed=seed,
        )


class BinaryOpFuzzer(Fuzzer):
    """Inputs `x` and `y` of one to three dimensions, each with steps of its own; a fifth of `y`'s lengths are 1.

    preset, device: as for `UnaryOpFuzzer`.
    """

    def __init__(
        self,
        seed: int | None,
        dtype: torch.dtype = torch.float32,
        cuda: bool = False,
        *,
        device: torch.device | str | None = None,
        preset: str | None = None,
    ) -> None:
        sizes = choose_sizes(preset)
        broadcast = [
            FuzzedParameter(f"y_k{i}", distribution={ParameterAlias(f"k{i}"): 0.8, 1: 0.2}, strict=True)
            for i in range(DIMS)
        ]
        steps = [
            FuzzedParameter(f"{name}_step_{i}", distribution=STEP_CHOICES) for i in range(DIMS) for name in ("x", "y")
        ]
        super().__init__(
            parameters=[
                FuzzedParameter("dim", distribution=DIM_CHOICES, strict=True),
                *operand_sizes(sizes),
                broadcast,
                steps,
                random_value(),
            ],
            tensors=[
                strided_operand("x", "k", sizes, dtype, cuda, device),
                strided_operand("y", "y_k", sizes, dtype, cuda, device, bounded=False),
            ],
            seed=seed,
        )


def strided_operand(
    name: str,
    length: str,
    sizes: Sizes,
    dtype: torch.dtype,
    cuda: bool,
    device: torch.device | str | None,
    *,
    bounded: bool = True,
    step: str | None = None,
    dim_parameter: str = "dim",
) -> FuzzedTensor:
    """An operand whose lengths and steps are parameters; one no larger than another needs no bounds of its own."""
    return FuzzedTensor(
        name=name,
        size=tuple(f"{length}{i}" for i in range(DIMS)),
        steps=tuple(f"{step or name + '_step'}_{i}" for i in range(DIMS)),
        probability_contiguous=PROBABILITY_CONTIGUOUS,
        min_elements=sizes.min_elements if bounded else None,
        max_elements=sizes.max_elements if bounded else None,
        max_allocation_bytes=sizes.max_allocation_bytes,
        dim_parameter=dim_parameter,
        dtype=dtype,
        cuda=cuda,
        device=device,
    )
