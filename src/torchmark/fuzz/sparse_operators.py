"""Ready-made fuzzers for operators of sparse tensors."""

from __future__ import annotations

import torch

from torchmark.fuzz.fuzzer import Fuzzer
from torchmark.fuzz.parameters import FuzzedParameter, ParameterAlias
from torchmark.fuzz.sizes import DIM_CHOICES, DIMS, Sizes, choose_sizes, operand_sizes, random_value
from torchmark.fuzz.sparse import FuzzedSparseTensor

SPARSE_DIM_CHOICES = {1: 0.4, 2: 0.4, 3: 0.2}
DENSITY_CHOICES = {0.1: 0.4, 0.05: 0.3, 0.01: 0.3}


class UnaryOpSparseFuzzer(Fuzzer):
    """Sparse inputs `x` of one to three dimensions, up to all of which are sparse; a tenth of it set, or less.

    preset: "small", "medium" or "large"; by default up to 32 Mi elements, as in `torch.utils.benchmark`.
    device: where the content is drawn; see `FuzzedTensor`.
    """

    def __init__(
        self,
        seed: int | None,
        dtype: torch.dtype | None = None,
        cuda: bool = False,
        *,
        device: torch.device | str | None = None,
        preset: str | None = None,
    ) -> None:
        sizes = choose_sizes(preset)
        super().__init__(
            parameters=[*_shapes(sizes), *_forms()],
            tensors=[_operand("x", "k", sizes, dtype or torch.float32, cuda, device)],
            seed=seed,
        )


class BinaryOpSparseFuzzer(Fuzzer):
    """Sparse inputs `x` and `y` of the same size, density and form.

    preset, device: as for `UnaryOpSparseFuzzer`.
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
        same = [
            FuzzedParameter(f"y_k{i}", distribution={ParameterAlias(f"k{i}"): 1.0}, strict=True) for i in range(DIMS)
        ]
        super().__init__(
            parameters=[*_shapes(sizes), same, *_forms()],
            tensors=[_operand(name, length, sizes, dtype, cuda, device) for name, length in (("x", "k"), ("y", "y_k"))],
            seed=seed,
        )


def _shapes(sizes: Sizes) -> list[FuzzedParameter | list[FuzzedParameter]]:
    return [
        FuzzedParameter("dim_parameter", distribution=DIM_CHOICES, strict=True),
        FuzzedParameter("sparse_dim", distribution=SPARSE_DIM_CHOICES, strict=True),
        *operand_sizes(sizes),
    ]


def _forms() -> list[FuzzedParameter]:
    return [
        FuzzedParameter("density", distribution=DENSITY_CHOICES),
        FuzzedParameter("coalesced", distribution={True: 0.5, False: 0.5}),
        random_value(),
    ]


def _operand(
    name: str, length: str, sizes: Sizes, dtype: torch.dtype, cuda: bool, device: torch.device | str | None
) -> FuzzedSparseTensor:
    return FuzzedSparseTensor(
        name=name,
        size=tuple(f"{length}{i}" for i in range(DIMS)),
        min_elements=sizes.min_elements,
        max_elements=sizes.max_elements,
        dim_parameter="dim_parameter",
        sparse_dim="sparse_dim",
        density="density",
        coalesced="coalesced",
        dtype=dtype,
        cuda=cuda,
        device=device,
    )
