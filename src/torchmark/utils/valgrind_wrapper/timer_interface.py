"""Names that scripts import from `torch.utils.benchmark.utils.valgrind_wrapper.timer_interface`."""

from torchmark.api.callgrind_stats import CallgrindStats, FunctionCount, FunctionCounts
from torchmark.api.timer_engines import CopyIfCallgrind

__all__ = ["CallgrindStats", "CopyIfCallgrind", "FunctionCount", "FunctionCounts"]
