"""Measure PyTorch code: how long it takes, how many instructions, and whether the number can be trusted.

Names load on first use, so that `import torchmark` costs nothing and only what measures imports torch.
"""

from __future__ import annotations

__version__ = "0.1.0"

# As typing.TYPE_CHECKING, without the time that importing typing takes.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from torchmark.analysis.grid import ordered_unique as ordered_unique
    from torchmark.api.ab import Judgement as Judgement
    from torchmark.api.ab import ab as ab
    from torchmark.api.benchmarks import BenchmarkResult as BenchmarkResult
    from torchmark.api.benchmarks import run_benchmarks as run_benchmarks
    from torchmark.api.callgrind_stats import CallgrindStats as CallgrindStats
    from torchmark.api.callgrind_stats import FunctionCount as FunctionCount
    from torchmark.api.callgrind_stats import FunctionCounts as FunctionCounts
    from torchmark.api.compare import Compare as Compare
    from torchmark.api.definitions import materialize as materialize
    from torchmark.api.inputs import FuzzedResult as FuzzedResult
    from torchmark.api.inputs import measure_inputs as measure_inputs
    from torchmark.api.measurement import Measurement as Measurement
    from torchmark.api.timer import Timer as Timer
    from torchmark.api.timer_engines import CopyIfCallgrind as CopyIfCallgrind
    from torchmark.define.expand import flatten as flatten
    from torchmark.define.groups import GroupedBenchmark as GroupedBenchmark
    from torchmark.define.groups import GroupedModules as GroupedModules
    from torchmark.define.groups import GroupedStmts as GroupedStmts
    from torchmark.define.groups import GroupedVariants as GroupedVariants
    from torchmark.define.options import GroupedSetup as GroupedSetup
    from torchmark.define.signature import join_stmts as join_stmts
    from torchmark.define.signature import parse_stmts as parse_stmts
    from torchmark.errors import DefinitionError as DefinitionError
    from torchmark.errors import SetupError as SetupError
    from torchmark.errors import SnippetError as SnippetError
    from torchmark.errors import StoreError as StoreError
    from torchmark.errors import TorchmarkError as TorchmarkError
    from torchmark.errors import UsageError as UsageError
    from torchmark.errors import WorkerError as WorkerError
    from torchmark.fuzz.fuzzer import FuzzedItem as FuzzedItem
    from torchmark.fuzz.fuzzer import Fuzzer as Fuzzer
    from torchmark.fuzz.operators import BinaryOpFuzzer as BinaryOpFuzzer
    from torchmark.fuzz.operators import BinaryOpSparseFuzzer as BinaryOpSparseFuzzer
    from torchmark.fuzz.operators import SpectralOpFuzzer as SpectralOpFuzzer
    from torchmark.fuzz.operators import UnaryOpFuzzer as UnaryOpFuzzer
    from torchmark.fuzz.operators import UnaryOpSparseFuzzer as UnaryOpSparseFuzzer
    from torchmark.fuzz.parameters import FuzzedParameter as FuzzedParameter
    from torchmark.fuzz.parameters import ParameterAlias as ParameterAlias
    from torchmark.fuzz.sparse import FuzzedSparseTensor as FuzzedSparseTensor
    from torchmark.fuzz.tensors import FuzzedTensor as FuzzedTensor
    from torchmark.measure.clock import set_torch_threads as set_torch_threads
    from torchmark.measure.clock import timer as timer
    from torchmark.model.judgement import Verdict as Verdict
    from torchmark.model.plan import AutogradMode as AutogradMode
    from torchmark.model.plan import AutoLabels as AutoLabels
    from torchmark.model.plan import CompileMode as CompileMode
    from torchmark.model.plan import RuntimeMode as RuntimeMode
    from torchmark.model.plan import TimerArgs as TimerArgs
    from torchmark.model.task import Interval as Interval
    from torchmark.model.task import Language as Language
    from torchmark.model.task import TaskSpec as TaskSpec
    from torchmark.report.text.grid import Colorize as Colorize
    from torchmark.report.text.units import select_unit as select_unit
    from torchmark.report.text.units import trim_sigfig as trim_sigfig
    from torchmark.report.text.units import unit_to_english as unit_to_english

_HOMES = {
    "AutoLabels": "model.plan",
    "AutogradMode": "model.plan",
    "BenchmarkResult": "api.benchmarks",
    "BinaryOpFuzzer": "fuzz.operators",
    "BinaryOpSparseFuzzer": "fuzz.operators",
    "CallgrindStats": "api.callgrind_stats",
    "Colorize": "report.text.grid",
    "Compare": "api.compare",
    "CompileMode": "model.plan",
    "CopyIfCallgrind": "api.timer_engines",
    "DefinitionError": "errors",
    "FunctionCount": "api.callgrind_stats",
    "FunctionCounts": "api.callgrind_stats",
    "FuzzedItem": "fuzz.fuzzer",
    "FuzzedParameter": "fuzz.parameters",
    "FuzzedResult": "api.inputs",
    "FuzzedSparseTensor": "fuzz.sparse",
    "FuzzedTensor": "fuzz.tensors",
    "Fuzzer": "fuzz.fuzzer",
    "GroupedBenchmark": "define.groups",
    "GroupedModules": "define.groups",
    "GroupedSetup": "define.options",
    "GroupedStmts": "define.groups",
    "GroupedVariants": "define.groups",
    "Interval": "model.task",
    "Judgement": "api.ab",
    "Language": "model.task",
    "Measurement": "api.measurement",
    "ParameterAlias": "fuzz.parameters",
    "RuntimeMode": "model.plan",
    "SetupError": "errors",
    "SnippetError": "errors",
    "SpectralOpFuzzer": "fuzz.operators",
    "StoreError": "errors",
    "TaskSpec": "model.task",
    "Timer": "api.timer",
    "TimerArgs": "model.plan",
    "TorchmarkError": "errors",
    "UnaryOpFuzzer": "fuzz.operators",
    "UnaryOpSparseFuzzer": "fuzz.operators",
    "UsageError": "errors",
    "Verdict": "model.judgement",
    "WorkerError": "errors",
    "ab": "api.ab",
    "flatten": "define.expand",
    "join_stmts": "define.signature",
    "materialize": "api.definitions",
    "measure_inputs": "api.inputs",
    "ordered_unique": "analysis.grid",
    "parse_stmts": "define.signature",
    "run_benchmarks": "api.benchmarks",
    "select_unit": "report.text.units",
    "set_torch_threads": "measure.clock",
    "timer": "measure.clock",
    "trim_sigfig": "report.text.units",
    "unit_to_english": "report.text.units",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in ("op_fuzzers", "utils"):
        return import_module(f"torchmark.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'torchmark' has no attribute {name!r}")
    value = getattr(import_module(f"torchmark.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
