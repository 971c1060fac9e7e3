"""Names that scripts import from `torch.utils.benchmark.utils.fuzzer`."""

from torchmark.fuzz.fuzzer import Fuzzer
from torchmark.fuzz.parameters import FuzzedParameter, ParameterAlias
from torchmark.fuzz.tensors import FuzzedTensor, dtype_size, prod

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias", "dtype_size", "prod"]
