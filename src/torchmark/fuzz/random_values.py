"""Random content of tensors, drawn in the order of `torch.utils.benchmark`. Global generators are not touched."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence

import torch

from torchmark.errors import DefinitionError


class Entropy:
    """Generators that all start from one seed, as after `torch.manual_seed`: one for each device that is used."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def on(self, device: torch.device) -> torch.Generator | None:
        """The generator of a device; None where nothing is drawn, as on the meta device."""
        if device.type == "meta":
            return None
        generator = self._generators.get(device)
        if generator is None:
            generator = self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return generator

    @contextlib.contextmanager
    def as_global(self, device: torch.device) -> Iterator[None]:
        """Let code that knows of no generators draw from this stream, on the CPU and on a device."""
        with contextlib.ExitStack() as stack:
            for place in dict.fromkeys((torch.device("cpu"), device)):
                generator = self.on(place)
                if generator is not None:
                    stack.enter_context(_swapped(generator, place))
            yield


@contextlib.contextmanager
def _swapped(generator: torch.Generator, device: torch.device) -> Iterator[None]:
    """Put a generator's state in the place of a device's own, and keep what becomes of it."""
    if device.type == "cpu":
        own = torch.default_generator
    else:
        defaults = getattr(torch, device.type).default_generators
        # Without an index it is the current one of its kind, which a tensor that is made there tells.
        own = defaults[torch.empty(0, device=device).device.index or 0]
    before = own.get_state()
    own.set_state(generator.get_state())
    try:
        yield
        generator.set_state(own.get_state())
    finally:
        own.set_state(before)


def dtype_size(dtype: torch.dtype) -> int:
    """Bytes of an element.

    >>> dtype_size(torch.bool), dtype_size(torch.complex64)
    (1, 8)
    """
    return torch.empty((), dtype=dtype, device="meta").element_size()


def check_dtype(dtype: object, filled: bool = True) -> None:
    """Refuse what is no dtype, and what cannot be filled at random unless it is filled by somebody else."""
    if not isinstance(dtype, torch.dtype):
        raise DefinitionError(f"A dtype is one of torch's, such as torch.float32, not {dtype!r}.")
    if not filled:
        return
    try:
        with warnings.catch_warnings():
            # Of some types torch says that they will go, of others that few operators know them.
            warnings.simplefilter("ignore")
            fill((1,), dtype, generator=torch.Generator())
    except (RuntimeError, NotImplementedError, TypeError):
        raise DefinitionError(
            f"{dtype} cannot be filled with random values. Give a tensor_constructor that makes such tensors."
        ) from None


def fill(
    size: Sequence[int],
    dtype: torch.dtype,
    device: torch.device | str = "cpu",
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """From 0 to 1 for floating and complex types, 1 to 126 for whole numbers, either for bool."""
    if not (dtype.is_floating_point or dtype.is_complex):
        low, high = (0, 2) if dtype == torch.bool else (1, 127)
        return torch.randint(low, high, size, dtype=dtype, device=device, generator=generator)
    if torch.finfo(dtype).bits < 16:
        # Nothing draws these; they are converted.
        return torch.rand(size, dtype=torch.float32, device=device, generator=generator).to(dtype)
    return torch.rand(size, dtype=dtype, device=device, generator=generator)


def write_fill(size: Sequence[int], dtype: torch.dtype, device: torch.device) -> str:
    """Python that does what `fill` does after `torch.manual_seed`.

    >>> write_fill((2, 3), torch.int8, torch.device("cpu"))
    "torch.randint(1, 127, (2, 3), dtype=torch.int8, device='cpu')"
    """
    where = f"device={str(device)!r}"
    if not (dtype.is_floating_point or dtype.is_complex):
        low, high = (0, 2) if dtype == torch.bool else (1, 127)
        return f"torch.randint({low}, {high}, {tuple(size)}, dtype={dtype}, {where})"
    if torch.finfo(dtype).bits < 16:
        return f"torch.rand({tuple(size)}, dtype=torch.float32, {where}).to({dtype})"
    return f"torch.rand({tuple(size)}, dtype={dtype}, {where})"


def make_sparse(
    size: Sequence[int],
    dtype: torch.dtype,
    sparse_dim: int,
    nnz: int,
    is_coalesced: bool,
    device: torch.device | str = "cpu",
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """A COO tensor with `nnz` distinct positions; one that is not coalesced has two values at each of them."""
    values = fill([nnz, *size[sparse_dim:]], dtype, device, generator)
    indices = place_at_random(size[:sparse_dim], nnz, device, generator)
    if not is_coalesced:
        if dtype.is_floating_point or dtype.is_complex:
            second = torch.randn(values.shape, dtype=dtype, device=device, generator=generator)
        else:
            second = fill(values.shape, dtype, device, generator)
        values = torch.cat([values, second], 0)
        indices = torch.cat([indices, indices], 1)
    made = torch.sparse_coo_tensor(indices, values, tuple(size), device=values.device)
    return made.coalesce() if is_coalesced else made


def place_at_random(
    size: Sequence[int], nnz: int, device: torch.device | str = "cpu", generator: torch.Generator | None = None
) -> torch.Tensor:
    """Coordinates of `nnz` distinct positions, a column for each."""
    total = 1
    for length in size:
        total *= length
    if 2 * nnz > total:
        # So crowded that drawing again what is taken already would take long.
        return unravel(torch.randperm(total, device=device, generator=generator)[:nnz], size)
    # Single precision has 24 bits; beyond, some positions would never be drawn.
    kind = torch.float32 if max(size, default=0) <= 2**24 else torch.float64
    drawn = torch.rand(len(size), nnz, dtype=kind, device=device, generator=generator)
    indices = (drawn * torch.tensor(list(size), device=device).unsqueeze(1).to(kind)).to(torch.long)
    # In more positions than can be counted through, two are hardly ever the same.
    if total >= 2**62:
        return indices
    flat = torch.zeros(nnz, dtype=torch.long, device=device)
    for row, length in enumerate(size):
        flat = flat * length + indices[row]
    while True:
        ordered, order = flat.sort(stable=True)
        taken = order[1:][ordered[1:] == ordered[:-1]]
        if not taken.numel():
            return unravel(flat, size)
        flat[taken] = torch.randint(total, (taken.numel(),), device=device, generator=generator)


def unravel(flat: torch.Tensor, size: Sequence[int]) -> torch.Tensor:
    """Coordinates of positions that are counted through."""
    indices = torch.empty((len(size), len(flat)), dtype=torch.long, device=flat.device)
    for row in reversed(range(len(size))):
        indices[row] = flat % size[row]
        flat = flat // size[row]
    return indices
