"""How large the inputs of ready-made fuzzers are, and the parameters that sizes are drawn with.

By default they are as large as those of `torch.utils.benchmark`, up to 32 Mi elements, which is a lot where a single
operator is timed; presets are for that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from torchmark.errors import UsageError
from torchmark.fuzz.parameters import FuzzedParameter, ParameterAlias

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


REFERENCE = Sizes(16, 16 * MI, 4 * KI, 32 * MI, 2 * GI)
# Small ones take an operator microseconds, most of it overhead; medium ones fit into caches, large ones do not.
PRESETS = {
    "small": Sizes(2, 16 * KI, 16, 64 * KI, 4 * MI),
    "medium": Sizes(4, 256 * KI, 16 * KI, 1 * MI, 64 * MI),
    "large": Sizes(16, 4 * MI, 1 * MI, 16 * MI, 1 * GI),
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
