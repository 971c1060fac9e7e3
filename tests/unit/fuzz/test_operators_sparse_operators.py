"""Fuzzers for operators of sparse tensors: the reference's parameters, and shares as they are specified."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from torch.utils.benchmark.op_fuzzers.sparse_binary import BinaryOpSparseFuzzer as ReferenceBinary
from torch.utils.benchmark.op_fuzzers.sparse_unary import UnaryOpSparseFuzzer as ReferenceUnary

from tests import reference_fuzzers
from tests.sampling import assert_shares
from torchmark import BinaryOpSparseFuzzer, Fuzzer, UnaryOpSparseFuzzer
from torchmark.fuzz.fuzzer import Draft
from torchmark.fuzz.operators import DENSITY_CHOICES, DIM_CHOICES, PRESETS, REFERENCE, SPARSE_DIM_CHOICES

Build = Callable[..., Fuzzer]
BOTH: list[Build] = [UnaryOpSparseFuzzer, BinaryOpSparseFuzzer]


@functools.cache
def draft_many(build: Build, preset: str | None) -> tuple[Fuzzer, list[Draft]]:
    """Inputs that several tests look at; nothing is allocated."""
    fuzzer = build(seed=20, preset=preset)
    return fuzzer, [fuzzer.draft(index) for index in range(1000 if preset == "small" else 200)]


def test_parameters_are_those_of_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    reference_fuzzers.repair(monkeypatch)
    for seed in range(12):
        for ours, theirs in (
            (UnaryOpSparseFuzzer(seed), ReferenceUnary(seed)),
            (BinaryOpSparseFuzzer(seed), ReferenceBinary(seed)),
        ):
            assert list(ours.parameters(6)) == list(reference_fuzzers.draw_parameters(theirs, 6))


@pytest.mark.parametrize("preset", [None, *PRESETS])
@pytest.mark.parametrize("build", BOTH)
def test_all_inputs_are_within_bounds(build: Build, preset: str | None) -> None:
    sizes = REFERENCE if preset is None else PRESETS[preset]
    fuzzer, drafts = draft_many(build, preset)
    for draft in drafts:
        for tensor in fuzzer.describe(draft).values():
            assert sizes.min_elements <= tensor["numel"] <= sizes.max_elements
            assert all(sizes.shortest <= n <= sizes.longest for n in tensor["size"])


@pytest.mark.parametrize("build", BOTH)
def test_dimensions_densities_and_forms_have_their_shares(build: Build) -> None:
    _, drafts = draft_many(build, "small")
    drawn = [draft.params for draft in drafts]
    assert_shares((params["dim_parameter"] for params in drawn), DIM_CHOICES)
    assert_shares((params["sparse_dim"] for params in drawn), SPARSE_DIM_CHOICES)
    assert_shares((params["density"] for params in drawn), DENSITY_CHOICES)
    assert_shares((params["coalesced"] for params in drawn), {True: 0.5, False: 0.5})


@pytest.mark.parametrize("build", BOTH)
def test_tensors_have_the_density_that_was_drawn(build: Build) -> None:
    fuzzer = build(seed=21, preset="small")
    for index in range(60):
        item = fuzzer[index]
        for x in item.tensors.values():
            sparse_dim = min(item.params["sparse_dim"], item.params["dim_parameter"])
            nnz = math.ceil(math.prod(x.shape[:sparse_dim]) * Fraction(str(item.params["density"])))
            assert (x.sparse_dim(), x.is_coalesced()) == (sparse_dim, item.params["coalesced"])
            assert x.coalesce()._nnz() == nnz
            assert x._nnz() == (nnz if item.params["coalesced"] else 2 * nnz)


def test_both_operands_have_the_same_size_but_not_the_same_content() -> None:
    fuzzer = BinaryOpSparseFuzzer(seed=22, preset="small")
    for index in range(20):
        x, y = fuzzer[index].tensors.values()
        assert (x + y).shape == x.shape == y.shape
        assert not torch.equal(x._values(), y._values())


def test_the_type_may_be_left_open() -> None:
    assert UnaryOpSparseFuzzer(0, None, preset="small")[0].tensors["x"].dtype == torch.float32
    assert UnaryOpSparseFuzzer(0, torch.int32, preset="small")[0].tensors["x"].dtype == torch.int32
