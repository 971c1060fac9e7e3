"""Names that scripts import from `torch.utils.benchmark.op_fuzzers.spectral`."""

from torchmark.fuzz.operators import MAX_DIM_SIZE, MIN_DIM_SIZE, REGULAR_SIZES, SpectralOpFuzzer, power_range

__all__ = ["MAX_DIM_SIZE", "MIN_DIM_SIZE", "REGULAR_SIZES", "SpectralOpFuzzer", "power_range"]
