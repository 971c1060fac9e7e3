"""Fuzzers for operators of dense tensors: the reference's streams, and shares as they are specified."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.benchmark.op_fuzzers.binary import BinaryOpFuzzer as ReferenceBinary
from torch.utils.benchmark.op_fuzzers.unary import UnaryOpFuzzer as ReferenceUnary

from tests import reference_fuzzers
from tests.sampling import assert_shares
from torchmark import BinaryOpFuzzer, Fuzzer, UnaryOpFuzzer, UsageError
from torchmark.fuzz.fuzzer import Draft
from torchmark.fuzz.operators import DIM_CHOICES, PRESETS, REFERENCE

DRAFTS = 2000
Build = Callable[..., Fuzzer]


@functools.cache
def draft_many(build: Build, preset: str | None) -> tuple[Fuzzer, list[Draft]]:
    """Inputs that several tests look at; nothing is allocated."""
    fuzzer = build(seed=20, preset=preset)
    return fuzzer, [fuzzer.draft(index) for index in range(DRAFTS if preset == "small" else 300)]


@pytest.fixture(name="repaired")
def _repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    reference_fuzzers.repair(monkeypatch)


# --- The same as the reference ----------------------------------------------------------------------------


@pytest.mark.usefixtures("repaired")
@pytest.mark.parametrize("dtype", [torch.float32, torch.int8])
def test_inputs_of_one_tensor_are_those_of_the_reference(dtype: torch.dtype) -> None:
    for seed in range(12):
        ours = UnaryOpFuzzer(seed, dtype, device="meta").take(5)
        for item, (tensors, properties, params) in zip(
            ours, reference_fuzzers.take(ReferenceUnary(seed, dtype), 5), strict=True
        ):
            assert item.params == params
            assert_same_layout(item.tensors["x"], item.tensor_properties["x"], tensors["x"], properties["x"])


@pytest.mark.usefixtures("repaired")
def test_inputs_of_two_tensors_are_those_of_the_reference_until_steps_of_the_second_count() -> None:
    """There, they never do; here, what is too large with them is drawn again."""
    compared = 0
    for seed in range(30):
        fuzzer = BinaryOpFuzzer(seed, device="meta")
        for item, (tensors, properties, params) in zip(
            fuzzer.take(5), reference_fuzzers.take(ReferenceBinary(seed), 5), strict=True
        ):
            if item.params != params:
                assert fuzzer.specification[1][1].find_breaches(params) == ["max_allocation_bytes=2147483648"]
                break
            assert_same_layout(item.tensors["x"], item.tensor_properties["x"], tensors["x"], properties["x"])
            assert item.tensors["y"].shape == tensors["y"].shape
            assert list(item.tensor_properties["y"]["order"]) == list(properties["y"]["order"])
            dim = params["dim"]
            assert item.tensor_properties["y"]["steps"] == tuple(params[f"y_step_{i}"] for i in range(dim))
            compared += 1
    assert compared > 100


def assert_same_layout(
    ours: torch.Tensor, properties: dict[str, Any], theirs: torch.Tensor, their_properties: dict[str, Any]
) -> None:
    assert (ours.shape, ours.stride(), ours.dtype) == (theirs.shape, theirs.stride(), theirs.dtype)
    assert list(properties.pop("order")) == list(their_properties.pop("order"))
    assert properties == their_properties


def test_content_is_that_of_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("torch.utils.benchmark.FuzzedParameter._check_distribution", lambda self, given: given)
        small = [s for s in range(60) if find_allocated(UnaryOpFuzzer(s)) <= 2**17][:2]
        assert len(small) == 2
        for seed in small:
            ((tensors, _, params),) = reference_fuzzers.take(ReferenceUnary(seed), 1)
            (item,) = UnaryOpFuzzer(seed).take(1)
            assert item.params == params
            assert torch.equal(item.tensors["x"], tensors["x"])


def find_allocated(fuzzer: Fuzzer) -> int:
    (params,) = fuzzer.parameters(1)
    return math.prod(fuzzer.specification[1][0].find_extent(params).allocated)


# --- As specified -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", [None, *PRESETS])
@pytest.mark.parametrize("build", [UnaryOpFuzzer, BinaryOpFuzzer])
def test_all_inputs_are_within_bounds(build: Build, preset: str | None) -> None:
    sizes = REFERENCE if preset is None else PRESETS[preset]
    fuzzer, drafts = draft_many(build, preset)
    for draft in drafts:
        described = fuzzer.describe(draft)
        x = described["x"]
        assert sizes.min_elements <= x["numel"] <= sizes.max_elements
        assert all(sizes.shortest <= n <= sizes.longest for n in x["size"])
        for tensor in described.values():
            assert 4 * math.prod(tensor["size"]) * math.prod(tensor["steps"]) <= sizes.max_allocation_bytes
            assert len(tensor["size"]) == len(tensor["steps"]) == draft.params["dim"]


def test_the_first_inputs_of_many_seeds_are_within_bounds() -> None:
    sizes, dims = PRESETS["small"], []
    for seed in range(300):
        ((_, properties, params),) = UnaryOpFuzzer(seed, preset="small", device="meta").take(1)
        assert sizes.min_elements <= properties["x"]["numel"] <= sizes.max_elements
        dims.append(params["dim"])
    assert_shares(dims, DIM_CHOICES)


@pytest.mark.parametrize("build", [UnaryOpFuzzer, BinaryOpFuzzer])
def test_dimensions_kinds_of_lengths_and_orders_have_their_shares(build: Build) -> None:
    _, drafts = draft_many(build, "small")
    assert_shares((draft.params["dim"] for draft in drafts), DIM_CHOICES)
    kinds = []
    for params in (draft.params for draft in drafts):
        for i in range(3):
            length, free, power = params[f"k{i}"], params[f"k_any_{i}"], params[f"k_pow2_{i}"]
            assert length in (free, power)
            assert power.bit_count() == 1
            if free != power:
                kinds.append(length == power)
    assert_shares(kinds, {True: 0.2, False: 0.8})
    for position in range(len(drafts[0].orders)):
        orders = [d.orders[position].tolist() for d in drafts if d.params["dim"] > 1]
        assert_shares((order == sorted(order) for order in orders), {True: 0.75, False: 0.25})


def test_a_fifth_of_the_lengths_of_the_second_operand_are_broadcast() -> None:
    _, drafts = draft_many(BinaryOpFuzzer, "small")
    pairs = [(draft.params[f"k{i}"], draft.params[f"y_k{i}"]) for draft in drafts for i in range(3)]
    # No length of the first one is 1.
    assert all(y in (1, x) and x > 1 for x, y in pairs)
    assert_shares((y == 1 for _, y in pairs), {True: 0.2, False: 0.8})


def test_both_operands_can_be_used_together_and_have_steps_of_their_own() -> None:
    fuzzer, drafts = draft_many(BinaryOpFuzzer, "small")
    for index in range(50):
        tensors = fuzzer[index].tensors
        assert (tensors["x"] + tensors["y"]).shape == tensors["x"].shape
    described = [fuzzer.describe(draft) for draft in drafts]
    assert any(d["x"]["steps"] != d["y"]["steps"] for d in described)


@pytest.mark.parametrize("build", [UnaryOpFuzzer, BinaryOpFuzzer])
def test_a_preset_that_does_not_exist_is_refused(build: Build) -> None:
    with pytest.raises(UsageError, match=r"There is no preset 'tiny'\. There are: small, medium, large\."):
        build(seed=0, preset="tiny")
