"""Names that scripts import from `torch.utils.benchmark.op_fuzzers.sparse_binary`."""

from torchmark.fuzz.operators import BinaryOpSparseFuzzer

__all__ = ["BinaryOpSparseFuzzer"]
