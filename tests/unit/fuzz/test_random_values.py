from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchmark import DefinitionError
from torchmark.fuzz.tensors import Entropy, check_dtype, dtype_size, fill, make_sparse, place_at_random, unravel

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
