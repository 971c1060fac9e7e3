"""Names that scripts import from `torch.utils.benchmark.utils.valgrind_wrapper.timer_interface`."""

from torchmark.api.copies import CopyIfCallgrind
from torchmark.api.functions import FunctionCount, FunctionCounts
from torchmark.api.stats import CallgrindStats

__all__ = ["CallgrindStats", "CopyIfCallgrind", "FunctionCount", "FunctionCounts"]
