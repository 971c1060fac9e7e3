"""Names that scripts import from `torch.utils.benchmark.op_fuzzers.sparse_unary`."""

from torchmark.fuzz.sparse_operators import UnaryOpSparseFuzzer

__all__ = ["UnaryOpSparseFuzzer"]
