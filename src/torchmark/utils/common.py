"""Names that scripts import from `torch.utils.benchmark.utils.common`."""

from torchmark.analysis.grid import ordered_unique
from torchmark.api.measurement import Measurement
from torchmark.measure.clock import set_torch_threads
from torchmark.model.task import TaskSpec
from torchmark.report.text.units import select_unit, trim_sigfig, unit_to_english

__all__ = [
    "Measurement",
    "TaskSpec",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "trim_sigfig",
    "unit_to_english",
]
