"""Names that scripts import from `torch.utils.benchmark.utils.sparse_fuzzer`."""

from torchmark.fuzz.sparse import FuzzedSparseTensor

__all__ = ["FuzzedSparseTensor"]
