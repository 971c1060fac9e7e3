"""Names that scripts import from `torch.utils.benchmark.utils.timer`."""

from torchmark.api.timer import Timer
from torchmark.measure.clock import timer
from torchmark.model.task import Language

__all__ = ["Language", "Timer", "timer"]
