"""Dense tensors: what is foretold of them is what torch says, and shares of memory orders are as asked for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.sampling import assert_shares
from torchmark import DefinitionError, FuzzedParameter, FuzzedTensor, Fuzzer, UsageError
from torchmark.fuzz.tensors import (
    Entropy,
    Params,
    check_dtype,
    dtype_size,
    fill,
    make_sparse,
    place_at_random,
    prod,
    unravel,
)

CPU = torch.device("cpu")


def test_a_stream_is_the_one_after_manual_seed() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(2**62 + 5)
        expected = torch.rand(5)
    assert torch.equal(torch.rand(5, generator=Entropy(2**62 + 5).on(CPU)), expected)


def test_code_that_knows_of_no_generators_takes_part_in_the_stream() -> None:
    entropy, other = Entropy(3), Entropy(3)
    before = torch.get_rng_state()
    first = torch.rand(4, generator=entropy.on(CPU))
    with entropy.as_global(CPU):
        second = torch.rand(4)
    third = torch.rand(4, generator=entropy.on(CPU))
    assert torch.equal(torch.cat([first, second, third]), torch.rand(12, generator=other.on(CPU)))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_failure_leaves_the_callers_numbers_alone() -> None:
    before = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError), Entropy(3).as_global(CPU):
        torch.rand(4 // 0)
    assert torch.equal(torch.get_rng_state(), before)


def test_nothing_is_drawn_on_the_meta_device() -> None:
    assert Entropy(3).on(torch.device("meta")) is None
    with Entropy(3).as_global(torch.device("meta")):
        assert torch.rand(2, device="meta").shape == (2,)


BITS = {torch.bool: 8, torch.complex64: 64, torch.complex128: 128, torch.float8_e5m2: 8, torch.bfloat16: 16}


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn])
def test_floats_are_from_0_to_1(dtype: torch.dtype) -> None:
    made = fill((1000,), dtype, generator=seeded(0)).to(torch.float64)
    assert 0 <= made.min() < 0.1
    assert 0.9 < made.max() <= 1


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64])
def test_whole_numbers_are_from_1_to_126(dtype: torch.dtype) -> None:
    made = fill((5000,), dtype, generator=seeded(0))
    assert (made.dtype, int(made.min()), int(made.max())) == (dtype, 1, 126)


def test_bool_is_either() -> None:
    assert set(fill((100,), torch.bool, generator=seeded(0)).tolist()) == {False, True}


@pytest.mark.parametrize("dtype", BITS, ids=str)
def test_an_element_has_all_its_bytes(dtype: torch.dtype) -> None:
    assert dtype_size(dtype) * 8 == BITS[dtype]


@pytest.mark.filterwarnings("ignore:.*quantize")
@pytest.mark.parametrize("dtype", [torch.qint8, torch.float4_e2m1fn_x2, torch.bits8], ids=str)
def test_types_that_cannot_be_filled_are_refused(dtype: torch.dtype) -> None:
    with pytest.raises(DefinitionError, match=rf"{dtype} cannot be filled with random values\. Give"):
        check_dtype(dtype)
    check_dtype(dtype, filled=False)


def test_what_is_no_type_is_refused() -> None:
    for dtype in ("float32", float, None):
        with pytest.raises(DefinitionError, match=r"A dtype is one of torch's, such as torch\.float32, not "):
            check_dtype(dtype, filled=False)
    check_dtype(torch.float32)


@given(st.lists(st.integers(1, 6), max_size=3), st.floats(0, 1), st.integers(0, 2**32))
def test_positions_are_distinct_and_inside(size: list[int], share: float, seed: int) -> None:
    nnz = int(share * math.prod(size))
    placed = place_at_random(size, nnz, generator=seeded(seed))
    assert placed.shape == (len(size), nnz)
    columns = list(zip(*placed.tolist(), strict=True)) if size else [()] * nnz
    assert len(set(columns)) == nnz
    assert all(0 <= i < length for column in columns for i, length in zip(column, size, strict=True))


def test_all_positions_are_equally_likely() -> None:
    counts = torch.zeros(3, 4)
    draws = 3000
    generator = seeded(0)
    for _ in range(draws):
        row, column = place_at_random((3, 4), 6, generator=generator)
        counts[row, column] += 1
    # Each is taken with probability one half.
    assert ((counts - draws / 2).abs() < 4.9 * math.sqrt(draws / 4)).all()


def test_places_too_many_to_count_through() -> None:
    placed = place_at_random((2**31, 2**31, 2**31), 50, generator=seeded(0))
    assert placed.shape == (3, 50)
    assert int(placed.max()) > 2**24
    assert len(set(map(tuple, placed.T.tolist()))) == 50


def test_long_dimensions_are_reached_in_all_places() -> None:
    placed = place_at_random((2**30,), 1000, generator=seeded(0))
    assert len({int(i) % 64 for i in placed[0]}) == 64


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_coordinates_are_in_row_major_order(size: list[int]) -> None:
    total = math.prod(size)
    expected = torch.ones(size).nonzero().T
    assert torch.equal(unravel(torch.arange(total), size), expected)


@pytest.mark.parametrize(
    ("size", "sparse_dim", "nnz"), [((4, 5), 2, 7), ((4, 5), 1, 4), ((4, 5), 0, 1), ((0, 5), 2, 0), ((3,), 1, 0)]
)
def test_sparse_forms(size: tuple[int, ...], sparse_dim: int, nnz: int) -> None:
    for is_coalesced in (True, False):
        made = make_sparse(size, torch.float64, sparse_dim, nnz, is_coalesced, generator=seeded(1))
        assert (made.shape, made.sparse_dim(), made.dense_dim()) == (size, sparse_dim, len(size) - sparse_dim)
        assert made._nnz() == (nnz if is_coalesced else 2 * nnz)
        assert made.coalesce()._nnz() == nnz


def test_sparse_tensors_are_those_of_the_reference_where_no_position_comes_twice() -> None:
    from torch.utils.benchmark.utils.sparse_fuzzer import FuzzedSparseTensor as Reference

    construct: Any = Reference.sparse_tensor_constructor
    for is_coalesced in (True, False):
        for dtype in (torch.float32, torch.float64):
            with torch.random.fork_rng():
                torch.manual_seed(5)
                theirs = construct([1000, 900, 3], dtype, 2, 40, is_coalesced)
            ours = make_sparse([1000, 900, 3], dtype, 2, 40, is_coalesced, generator=seeded(5))
            assert torch.equal(ours._indices(), theirs._indices())
            assert torch.equal(ours._values(), theirs._values())


def make_varied(seed: int, device: str | None = None) -> Fuzzer:
    """Small tensors of all kinds: without dimensions, without elements, of length one, with steps."""
    return Fuzzer(
        [
            FuzzedParameter("dim", distribution={0: 0.1, 1: 0.2, 2: 0.2, 3: 0.3, 5: 0.2}),
            [FuzzedParameter(f"k{i}", distribution={0: 0.05, 1: 0.35, 2: 0.3, 3: 0.3}) for i in range(4)],
            [FuzzedParameter(f"s{i}", distribution={1: 0.7, 2: 0.2, 3: 0.1}) for i in range(4)],
        ],
        [
            FuzzedTensor(
                "x",
                size=("k0", "k1", "k2", "k3"),
                steps=("s0", "s1", "s2", "s3"),
                probability_contiguous=0.4,
                dim_parameter="dim",
                device=device,
            ),
            FuzzedTensor("y", size=(2, "k0", 3), steps=(1, "s0"), device=device),
        ],
        seed=seed,
    )


@pytest.mark.parametrize("device", [None, "meta"])
def test_a_description_is_what_torch_says_of_the_tensor(device: str | None) -> None:
    fuzzer = make_varied(5, device)
    for index in range(400):
        draft, item = fuzzer.draft(index), fuzzer[index]
        for name, description in fuzzer.describe(draft).items():
            tensor, properties = item.tensors[name], item.tensor_properties[name]
            assert description["size"] == tuple(tensor.shape)
            assert description["numel"] == tensor.numel() == properties["numel"]
            assert description["is_contiguous"] == tensor.is_contiguous() == properties["is_contiguous"]
            assert description["steps"] == properties["steps"]
            assert description["order"] == tuple(properties["order"])
            assert properties["dtype"] == str(tensor.dtype)


def test_memory_has_the_order_that_was_drawn_and_steps_skip_in_it() -> None:
    fuzzer = make_varied(6, "meta")
    for index in range(200):
        item = fuzzer[index]
        for name, tensor in item.tensors.items():
            order, steps = item.tensor_properties[name]["order"], item.tensor_properties[name]["steps"]
            stride = 1
            for dim in reversed([int(i) for i in order]):
                length = tensor.shape[dim]
                # Where there is at most one element, torch does not care.
                assert 0 in tensor.shape or length == 1 or tensor.stride(dim) == stride * steps[dim]
                stride *= length * steps[dim]


def test_missing_sizes_and_steps_are_one() -> None:
    fuzzer = Fuzzer(
        [FuzzedParameter("dim", 3, 3, "uniform")], [FuzzedTensor("x", (2,), dim_parameter="dim", steps=(3,))], seed=0
    )
    item = fuzzer[0]
    assert item.tensors["x"].shape == (2, 1, 1)
    assert item.tensor_properties["x"]["steps"] == (3, 1, 1)


@pytest.mark.parametrize("probability", [0.0, 0.3, 0.75, 1.0])
def test_memory_is_in_order_as_often_as_asked_for(probability: float) -> None:
    fuzzer = Fuzzer([], [FuzzedTensor("x", (2, 3, 4), probability_contiguous=probability)], seed=1)
    orders = [tuple(map(int, fuzzer.draft(i).orders[0])) for i in range(2000)]
    # All other orders are equally likely.
    shares = dict.fromkeys(itertools.permutations(range(3)), (1 - probability) / 5)
    assert_shares(orders, {**shares, (0, 1, 2): probability})


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128, torch.int8])
def test_bounds_on_elements_and_allocations_are_kept(dtype: torch.dtype) -> None:
    fuzzer = Fuzzer(
        [FuzzedParameter(name, 1, 64, "loguniform") for name in ("a", "b", "s", "t")],
        [
            FuzzedTensor(
                "x",
                ("a", "b"),
                ("s", "t"),
                min_elements=20,
                max_elements=300,
                max_allocation_bytes=4096,
                dtype=dtype,
                device="meta",
            )
        ],
        seed=2,
    )
    bytes_each = torch.empty((), dtype=dtype).element_size()
    for index in range(1000):
        params = fuzzer.draft(index).params
        assert 20 <= params["a"] * params["b"] <= 300
        assert params["a"] * params["b"] * params["s"] * params["t"] * bytes_each <= 4096
    assert fuzzer[0].tensors["x"].untyped_storage().nbytes() <= 4096


def test_bounds_include_themselves() -> None:
    exact = FuzzedTensor("x", (4, 5), (2,), min_elements=20, max_elements=20, max_allocation_bytes=160)
    assert exact.satisfies_constraints({})
    assert exact.find_breaches({}) == []
    bounds: tuple[dict[str, Any], ...] = ({"min_elements": 21}, {"max_elements": 19}, {"max_allocation_bytes": 159})
    for bound in bounds:
        ((name, value),) = bound.items()
        assert FuzzedTensor("x", (4, 5), (2,), **bound).find_breaches({}) == [f"{name}={value}"]


def test_products_do_not_overflow() -> None:
    assert prod((np.int64(2**62), 2**62), base=4) == 2**126
    assert not FuzzedTensor("x", ("n", "n"), max_elements=2**31).satisfies_constraints({"n": 2**40})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"roll_parameter": "r"}, r"roll_parameter is not supported: tensor 'x'\. .* leave it out"),
        ({"size": "n"}, r"size is a tuple, such as \('n',\), not a text: tensor 'x'\."),
        ({"steps": "s"}, r"steps is a tuple, such as \('s',\), not a text"),
        ({"size": (2.5,)}, r"size has whole numbers from 0, or names of parameters, not 2\.5: tensor 'x'\."),
        ({"size": (-1,)}, "size has whole numbers from 0.*not -1"),
        ({"size": (None,)}, "size has whole numbers"),
        ({"steps": (0,)}, "steps has whole numbers from 1"),
        ({"min_elements": 3, "max_elements": 2}, r"No tensor has at least 3 and at most 2 elements: tensor 'x'\."),
        ({"probability_contiguous": 1.5}, r"A probability is from 0 to 1, not 1\.5: tensor 'x'\."),
        ({"probability_contiguous": math.nan}, "A probability is from 0 to 1"),
        ({"dtype": torch.bits8}, r"torch\.bits8 cannot be filled with random values"),
        ({"dtype": "float32"}, "A dtype is one of torch's"),
        ({"dtype": "float32", "tensor_constructor": torch.empty}, "A dtype is one of torch's"),
        ({"device": "nowhere"}, r"'nowhere' is not a device of torch, such as 'cpu', 'cuda:0' or 'meta': tensor 'x'\."),
        ({"device": 3.5}, r"3\.5 is not a device"),
        ({"device": "cpu", "cuda": True}, r"cuda=True and device='cpu' contradict each other: tensor 'x'\."),
    ],
)
def test_what_no_tensor_can_be_made_from_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        FuzzedTensor("x", **{"size": (2,), **arguments})


@pytest.mark.parametrize(
    "arguments",
    [
        {"size": ()},
        {"size": [0]},
        {"size": (np.int64(3),), "steps": (np.int64(2),)},
        {"min_elements": 2, "max_elements": 2},
        {"probability_contiguous": 1},
        {"dtype": torch.bits8, "tensor_constructor": torch.empty},
        {"dtype": torch.float8_e4m3fn},
        {"device": "cpu"},
        {"device": torch.device("cpu")},
        {"device": "cpu:0"},
        {"device": torch.device("meta")},
    ],
)
def test_what_a_tensor_can_be_made_from_is_accepted(arguments: dict[str, Any]) -> None:
    tensor = Fuzzer([], [FuzzedTensor("x", **{"size": (2,), **arguments})], seed=0)[0].tensors["x"]
    assert tensor.device.type == torch.device(arguments.get("device", "cpu")).type


@pytest.mark.parametrize(
    ("name", "low", "message"),
    [
        ("n", -2, r"No tensor has dim=2, size=\(-\d, 3\) and steps=\(1, 1\): tensor 'x'\. Change"),
        ("step", 0, r"size=\(1, 3\) and steps=\(0, 1\)"),
        ("dim", -1, r"dim=-1, size=\(1,\)"),
    ],
)
def test_a_length_below_zero_or_a_step_of_zero_is_refused_when_it_is_drawn(name: str, low: int, message: str) -> None:
    def build(least: int, most: int) -> Fuzzer:
        bounds = {"n": (1, 1), "step": (1, 1), "dim": (2, 2)} | {name: (least, most)}
        parameters = [FuzzedParameter(key, *values, distribution="uniform") for key, values in bounds.items()]
        tensor = FuzzedTensor("x", ("n", 3), ("step",), dim_parameter="dim")
        return Fuzzer(parameters, [tensor], constraints=[lambda params: params[name] != 1 or most > 0], seed=0)

    with pytest.raises(DefinitionError, match=message):
        build(low, min(low + 1, 0) if name != "dim" else -1)[0]
    assert build(1, 2)[0].tensors["x"].dim() >= 1


def test_a_constraint_may_keep_lengths_above_zero() -> None:
    parameters = [FuzzedParameter("n", -3, 3, "uniform")]
    fuzzer = Fuzzer(parameters, [FuzzedTensor("x", ("n",))], constraints=[lambda n: n > 0], seed=0)
    assert {fuzzer[i].tensors["x"].numel() for i in range(50)} == {1, 2, 3}


def test_a_constructor_of_ones_own_gets_size_type_and_parameters() -> None:
    calls: list[dict[str, Any]] = []

    def construct(**given: Any) -> torch.Tensor:
        calls.append(given)
        return torch.zeros(given["size"], dtype=given["dtype"])

    parameters = [FuzzedParameter("n", 4, 4, "uniform"), FuzzedParameter("other", 7, 7, "uniform")]
    tensor = FuzzedTensor("x", ("n", 3), (2,), dtype=torch.int16, tensor_constructor=construct)
    item = Fuzzer(parameters, [tensor], seed=0)[0]
    assert calls == [{"size": (8, 3), "dtype": torch.int16, "n": 4, "other": 7}]
    assert item.tensors["x"].shape == (4, 3)
    assert not item.tensors["x"].any()


def test_what_a_constructor_makes_stays_where_it_is_unless_a_device_is_named() -> None:
    def construct(size: tuple[int, ...], dtype: torch.dtype, **_: Any) -> torch.Tensor:
        return torch.empty(size, dtype=dtype, device="meta")

    def construct_here(size: tuple[int, ...], dtype: torch.dtype, **_: Any) -> torch.Tensor:
        return torch.empty(size, dtype=dtype)

    elsewhere = FuzzedTensor("x", (2,), tensor_constructor=construct)
    moved = FuzzedTensor("y", (2,), tensor_constructor=construct_here, device="meta")
    item = Fuzzer([], [elsewhere, moved], seed=0)[0]
    assert {tensor.device.type for tensor in item.tensors.values()} == {"meta"}


def test_the_default_constructor_is_there_for_constructors_of_ones_own() -> None:
    def construct(size: tuple[int, ...], dtype: torch.dtype, **params: Any) -> torch.Tensor:
        return FuzzedTensor.default_tensor_constructor(size, dtype, **params) + 1

    parameters = [FuzzedParameter("n", 1, 16, "loguniform")]
    plain = Fuzzer(parameters, [FuzzedTensor("x", ("n",))], seed=0)
    custom = Fuzzer(parameters, [FuzzedTensor("x", ("n",), tensor_constructor=construct)], seed=0)
    for ours, theirs in zip(custom.take(3), plain.take(3), strict=True):
        assert torch.equal(ours.tensors["x"], theirs.tensors["x"] + 1)


class Sevens(FuzzedTensor):
    @staticmethod
    def default_tensor_constructor(size: Sequence[int], dtype: torch.dtype, **kwargs: Any) -> torch.Tensor:
        return torch.full(tuple(size), kwargs["n"] + 7, dtype=dtype)


class Odd(FuzzedTensor):
    def satisfies_constraints(self, params: Params) -> bool:
        return bool(params["n"] % 2)


class Unheard(FuzzedTensor):
    def _make_tensor(self, params: Params, state: np.random.RandomState) -> None:
        raise NotImplementedError


def test_a_subclass_may_have_a_default_constructor_of_its_own() -> None:
    fuzzer = Fuzzer([FuzzedParameter("n", 4, 4, "uniform")], [Sevens("x", ("n",))], seed=0)
    (taken,) = fuzzer.take(1)
    for item in (taken, fuzzer[0]):
        assert item.tensors["x"].tolist() == [11.0] * 4
    with pytest.raises(DefinitionError, match="cannot be written"):
        fuzzer.write(fuzzer.draft(0))


def test_a_subclass_may_reject_parameters_and_is_named_when_it_rejects_all() -> None:
    fuzzer = Fuzzer([FuzzedParameter("n", 1, 9, "uniform")], [Odd("x", ("n",))], seed=0)
    assert {params["n"] % 2 for params in fuzzer.parameters(20)} == {1}
    never = Fuzzer([FuzzedParameter("n", 4, 4, "uniform")], [Odd("x", ("n",))], seed=0)
    with pytest.raises(UsageError, match=r"tensor 'x': satisfies_constraints: 100% of them"):
        never.draft(0)


def test_a_method_that_would_never_be_called_is_refused() -> None:
    with pytest.raises(DefinitionError, match="Unheard has a _make_tensor"):
        Unheard("x", (2,))
