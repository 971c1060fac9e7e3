"""One real input of each of hundreds of seeds: everything as specified, to within sampling error."""

from __future__ import annotations

import math

import torch

from tests.sampling import assert_shares
from torchmark import BinaryOpFuzzer, BinaryOpSparseFuzzer
from torchmark.fuzz.operators import DENSITY_CHOICES, DIM_CHOICES, PRESETS, PROBABILITY_CONTIGUOUS, STEP_CHOICES

SEEDS = 600
SMALL = PRESETS["small"]


def test_dense_inputs_of_hundreds_of_seeds_are_as_specified() -> None:
    dims, straight, broadcast, allocated = [], [], [], []
    for seed in range(SEEDS):
        fuzzer = BinaryOpFuzzer(seed, preset="small")
        # Both streams.
        for tensors, properties, params in (next(fuzzer.take(1)), fuzzer[0]):
            dim = params["dim"]
            dims.append(dim)
            assert SMALL.min_elements <= tensors["x"].numel() <= SMALL.max_elements
            assert tuple(tensors["x"].shape) == tuple(params[f"k{i}"] for i in range(dim))
            assert tuple(tensors["y"].shape) == tuple(params[f"y_k{i}"] for i in range(dim))
            assert all(SMALL.shortest <= n <= SMALL.longest for n in tensors["x"].shape)
            assert all(params[f"k{i}"] in (params[f"k_any_{i}"], params[f"k_pow2_{i}"]) for i in range(dim))
            broadcast += [params[f"y_k{i}"] == 1 for i in range(3)]
            assert all(params[f"y_k{i}"] in (1, params[f"k{i}"]) for i in range(3))
            for name, tensor in tensors.items():
                assert tensor.untyped_storage().nbytes() <= SMALL.max_allocation_bytes
                steps = tuple(params[f"{name}_step_{i}"] for i in range(dim))
                assert properties[name]["steps"] == steps
                assert set(steps) <= set(STEP_CHOICES)
                order = tuple(map(int, properties[name]["order"]))
                if dim > 1:
                    straight.append(order == tuple(range(dim)))
                allocated.append(tensor.untyped_storage().nbytes() // 4 == math.prod(tensor.shape) * math.prod(steps))
    assert all(allocated)
    assert_shares(dims, DIM_CHOICES)
    assert_shares(straight, {True: PROBABILITY_CONTIGUOUS, False: 1 - PROBABILITY_CONTIGUOUS})
    assert_shares(broadcast, {False: 0.8, True: 0.2})


def test_sparse_inputs_of_hundreds_of_seeds_are_as_specified() -> None:
    dims, densities, coalesced = [], [], []
    for seed in range(SEEDS):
        tensors, _, params = BinaryOpSparseFuzzer(seed, preset="small")[0]
        sparse_dim = min(params["sparse_dim"], params["dim_parameter"])
        dims.append(params["dim_parameter"])
        densities.append(params["density"])
        coalesced.append(params["coalesced"])
        assert tensors["x"].shape == tensors["y"].shape
        for tensor in tensors.values():
            assert SMALL.min_elements <= tensor.numel() <= SMALL.max_elements
            assert tensor.sparse_dim() == sparse_dim
            places = math.prod(tensor.shape[:sparse_dim])
            # Distinct positions; one more than the share at most, since there is no part of a position.
            positions = torch.unique(tensor._indices(), dim=1).shape[1]
            assert 0 <= positions - places * params["density"] < 1 + 1e-6
            assert tensor._nnz() == positions * (1 if params["coalesced"] else 2)
    assert_shares(dims, DIM_CHOICES)
    assert_shares(densities, DENSITY_CHOICES)
    assert_shares(coalesced, {True: 0.5, False: 0.5})
