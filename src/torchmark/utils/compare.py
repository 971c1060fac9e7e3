"""Names that scripts import from `torch.utils.benchmark.utils.compare`."""

from torchmark.api.compare import Compare
from torchmark.report.text.grid import Colorize

__all__ = ["Colorize", "Compare"]
