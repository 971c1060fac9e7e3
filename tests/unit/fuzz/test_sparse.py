"""Sparse tensors have exactly the positions, density and form that were asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from torchmark import DefinitionError, FuzzedParameter, FuzzedSparseTensor, Fuzzer, UsageError

DENSITIES = (0.0, 0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 1.0)


def make_varied(seed: int, dtype: torch.dtype = torch.float32) -> Fuzzer:
    return Fuzzer(
        [
            FuzzedParameter("dim", 1, 3, "uniform"),
            FuzzedParameter("sparse", 0, 4, "uniform"),
            [FuzzedParameter(f"k{i}", 0, 12, "uniform") for i in range(3)],
            FuzzedParameter("share", distribution=dict.fromkeys(DENSITIES, 1 / len(DENSITIES))),
            FuzzedParameter("once", distribution={True: 0.5, False: 0.5}),
        ],
        [
            FuzzedSparseTensor(
                "x",
                ("k0", "k1", "k2"),
                max_elements=500,
                dim_parameter="dim",
                sparse_dim="sparse",
                density="share",
                coalesced="once",
                dtype=dtype,
            )
        ],
        seed=seed,
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.complex64, torch.bfloat16], ids=str)
def test_positions_are_distinct_and_as_many_as_the_density_says(dtype: torch.dtype) -> None:
    fuzzer = make_varied(3, dtype)
    for index in range(150):
        item = fuzzer[index]
        x, params, properties = item.tensors["x"], item.params, item.tensor_properties["x"]
        size = [params[f"k{i}"] for i in range(params["dim"])]
        sparse_dim = min(params["sparse"], len(size))
        nnz = math.ceil(math.prod(size[:sparse_dim]) * Fraction(str(params["share"])))
        assert (x.layout, x.dtype, list(x.shape)) == (torch.sparse_coo, dtype, size)
        assert (x.sparse_dim(), x.dense_dim()) == (sparse_dim, len(size) - sparse_dim)
        assert x._nnz() == nnz * (1 if params["once"] else 2)
        assert x.coalesce()._nnz() == nnz
        assert x.is_coalesced() == (params["once"] or nnz == 0)
        assert (properties["sparse_dim"], properties["is_hybrid"]) == (sparse_dim, sparse_dim < len(size))
        assert properties["sparsity"] == 1 - params["share"]


def test_a_description_is_what_torch_says_of_the_tensor() -> None:
    fuzzer = make_varied(4)
    for index in range(150):
        item = fuzzer[index]
        described = fuzzer.describe(fuzzer.draft(index))["x"]
        assert described.pop("size") == tuple(item.tensors["x"].shape)
        assert described == item.tensor_properties["x"]
        assert described["is_coalesced"] == item.tensors["x"].is_coalesced()


def test_a_density_that_is_no_binary_fraction_is_not_rounded_up_twice() -> None:
    # 0.1 * 30 is a little more than 3, and 0.07 * 100 a little more than 7.
    for length, density, nnz in ((30, 0.1, 3), (100, 0.07, 7), (31, 0.1, 4), (1, 0.01, 1)):
        x = Fuzzer([], [FuzzedSparseTensor("x", (length,), density=density)], seed=0)[0].tensors["x"]
        assert x._nnz() == nnz


def test_values_and_names_both_say_what_is_made() -> None:
    parameters = [FuzzedParameter("few", 3, 3, "uniform"), FuzzedParameter("no", distribution={False: 1.0})]
    named = FuzzedSparseTensor("x", (4, 5), nnz="few", coalesced="no")
    given = FuzzedSparseTensor("y", (4, 5), nnz=3, coalesced=False, sparse_dim=1)
    item = Fuzzer(parameters, [named, given], seed=0)[0]
    assert [item.tensors[name]._nnz() for name in "xy"] == [6, 6]
    assert [item.tensors[name].sparse_dim() for name in "xy"] == [2, 1]
    assert [item.tensor_properties[name]["density"] for name in "xy"] == [3 / 20, 3 / 4]


def test_parameters_called_density_and_coalesced_are_used_without_being_named() -> None:
    parameters = [
        FuzzedParameter("density", 0.5, 0.5, "uniform"),
        FuzzedParameter("coalesced", distribution={False: 1}),
    ]
    assert Fuzzer(parameters, [FuzzedSparseTensor("x", (8,))], seed=0)[0].tensors["x"]._nnz() == 8
    assert Fuzzer(parameters[:1], [FuzzedSparseTensor("x", (8,))], seed=0)[0].tensors["x"]._nnz() == 4
    with pytest.raises(DefinitionError, match="Tensor 'x' uses 'density', which is no parameter"):
        Fuzzer([], [FuzzedSparseTensor("x", (8,))], seed=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nnz": 1, "density": 0.5}, r"nnz and density say the same thing: tensor 'x'\. Give one of them\."),
        ({"density": 1.5}, r"A density is from 0 to 1, not 1\.5: tensor 'x'\."),
        ({"density": -0.5}, "A density is from 0 to 1"),
        ({"nnz": -1}, r"nnz is a whole number from 0, or the name of a parameter, not -1: tensor 'x'\."),
        ({"nnz": 2.5}, r"nnz is a whole number from 0, .* not 2\.5"),
        ({"density": 0.5, "sparse_dim": -1}, "sparse_dim is a whole number from 0, .* not -1"),
        ({"dtype": torch.float8_e4m3fn}, r"cannot make sparse tensors of torch\.float8_e4m3fn: tensor 'x'\."),
        ({"dtype": torch.uint16}, r"cannot make sparse tensors of torch\.uint16"),
        ({"device": "meta"}, r"cannot coalesce sparse tensors on the meta device: tensor 'x'\."),
        ({"device": "nowhere"}, "not a device of torch"),
    ],
)
def test_what_no_sparse_tensor_can_be_made_from_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        FuzzedSparseTensor("x", (4, 5), **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"nnz": 0},
        {"nnz": 20},
        {"nnz": np.int64(2), "sparse_dim": np.int64(1)},
        {"density": 1},
        {"density": 0},
        {"density": 0.5, "dtype": torch.uint16, "coalesced": False},
        {"density": 0.5, "dtype": torch.float16},
        {"density": 0.5, "device": torch.device("cpu")},
    ],
)
def test_what_a_sparse_tensor_can_be_made_from_is_accepted(arguments: dict[str, Any]) -> None:
    assert Fuzzer([], [FuzzedSparseTensor("x", (4, 5), **arguments)], seed=0)[0].tensors["x"].shape == (4, 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nnz": 21}, "'x': nnz=21, for which there is no room: 100%"),
        ({"density": "much"}, "density='much', for which"),
        ({"density": 0.5, "sparse_dim": "below"}, "sparse_dim=-1, which is below zero: 100%"),
    ],
)
def test_a_form_that_no_tensor_has_is_explained(arguments: dict[str, Any], message: str) -> None:
    parameters = [FuzzedParameter("much", 1.1, 2.0, "uniform"), FuzzedParameter("below", -1, -1, "uniform")]
    with pytest.raises(UsageError, match=message):
        Fuzzer(parameters, [FuzzedSparseTensor("x", (4, 5), **arguments)], seed=0).draft(0)


def test_the_constructor_stands_alone() -> None:
    construct = FuzzedSparseTensor.sparse_tensor_constructor
    length: Any = np.int64(4)
    for size in (4, length, (4, 4)):
        made = construct(size, torch.float64, 2, 5, True)
        assert (made.shape, made._nnz(), made.dtype) == ((4, 4), 5, torch.float64)
    assert construct((4, 4), torch.int32, 1, 4, False)._values().shape == (8, 4)
    with pytest.raises(DefinitionError, match=r"A size of \(4, 4\) has no room for 17 positions\."):
        construct((4, 4), torch.float32, 2, 17, True)


class Diagonal(FuzzedSparseTensor):
    @staticmethod
    def sparse_tensor_constructor(
        size: Sequence[int] | int, dtype: torch.dtype, sparse_dim: int, nnz: int, is_coalesced: bool
    ) -> torch.Tensor:
        assert not isinstance(size, int)
        return torch.diag(torch.rand(min(size), dtype=dtype)).to_sparse()


def test_a_subclass_may_have_a_constructor_of_its_own() -> None:
    fuzzer = Fuzzer([], [Diagonal("x", (4, 5), density=0.1)], seed=0)
    before = torch.get_rng_state()
    assert fuzzer[0].tensors["x"].shape == (4, 4)
    assert torch.equal(fuzzer[0].tensors["x"].to_dense(), fuzzer[0].tensors["x"].to_dense())
    assert torch.equal(before, torch.get_rng_state())
    with pytest.raises(DefinitionError, match="cannot be written"):
        fuzzer.write(fuzzer.draft(0))


def test_the_default_device_changes_nothing() -> None:
    plain = make_varied(3)[5].tensors["x"]
    with torch.device("meta"):
        made = make_varied(3)[5].tensors["x"]
    assert torch.equal(made.to_dense(), plain.to_dense())
