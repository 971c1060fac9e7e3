"""Text that makes an input makes the same input, with torch alone and in old interpreters."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from torchmark import (
    BinaryOpFuzzer,
    BinaryOpSparseFuzzer,
    DefinitionError,
    FuzzedParameter,
    FuzzedSparseTensor,
    FuzzedTensor,
    Fuzzer,
    SpectralOpFuzzer,
    Timer,
    UnaryOpFuzzer,
    UnaryOpSparseFuzzer,
)

DENSE: list[Callable[..., Fuzzer]] = [UnaryOpFuzzer, BinaryOpFuzzer, SpectralOpFuzzer]
SPARSE: list[Callable[..., Fuzzer]] = [UnaryOpSparseFuzzer, BinaryOpSparseFuzzer]
DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.complex64,
    torch.int8,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.bool,
]


def execute(text: str) -> dict[str, Any]:
    """The variables that a text leaves behind, if all it has is torch."""
    variables: dict[str, Any] = {"torch": torch}
    with torch.random.fork_rng():
        exec(text, variables)
    return variables


def assert_same(made: torch.Tensor, expected: torch.Tensor) -> None:
    assert (made.dtype, made.shape, made.layout) == (expected.dtype, expected.shape, expected.layout)
    if made.layout == torch.sparse_coo:
        assert made.is_coalesced() == expected.is_coalesced()
        assert torch.equal(made._indices(), expected._indices())
        assert torch.equal(made._values(), expected._values())
        return
    assert made.stride() == expected.stride()
    if made.dtype == torch.float8_e4m3fn:
        # Nothing compares these.
        made, expected = made.view(torch.uint8), expected.view(torch.uint8)
    assert torch.equal(made, expected)


@pytest.mark.parametrize(
    ("build", "dtype"),
    [(build, dtype) for build in DENSE for dtype in [*DTYPES, torch.float8_e4m3fn]]
    + [(build, dtype) for build in SPARSE for dtype in DTYPES],
)
def test_a_text_makes_the_same_input(build: Callable[..., Fuzzer], dtype: torch.dtype) -> None:
    fuzzer = build(seed=11, dtype=dtype, preset="small")
    for index in (0, 1, 2):
        text = fuzzer.write(fuzzer.draft(index))
        variables, item = execute(text), fuzzer[index]
        for name, tensor in item.tensors.items():
            assert_same(variables[name], tensor)
        for name in fuzzer.names_in_use(fuzzer.draft(index)):
            assert variables[name] == item.params[name]


@pytest.mark.parametrize("build", DENSE + SPARSE)
def test_a_text_is_python_3_9_without_annotations(build: Callable[..., Fuzzer]) -> None:
    fuzzer = build(seed=3, preset="small")
    tree = ast.parse(fuzzer.write(fuzzer.draft(0)), feature_version=(3, 9))
    for node in ast.walk(tree):
        assert not isinstance(node, (ast.AnnAssign, ast.Import, ast.ImportFrom, ast.Match))
        if isinstance(node, ast.arg):
            assert node.annotation is None
        if isinstance(node, ast.FunctionDef):
            assert node.returns is None
            assert ast.get_docstring(node) is None


def test_all_layouts_are_written() -> None:
    steps = [FuzzedParameter(f"s{i}", distribution={1: 0.5, 3: 0.5}) for i in range(3)]
    sizes = [FuzzedParameter(f"k{i}", 0, 4, "uniform") for i in range(3)]
    tensor = FuzzedTensor("x", ("k0", "k1", "k2"), ("s0", "s1", "s2"), 0.3, dim_parameter="dim", dtype=torch.int16)
    fuzzer = Fuzzer([FuzzedParameter("dim", 0, 4, "uniform"), sizes, steps], [tensor], seed=1)
    for index in range(200):
        assert_same(execute(fuzzer.write(fuzzer.draft(index)))["x"], fuzzer[index].tensors["x"])


def test_crowded_sparse_tensors_are_written() -> None:
    parameters = [FuzzedParameter("share", 0.0, 1.0, "uniform"), FuzzedParameter("n", 0, 9, "uniform")]
    tensor = FuzzedSparseTensor("x", ("n", 4, 2), density="share", sparse_dim=2, coalesced=False)
    fuzzer = Fuzzer(parameters, [tensor], seed=1)
    for index in range(30):
        assert_same(execute(fuzzer.write(fuzzer.draft(index)))["x"], fuzzer[index].tensors["x"])


def test_a_text_serves_as_a_setup() -> None:
    fuzzer = BinaryOpSparseFuzzer(seed=4, preset="small")
    with torch.random.fork_rng():
        assert Timer("x.shape, y.shape", setup=fuzzer.write(fuzzer.draft(0))).timeit(1).times


def test_only_names_in_use_become_variables() -> None:
    fuzzer = UnaryOpFuzzer(seed=0, preset="small")
    for index in range(20):
        draft = fuzzer.draft(index)
        dim = draft.params["dim"]
        expected = {"dim", *(f"k{i}" for i in range(dim)), *(f"x_step_{i}" for i in range(dim))}
        assert set(fuzzer.names_in_use(draft)) == expected
        assert set(execute(fuzzer.write(draft))) - {"torch", "x", "__builtins__"} == expected


@pytest.mark.parametrize("name", ["class", "a b", "torch", "make_sparse", "None"])
def test_a_parameter_whose_name_is_taken_is_no_variable(name: str) -> None:
    tensors = [FuzzedTensor("x", (name,)), FuzzedSparseTensor("y", (name,), density=0.5)]
    fuzzer = Fuzzer([FuzzedParameter(name, 2, 9, "uniform")], tensors, seed=0)
    variables = execute(fuzzer.write(fuzzer.draft(0)))
    for tensor in ("x", "y"):
        assert_same(variables[tensor], fuzzer[0].tensors[tensor])


@pytest.mark.parametrize("name", ["class", "a b", "x-1", "", "torch", "fill"])
def test_a_tensor_whose_name_is_taken_cannot_be_written(name: str) -> None:
    fuzzer = Fuzzer([], [FuzzedTensor(name, (2,))], seed=0)
    with pytest.raises(DefinitionError, match=rf"no variable called '{name}', or uses it here\. Rename the tensor\."):
        fuzzer.write(fuzzer.draft(0))


def test_what_a_function_of_the_user_makes_cannot_be_written() -> None:
    fuzzer = Fuzzer([], [FuzzedTensor("x", (2,), tensor_constructor=torch.zeros)], seed=0)
    with pytest.raises(DefinitionError, match=r"Tensor 'x' is made by a function of yours \(tensor_constructor\)"):
        fuzzer.write(fuzzer.draft(0))


def test_numbers_of_numpy_are_written_as_pythons() -> None:
    size: Any = (np.int64(2), "n")
    fuzzer = Fuzzer([FuzzedParameter("n", distribution={np.int64(3): 1.0})], [FuzzedTensor("x", size)], seed=0)
    assert_same(execute(fuzzer.write(fuzzer.draft(0)))["x"], fuzzer[0].tensors["x"])


def test_a_copy_to_a_gpu_is_written_though_there_is_none_here() -> None:
    fuzzer = Fuzzer([], [FuzzedTensor("x", (2,), cuda=True), FuzzedTensor("y", (2,), device="cuda:1")], seed=0)
    lines = fuzzer.write(fuzzer.draft(0)).splitlines()
    assert lines[-2:] == [
        "x = torch.rand((2,), dtype=torch.float32, device='cpu').to('cuda')",
        "y = torch.rand((2,), dtype=torch.float32, device='cuda:1')",
    ]
