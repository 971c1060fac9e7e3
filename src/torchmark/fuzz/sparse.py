"""Sparse tensors of random shape, density and form."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from torchmark.errors import DefinitionError
from torchmark.fuzz.tensors import Entropy, FuzzedTensor, Params, is_overridden, make_sparse, prod

# What a product with a density like 0.1, which is a little more than a tenth, may be too large by.
ROUNDING_DIGITS = 6


class FuzzedSparseTensor(FuzzedTensor):
    """A sparse tensor in COO format.

    size, min_elements, max_elements, dim_parameter, dtype, cuda, device: as for a `FuzzedTensor`.
    sparse_dim: how many of its dimensions are sparse, at most as many as there are; all of them by default.
    nnz: how many positions of these have values; or
    density: how large a share of all positions. That many are drawn, each once.
    coalesced: whether each position has one value, or two that have yet to be added up.

    The last four are names of parameters, or values. Without names, parameters called "density" and "coalesced" are
    used where they exist.
    """

    def __init__(
        self,
        name: str,
        size: Sequence[str | int],
        min_elements: int | None = None,
        max_elements: int | None = None,
        dim_parameter: str | None = None,
        sparse_dim: str | int | None = None,
        nnz: str | int | None = None,
        density: str | float | None = None,
        coalesced: str | bool | None = None,
        dtype: torch.dtype = torch.float32,
        cuda: bool = False,
        *,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__(
            name=name,
            size=size,
            min_elements=min_elements,
            max_elements=max_elements,
            dim_parameter=dim_parameter,
            dtype=dtype,
            cuda=cuda,
            device=device,
        )
        if nnz is not None and density is not None:
            raise DefinitionError(f"nnz and density say the same thing: tensor {name!r}. Give one of them.")
        if isinstance(density, (int, float)) and not 0 <= density <= 1:
            raise DefinitionError(f"A density is from 0 to 1, not {density!r}: tensor {name!r}.")
        wholes: dict[str, object] = {"nnz": nnz, "sparse_dim": sparse_dim}
        for argument, value in wholes.items():
            if not (value is None or isinstance(value, str) or (isinstance(value, (int, np.integer)) and value >= 0)):
                raise DefinitionError(
                    f"{argument} is a whole number from 0, or the name of a parameter, not {value!r}: tensor {name!r}."
                )
        check_form(name, dtype, self._device, (coalesced,) if isinstance(coalesced, bool) else (True, False))
        self._nnz = nnz
        self._density = "density" if nnz is None and density is None else density
        self._coalesced = "coalesced" if coalesced is None else coalesced
        self._falls_back = coalesced is None
        self._sparse_dim = sparse_dim
        self._has_own_constructor = is_overridden(self, FuzzedSparseTensor, "sparse_tensor_constructor")

    @property
    def whole_names(self) -> tuple[str, ...]:
        return (*super().whole_names, *(n for n in (self._sparse_dim, self._nnz) if isinstance(n, str)))

    @property
    def names(self) -> tuple[str, ...]:
        """All parameters it uses. What it is to have by default need not be there."""
        form = () if self._falls_back else (self._coalesced,)
        return (*self.whole_names, *(n for n in (self._density, *form) if isinstance(n, str)))

    def names_in_use(self, params: Params) -> Iterator[str]:
        yield from super().names_in_use(params)
        values = (self._sparse_dim, self._nnz, self._density, self._coalesced)
        yield from (name for name in values if isinstance(name, str) and name in params)

    @staticmethod
    def sparse_tensor_constructor(
        size: Sequence[int] | int, dtype: torch.dtype, sparse_dim: int, nnz: int, is_coalesced: bool
    ) -> torch.Tensor:
        """A COO tensor with `nnz` distinct positions; one that is not coalesced has two values at each of them."""
        lengths = [size] * sparse_dim if isinstance(size, (int, np.integer)) else list(size)
        if not 0 <= nnz <= prod(lengths[:sparse_dim]):
            raise DefinitionError(f"A size of {tuple(lengths[:sparse_dim])} has no room for {nnz} positions.")
        return make_sparse(lengths, dtype, sparse_dim, nnz, is_coalesced)

    def find_breaches(self, params: Params) -> list[str]:
        breaches = super().find_breaches(params)
        size, sparse_dim, nnz, _ = self._find_form(params)
        if sparse_dim < 0:
            return [*breaches, f"sparse_dim={sparse_dim}, which is below zero"]
        if not 0 <= nnz <= prod(size[:sparse_dim]):
            given = f"density={self._density!r}" if self._nnz is None else f"nnz={self._nnz!r}"
            breaches.append(f"{given}, for which there is no room")
        return breaches

    def draw_order(self, params: Params, state: np.random.RandomState) -> Any:
        """Memory has no order to choose; nothing is drawn."""
        return np.arange(self._get_dim(params))

    def make(self, params: Params, order: Any, entropy: Entropy) -> tuple[torch.Tensor, dict[str, Any]]:
        size, sparse_dim, nnz, is_coalesced = form = self._find_form(params)
        if self._has_own_constructor:
            with entropy.as_global(self.device):
                tensor = self.sparse_tensor_constructor(size, self._dtype, sparse_dim, nnz, is_coalesced)
        else:
            tensor = make_sparse(
                size, self._dtype, sparse_dim, nnz, is_coalesced, self._device, entropy.on(self._device)
            )
        if self._cuda and tensor.device.type == "cpu":
            tensor = tensor.cuda()
        return tensor, self._describe(params, form, tensor.size(), tensor.is_coalesced())

    def describe(self, params: Params, order: Any) -> dict[str, Any]:
        size, _, nnz, is_coalesced = form = self._find_form(params)
        # torch takes a tensor without any values for coalesced.
        return {**self._describe(params, form, torch.Size(size), is_coalesced or nnz == 0), "size": size}

    def write(self, params: Params, order: Any) -> str:
        """Python that makes it, with the functions of `fuzz/tensors.py` at hand."""
        if self._has_own_constructor:
            raise DefinitionError(
                f"Tensor {self._name!r} is made by a function of yours (sparse_tensor_constructor), which cannot be "
                "written as text for another process."
            )
        size, sparse_dim, nnz, is_coalesced = self._find_form(params)
        given = f"{size}, {self._dtype}, {sparse_dim}, {nnz}, {is_coalesced}, {str(self._device)!r}"
        copied = f".to({str(self.device)!r})" if self.device != self._device else ""
        return f"{self._name} = make_sparse({given}){copied}"

    def _find_form(self, params: Params) -> tuple[tuple[int, ...], int, int, bool]:
        """Size, sparse dimensions, positions, and whether it is coalesced."""
        size = self.find_extent(params).size
        sparse_dim = len(size) if self._sparse_dim is None else params.get(self._sparse_dim, self._sparse_dim)
        sparse_dim = min(sparse_dim, len(size))
        if self._nnz is not None:
            nnz = params.get(self._nnz, self._nnz)
        else:
            density = params.get(self._density, self._density)
            nnz = math.ceil(round(prod(size[:sparse_dim]) * density, ROUNDING_DIGITS))
        coalesced = params.get(self._coalesced, True) if isinstance(self._coalesced, str) else self._coalesced
        return size, sparse_dim, int(nnz), bool(coalesced)

    def _describe(
        self, params: Params, form: tuple[tuple[int, ...], int, int, bool], shape: torch.Size, is_coalesced: bool
    ) -> dict[str, Any]:
        size, sparse_dim, nnz, _ = form
        density = params[self._density] if self._density in params else nnz / max(prod(size[:sparse_dim]), 1)
        return {
            "numel": prod(size),
            "shape": shape,
            "is_coalesced": is_coalesced,
            "density": density,
            "sparsity": 1.0 - density,
            "sparse_dim": sparse_dim,
            "dense_dim": len(size) - sparse_dim,
            "is_hybrid": sparse_dim < len(size),
            "dtype": str(self._dtype),
        }


def check_form(name: str, dtype: torch.dtype, device: torch.device, forms: Iterable[bool]) -> None:
    """Refuse what torch makes no sparse tensors of, though it may make dense ones."""
    if device.type == "meta":
        raise DefinitionError(f"torch cannot coalesce sparse tensors on the meta device: tensor {name!r}.")
    # Devices that take long to get going behave as the CPU does.
    try:
        with warnings.catch_warnings():
            # torch says once in each process that it does not check what it is given.
            warnings.simplefilter("ignore")
            for is_coalesced in forms:
                # A single position would be taken for coalesced as it is.
                make_sparse((4,), dtype, 1, 2, is_coalesced, generator=torch.Generator())
    except (RuntimeError, NotImplementedError) as error:
        # Which may have other reasons than the type, such as a mode in which tensors are not real.
        raise DefinitionError(f"torch cannot make sparse tensors of {dtype}: tensor {name!r}.") from error
