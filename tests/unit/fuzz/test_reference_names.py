"""Scripts for `torch.utils.benchmark` find fuzzers where they were, with the arguments that they had."""

from __future__ import annotations

import importlib
import inspect

import pytest

import torchmark

MODULES = {
    "utils.fuzzer": ("Fuzzer", "FuzzedParameter", "ParameterAlias", "FuzzedTensor", "dtype_size", "prod"),
    "utils.sparse_fuzzer": ("FuzzedSparseTensor",),
    "op_fuzzers.unary": ("UnaryOpFuzzer",),
    "op_fuzzers.binary": ("BinaryOpFuzzer",),
    "op_fuzzers.spectral": ("SpectralOpFuzzer", "REGULAR_SIZES", "MIN_DIM_SIZE", "MAX_DIM_SIZE", "power_range"),
    "op_fuzzers.sparse_unary": ("UnaryOpSparseFuzzer",),
    "op_fuzzers.sparse_binary": ("BinaryOpSparseFuzzer",),
}
NAMES = [(module, name) for module, names in MODULES.items() for name in names]
CLASSES = [(module, name) for module, name in NAMES if name.endswith(("Fuzzer", "Parameter", "Alias", "Tensor"))]


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_names_are_where_they_were(module: str, name: str) -> None:
    theirs = getattr(importlib.import_module(f"torch.utils.benchmark.{module}"), name)
    ours = getattr(importlib.import_module(f"torchmark.{module}"), name)
    assert type(ours) is type(theirs)
    if (module, name) in CLASSES:
        assert ours is getattr(torchmark, name)
    if not callable(theirs):
        assert ours == theirs


@pytest.mark.parametrize(("module", "name"), CLASSES)
def test_arguments_have_their_order_and_defaults(module: str, name: str) -> None:
    theirs = inspect.signature(getattr(importlib.import_module(f"torch.utils.benchmark.{module}"), name)).parameters
    ours = inspect.signature(getattr(torchmark, name)).parameters
    listed = [(p.name, p.kind, p.default) for p in ours.values()]
    assert listed[: len(theirs)] == [(p.name, p.kind, p.default) for p in theirs.values()]
    # What is added cannot be mistaken for something of theirs.
    assert all(kind is inspect.Parameter.KEYWORD_ONLY for _, kind, _ in listed[len(theirs) :])


@pytest.mark.parametrize("package", ["utils.fuzzer", "op_fuzzers.unary"])
def test_packages_are_found_as_attributes(package: str) -> None:
    first, second = package.split(".")
    assert getattr(getattr(torchmark, first), second) is importlib.import_module(f"torchmark.{package}")


def test_methods_that_scripts_use_are_there() -> None:
    for name, methods in {
        "Fuzzer": ("take", "rejection_rate"),
        "FuzzedParameter": ("name", "sample"),
        "FuzzedTensor": ("name", "default_tensor_constructor", "satisfies_constraints"),
        "FuzzedSparseTensor": ("sparse_tensor_constructor",),
    }.items():
        assert all(hasattr(getattr(torchmark, name), method) for method in methods)
