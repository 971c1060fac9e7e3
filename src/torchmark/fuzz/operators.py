"""Ready-made fuzzers for operators of one and two tensors, dense and sparse, and for Fourier transforms."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import torch

from torchmark.errors import DefinitionError, UsageError
from torchmark.fuzz.fuzzer import Fuzzer
from torchmark.fuzz.parameters import FuzzedParameter, ParameterAlias
from torchmark.fuzz.sparse import FuzzedSparseTensor
from torchmark.fuzz.tensors import FuzzedTensor

Parameters: TypeAlias = "list[FuzzedParameter | list[FuzzedParameter]]"
Specification: TypeAlias = "tuple[Parameters, Sequence[FuzzedTensor]]"

KI, MI, GI = 1024, 1024**2, 1024**3
DIMS = 3

# A fifth of all sizes and strides are special, as in real programs.
DIM_CHOICES = {1: 0.3, 2: 0.4, 3: 0.3}
STEP_CHOICES = {1: 0.8, 2: 0.06, 4: 0.06, 8: 0.04, 16: 0.04}


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Bounds of inputs: of each dimension, of all elements, and of what is allocated for them."""

    shortest: int
    longest: int
    min_elements: int
    max_elements: int
    max_allocation_bytes: int

    @property
    def powers_of_two(self) -> tuple[int, ...]:
        """Those between the shortest and the longest dimension."""
        return tuple(2**i for i in range(self.shortest.bit_length() - 1, self.longest.bit_length()))


REFERENCE = Sizes(shortest=16, longest=16 * MI, min_elements=4 * KI, max_elements=32 * MI, max_allocation_bytes=2 * GI)
# Small ones take an operator microseconds, most of it overhead; medium ones fit into caches, large ones do not.
PRESETS = {
    "small": Sizes(shortest=2, longest=16 * KI, min_elements=16, max_elements=64 * KI, max_allocation_bytes=4 * MI),
    "medium": Sizes(
        shortest=4, longest=256 * KI, min_elements=16 * KI, max_elements=1 * MI, max_allocation_bytes=64 * MI
    ),
    "large": Sizes(shortest=16, longest=4 * MI, min_elements=1 * MI, max_elements=16 * MI, max_allocation_bytes=1 * GI),
}


def choose_sizes(preset: str | None, presets: Mapping[str, Sizes] = PRESETS, reference: Sizes = REFERENCE) -> Sizes:
    """The sizes that a preset stands for; those of the reference without one."""
    if preset is None:
        return reference
    if preset not in presets:
        raise UsageError(f"There is no preset {preset!r}. There are: {', '.join(presets)}.")
    return presets[preset]


def any_sizes(shortest: int, longest: int) -> list[FuzzedParameter]:
    """`k_any_0` to `k_any_2`: any length, short and long ones alike."""
    return [FuzzedParameter(f"k_any_{i}", shortest, longest, "loguniform") for i in range(DIMS)]


def chosen_sizes(name: str, choices: Iterable[int]) -> list[FuzzedParameter]:
    """`{name}_0` to `{name}_2`: one of some lengths that deserve attention."""
    listed = list(choices)
    distribution = {choice: 1.0 / len(listed) for choice in listed}
    return [FuzzedParameter(f"{name}_{i}", distribution=distribution) for i in range(DIMS)]


def mixed_sizes(**shares: float) -> list[FuzzedParameter]:
    """`k0` to `k2`: one of the other kinds, each with its probability."""
    return [
        FuzzedParameter(
            f"k{i}", distribution={ParameterAlias(f"{name}_{i}"): share for name, share in shares.items()}, strict=True
        )
        for i in range(DIMS)
    ]


def dimensions(name: str) -> FuzzedParameter:
    """How many dimensions there are, drawn once for each input."""
    return FuzzedParameter(name, distribution=DIM_CHOICES, strict=True)


def operand_sizes(sizes: Sizes) -> list[list[FuzzedParameter]]:
    """Any length, and powers of two more often than they would come by chance."""
    return [
        any_sizes(sizes.shortest, sizes.longest),
        chosen_sizes("k_pow2", sizes.powers_of_two),
        mixed_sizes(k_any=0.8, k_pow2=0.2),
    ]


def random_value() -> FuzzedParameter:
    """A number that is the same in each run, for whatever else is to be random."""
    return FuzzedParameter("random_value", minval=0, maxval=2**32 - 1, distribution="uniform")


PROBABILITY_CONTIGUOUS = 0.75


class _OperatorFuzzer(Fuzzer):
    """A fuzzer of inputs of certain sizes, whose tensors have one dtype and one device."""

    def __init__(
        self,
        seed: int | None,
        dtype: torch.dtype = torch.float32,
        cuda: bool = False,
        *,
        device: torch.device | str | None = None,
        preset: str | None = None,
    ) -> None:
        parameters, tensors = self._specify(choose_sizes(preset), {"dtype": dtype, "cuda": cuda, "device": device})
        super().__init__(parameters, tensors, seed=seed)

    def _specify(self, sizes: Sizes, kind: Mapping[str, Any]) -> Specification:
        """The parameters in the order they are drawn in, and the tensors, which are of this kind."""
        raise NotImplementedError


class UnaryOpFuzzer(_OperatorFuzzer):
    """Inputs `x` of one to three dimensions, some with steps; a quarter of those with several are shuffled in memory.

    preset: "small", "medium" or "large"; by default up to 32 Mi elements, as in `torch.utils.benchmark`.
    device: where the content is drawn; see `FuzzedTensor`.

    >>> fuzzer = UnaryOpFuzzer(seed=0, preset="small")
    >>> [params["dim"] for params in fuzzer.parameters(4)]
    [3, 2, 2, 2]
    """

    def _specify(self, sizes: Sizes, kind: Mapping[str, Any]) -> Specification:
        steps = [FuzzedParameter(f"x_step_{i}", distribution=STEP_CHOICES) for i in range(DIMS)]
        parameters: Parameters = [dimensions("dim"), *operand_sizes(sizes), steps, random_value()]
        return parameters, [strided_operand("x", "k", sizes, kind)]


class BinaryOpFuzzer(_OperatorFuzzer):
    """Inputs `x` and `y` of one to three dimensions, each with steps of its own; a fifth of `y`'s lengths are 1.

    preset, device: as for `UnaryOpFuzzer`.
    """

    def _specify(self, sizes: Sizes, kind: Mapping[str, Any]) -> Specification:
        broadcast = [
            FuzzedParameter(f"y_k{i}", distribution={ParameterAlias(f"k{i}"): 0.8, 1: 0.2}, strict=True)
            for i in range(DIMS)
        ]
        steps = [
            FuzzedParameter(f"{name}_step_{i}", distribution=STEP_CHOICES) for i in range(DIMS) for name in ("x", "y")
        ]
        parameters: Parameters = [dimensions("dim"), *operand_sizes(sizes), broadcast, steps, random_value()]
        y = strided_operand("y", "y_k", sizes, kind, bounded=False)
        return parameters, [strided_operand("x", "k", sizes, kind), y]


def strided_operand(
    name: str,
    length: str,
    sizes: Sizes,
    kind: Mapping[str, Any],
    *,
    bounded: bool = True,
    step: str | None = None,
    dim: str = "dim",
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
        dim_parameter=dim,
        **kind,
    )


SPARSE_DIM_CHOICES = {1: 0.4, 2: 0.4, 3: 0.2}
DENSITY_CHOICES = {0.1: 0.4, 0.05: 0.3, 0.01: 0.3}


class UnaryOpSparseFuzzer(_OperatorFuzzer):
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
        super().__init__(seed, dtype or torch.float32, cuda, device=device, preset=preset)

    def _specify(self, sizes: Sizes, kind: Mapping[str, Any]) -> Specification:
        return [*_sparse_sizes(sizes), *_forms()], [_sparse_operand("x", "k", sizes, kind)]


class BinaryOpSparseFuzzer(_OperatorFuzzer):
    """Sparse inputs `x` and `y` of the same size, density and form.

    preset, device: as for `UnaryOpSparseFuzzer`.
    """

    def _specify(self, sizes: Sizes, kind: Mapping[str, Any]) -> Specification:
        same = [
            FuzzedParameter(f"y_k{i}", distribution={ParameterAlias(f"k{i}"): 1.0}, strict=True) for i in range(DIMS)
        ]
        tensors = [_sparse_operand(name, length, sizes, kind) for name, length in (("x", "k"), ("y", "y_k"))]
        return [*_sparse_sizes(sizes), same, *_forms()], tensors


def _sparse_sizes(sizes: Sizes) -> Parameters:
    sparse_dim = FuzzedParameter("sparse_dim", distribution=SPARSE_DIM_CHOICES, strict=True)
    return [dimensions("dim_parameter"), sparse_dim, *operand_sizes(sizes)]


def _forms() -> list[FuzzedParameter]:
    return [
        FuzzedParameter("density", distribution=DENSITY_CHOICES),
        FuzzedParameter("coalesced", distribution={True: 0.5, False: 0.5}),
        random_value(),
    ]


def _sparse_operand(name: str, length: str, sizes: Sizes, kind: Mapping[str, Any]) -> FuzzedSparseTensor:
    return FuzzedSparseTensor(
        name=name,
        size=tuple(f"{length}{i}" for i in range(DIMS)),
        min_elements=sizes.min_elements,
        max_elements=sizes.max_elements,
        dim_parameter="dim_parameter",
        sparse_dim="sparse_dim",
        density="density",
        coalesced="coalesced",
        **kind,
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
        kind = {"dtype": dtype, "cuda": cuda, "device": device}
        super().__init__(
            parameters=[
                dimensions("ndim"),
                any_sizes(sizes.shortest, sizes.longest),
                chosen_sizes("k_regular", regular_sizes(sizes.shortest, sizes.longest)),
                mixed_sizes(k_regular=probability_regular, k_any=1 - probability_regular),
                [FuzzedParameter(f"step_{i}", distribution=STEP_CHOICES) for i in range(DIMS)],
            ],
            tensors=[strided_operand("x", "k", sizes, kind, step="step", dim="ndim")],
            seed=seed,
        )
