"""Names that scripts import from `torch.utils.benchmark.op_fuzzers.binary`."""

from torchmark.fuzz.operators import BinaryOpFuzzer

__all__ = ["BinaryOpFuzzer"]
