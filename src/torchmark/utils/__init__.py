"""The reference's import paths, kept so that only the prefix of an import line has to change."""

from torchmark.utils import common, compare, fuzzer, sparse_fuzzer, timer, valgrind_wrapper

__all__ = ["common", "compare", "fuzzer", "sparse_fuzzer", "timer", "valgrind_wrapper"]
