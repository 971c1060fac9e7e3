"""Names that scripts import from `torch.utils.benchmark.op_fuzzers.sparse_unary`."""

from torchmark.fuzz.operators import UnaryOpSparseFuzzer

__all__ = ["UnaryOpSparseFuzzer"]
