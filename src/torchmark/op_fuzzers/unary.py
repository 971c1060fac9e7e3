"""Names that scripts import from `torch.utils.benchmark.op_fuzzers.unary`."""

from torchmark.fuzz.operators import UnaryOpFuzzer

__all__ = ["UnaryOpFuzzer"]
