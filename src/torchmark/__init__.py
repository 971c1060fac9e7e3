"""Measure PyTorch code: how long it takes, how many instructions, and whether the number can be trusted.

Names load on first use, so that `import torchmark` costs nothing and only what measures imports torch.
"""

from __future__ import annotations

__version__ = "0.1.0"

# As typing.TYPE_CHECKING, without the time that importing typing takes.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from torchmark.analysis.arrange import ordered_unique as ordered_unique
    from torchmark.api.compare import Compare as Compare
    from torchmark.api.copies import CopyIfCallgrind as CopyIfCallgrind
    from torchmark.api.functions import FunctionCount as FunctionCount
    from torchmark.api.functions import FunctionCounts as FunctionCounts
    from torchmark.api.measurement import Measurement as Measurement
    from torchmark.api.stats import CallgrindStats as CallgrindStats
    from torchmark.api.timer import Timer as Timer
    from torchmark.errors import SetupError as SetupError
    from torchmark.errors import SnippetError as SnippetError
    from torchmark.errors import StoreError as StoreError
    from torchmark.errors import TorchmarkError as TorchmarkError
    from torchmark.errors import UsageError as UsageError
    from torchmark.errors import WorkerError as WorkerError
    from torchmark.measure.clock import timer as timer
    from torchmark.measure.threads import set_torch_threads as set_torch_threads
    from torchmark.model.summary import Interval as Interval
    from torchmark.model.task import Language as Language
    from torchmark.model.task import TaskSpec as TaskSpec
    from torchmark.report.table import Colorize as Colorize
    from torchmark.report.units import select_unit as select_unit
    from torchmark.report.units import trim_sigfig as trim_sigfig
    from torchmark.report.units import unit_to_english as unit_to_english

_HOMES = {
    "CallgrindStats": "api.stats",
    "Colorize": "report.table",
    "Compare": "api.compare",
    "CopyIfCallgrind": "api.copies",
    "FunctionCount": "api.functions",
    "FunctionCounts": "api.functions",
    "Interval": "model.summary",
    "Language": "model.task",
    "Measurement": "api.measurement",
    "SetupError": "errors",
    "SnippetError": "errors",
    "StoreError": "errors",
    "TaskSpec": "model.task",
    "Timer": "api.timer",
    "TorchmarkError": "errors",
    "UsageError": "errors",
    "WorkerError": "errors",
    "ordered_unique": "analysis.arrange",
    "select_unit": "report.units",
    "set_torch_threads": "measure.threads",
    "timer": "measure.clock",
    "trim_sigfig": "report.units",
    "unit_to_english": "report.units",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "utils":
        return import_module("torchmark.utils")
    if name not in _HOMES:
        raise AttributeError(f"module 'torchmark' has no attribute {name!r}")
    value = getattr(import_module(f"torchmark.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
