"""Tensors of random shape, memory order and content. Content is drawn in the order of `torch.utils.benchmark`."""

from __future__ import annotations

import contextlib
import math
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
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
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[device]

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


class Extent(NamedTuple):
    """How large a tensor is, every how many elements of each dimension it has, and how much is allocated for that."""

    size: tuple[int, ...]
    steps: tuple[int, ...]
    allocated: tuple[int, ...]

    @property
    def is_cut(self) -> bool:
        """Whether it is a part of what is allocated."""
        return any(step != 1 for step in self.steps)


def prod(values: Sequence[int], base: int = 1) -> int:
    """The product of whole numbers, which never overflows.

    >>> prod((2**40, 2**40))
    1208925819614629174706176
    """
    return math.prod(map(int, values), start=base)


def check_lengths(tensor: str, argument: str, values: Sequence[object], least: int) -> tuple[str | int, ...]:
    """Names, and whole numbers that are not too small."""
    if isinstance(values, str):
        raise DefinitionError(f"{argument} is a tuple, such as ({values!r},), not a text: tensor {tensor!r}.")
    checked: list[str | int] = []
    for value in values:
        # numpy's whole numbers become Python's, which are written in a way that all interpreters read.
        given = value if isinstance(value, str) else _as_whole(value)
        if given is None or (isinstance(given, int) and given < least):
            raise DefinitionError(
                f"{argument} has whole numbers from {least}, or names of parameters, not {value!r}: tensor {tensor!r}."
            )
        checked.append(given)
    return tuple(checked)


def _as_whole(value: object) -> int | None:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def is_shuffled(order: Any) -> bool:
    """Whether dimensions lie in memory in another order than their own."""
    return len(order) > 1 and bool((order != np.arange(len(order))).any())


def is_contiguous(extent: Extent, order: Any) -> bool:
    """Whether a tensor that is allocated in this order and then cut is contiguous.

    >>> is_contiguous(Extent((2, 3), (1, 1), (2, 3)), np.array([1, 0]))
    False
    >>> is_contiguous(Extent((2, 1), (1, 4), (2, 4)), np.array([0, 1]))
    False
    """
    strides = [0] * len(extent.size)
    stride = 1
    for dim in reversed([int(i) for i in order]):
        strides[dim] = stride * extent.steps[dim]
        stride *= extent.allocated[dim]
    expected = 1
    for length, stride in zip(reversed(extent.size), reversed(strides), strict=True):
        if length != 1 and stride != expected:
            return 0 in extent.size
        expected *= length
    return True


# Looked up by whatever stands in a specification, a name or a number.
Params = Mapping[Any, Any]


class FuzzedTensor:
    """A tensor whose shape and layout follow from parameters, with random content.

    size: whole numbers, or names of parameters.
    steps: the same; a tensor that many times as large is allocated, and every so manieth element of it taken.
    probability_contiguous: how often memory has the order of the dimensions; otherwise they are shuffled there. Steps
        come after that, and make a tensor not contiguous, too.
    min_elements, max_elements, max_allocation_bytes: parameters that lead beyond these are drawn again.
    dim_parameter: a parameter that says how many of the sizes and steps count. What is missing is 1.
    device: where the content is drawn. With `cuda=True` it is drawn on the CPU and copied, as `torch.utils.benchmark`
        does, so that the values are the same as there.
    tensor_constructor: makes the tensor before it is shuffled and cut; called with `size=`, `dtype=` and all
        parameters. A subclass may have it as its `default_tensor_constructor`.
    """

    def __init__(
        self,
        name: str,
        size: Sequence[str | int],
        steps: Sequence[str | int] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: torch.dtype = torch.float32,
        cuda: bool = False,
        tensor_constructor: Callable[..., torch.Tensor] | None = None,
        *,
        device: torch.device | str | None = None,
    ) -> None:
        if roll_parameter is not None:
            raise DefinitionError(
                f"roll_parameter is not supported: tensor {name!r}. torch.utils.benchmark takes it and does nothing "
                "with it; leave it out, or roll the tensor in a tensor_constructor."
            )
        if min_elements is not None and max_elements is not None and min_elements > max_elements:
            raise DefinitionError(
                f"No tensor has at least {min_elements} and at most {max_elements} elements: tensor {name!r}."
            )
        if not 0 <= probability_contiguous <= 1:
            raise DefinitionError(f"A probability is from 0 to 1, not {probability_contiguous!r}: tensor {name!r}.")
        if hasattr(self, "_make_tensor"):
            raise DefinitionError(
                f"{type(self).__name__} has a _make_tensor, which is never called here: tensor {name!r}. Have a "
                "default_tensor_constructor instead."
            )
        if tensor_constructor is None and is_overridden(self, FuzzedTensor, "default_tensor_constructor"):
            tensor_constructor = self.default_tensor_constructor
        check_dtype(dtype, filled=tensor_constructor is None)
        self._name = name
        self._size = check_lengths(name, "size", size, least=0)
        self._steps = check_lengths(name, "steps", steps or (), least=1)
        self._probability_contiguous = probability_contiguous
        self._min_elements = min_elements
        self._max_elements = max_elements
        self._max_allocation_bytes = max_allocation_bytes
        self._dim_parameter = dim_parameter
        self._dtype = dtype
        self._element_bytes = dtype_size(dtype)
        self._cuda = cuda
        self._device = choose_device(name, cuda, device)
        self._is_placed = device is not None
        self._tensor_constructor = tensor_constructor

    @property
    def name(self) -> str:
        """What the tensor is called."""
        return self._name

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return torch.device("cuda") if self._cuda and self._device.type == "cpu" else self._device

    @property
    def whole_names(self) -> tuple[str, ...]:
        """The parameters it uses that have to be whole numbers, in the order of its arguments."""
        dim = () if self._dim_parameter is None else (self._dim_parameter,)
        return tuple(name for name in (*dim, *self._size, *self._steps) if isinstance(name, str))

    @property
    def names(self) -> tuple[str, ...]:
        """All parameters it uses."""
        return self.whole_names

    def names_in_use(self, params: Params) -> Iterator[str]:
        """Those that make a difference with these values: not the size of a dimension that it does not have."""
        dim = self._get_dim(params)
        yield from () if self._dim_parameter is None else (self._dim_parameter,)
        yield from (name for name in (*self._size[:dim], *self._steps[:dim]) if isinstance(name, str))

    @staticmethod
    def default_tensor_constructor(size: Sequence[int], dtype: torch.dtype, **kwargs: Any) -> torch.Tensor:
        """From 0 to 1 for floating and complex types, 1 to 126 for whole numbers, either for bool."""
        return fill(size, dtype)

    def satisfies_constraints(self, params: Params) -> bool:
        """Whether the number of elements and what is allocated for them are within bounds."""
        return not self.find_breaches(params)

    def find_breaches(self, params: Params) -> list[str]:
        """The bounds that these parameters do not keep."""
        extent = self.find_extent(params)
        elements = math.prod(extent.size)
        breaches = []
        if self._max_elements is not None and elements > self._max_elements:
            breaches.append(f"max_elements={self._max_elements}")
        if self._min_elements is not None and elements < self._min_elements:
            breaches.append(f"min_elements={self._min_elements}")
        limit = self._max_allocation_bytes
        if limit is not None and math.prod(extent.allocated) * self._element_bytes > limit:
            breaches.append(f"max_allocation_bytes={limit}")
        return breaches

    def check_extent(self, params: Params) -> None:
        """Refuse what no tensor can be like. Constraints may keep parameters from it, so it is not known before."""
        dim, extent = self._get_dim(params), self.find_extent(params)
        if dim < 0 or any(n < 0 for n in extent.size) or any(step < 1 for step in extent.steps):
            raise DefinitionError(
                f"No tensor has dim={dim}, size={extent.size} and steps={extent.steps}: tensor {self._name!r}. "
                "Change the bounds of its parameters, or give a constraint."
            )

    def find_extent(self, params: Params) -> Extent:
        """Its size and steps with these parameters."""
        dim = self._get_dim(params)
        get = params.get
        size = tuple([get(i, i) for i in self._size[:dim]])
        steps = tuple([get(i, i) for i in self._steps[:dim]])
        size += (1,) * (dim - len(size))
        steps += (1,) * (dim - len(steps))
        # A shortcut, and not a small one, for what is mostly the case.
        if not any(step != 1 for step in steps):
            return Extent(size, steps, size)
        return Extent(size, steps, tuple([n * step for n, step in zip(size, steps, strict=True)]))

    def _get_dim(self, params: Params) -> int:
        return len(self._size) if self._dim_parameter is None else params[self._dim_parameter]

    def draw_order(self, params: Params, state: np.random.RandomState) -> Any:
        """In which order dimensions lie in memory."""
        dim = self._get_dim(params)
        order = straight = np.arange(dim)
        if state.rand() > self._probability_contiguous:
            while dim > 1 and (order == straight).all():
                order = state.permutation(dim)
        return order

    def make(self, params: Params, order: Any, entropy: Entropy) -> tuple[torch.Tensor, dict[str, Any]]:
        """The tensor, and what it is like."""
        extent = self.find_extent(params)
        if self._tensor_constructor is None:
            tensor = fill(extent.allocated, self._dtype, self._device, entropy.on(self._device))
        else:
            with entropy.as_global(self.device):
                tensor = self._tensor_constructor(size=extent.allocated, dtype=self._dtype, **params)
            tensor = tensor.to(self._device) if self._is_placed else tensor
        if self._cuda and tensor.device.type == "cpu":
            tensor = tensor.cuda()
        if is_shuffled(order):
            tensor = tensor.permute(tuple(order)).contiguous().permute(tuple(np.argsort(order)))
        if extent.is_cut:
            tensor = tensor[tuple(slice(None, None, step) for step in extent.steps)]
        return tensor, {
            "numel": tensor.numel(),
            "order": order,
            "steps": extent.steps,
            "is_contiguous": tensor.is_contiguous(),
            "dtype": str(self._dtype),
        }

    def describe(self, params: Params, order: Any) -> dict[str, Any]:
        """What `make` would make, without making it."""
        extent = self.find_extent(params)
        return {
            "size": extent.size,
            "steps": extent.steps,
            "order": tuple(int(i) for i in order),
            "numel": math.prod(extent.size),
            "is_contiguous": is_contiguous(extent, order),
        }

    def write(self, params: Params, order: Any) -> str:
        """Python that makes it."""
        if self._tensor_constructor is not None:
            raise DefinitionError(
                f"Tensor {self._name!r} is made by a function of yours (tensor_constructor), which cannot be written "
                "as text for another process."
            )
        extent = self.find_extent(params)
        text = f"{self._name} = {write_fill(extent.allocated, self._dtype, self._device)}"
        text += f".to({str(self.device)!r})" if self.device != self._device else ""
        if is_shuffled(order):
            there, back = tuple(map(int, order)), tuple(map(int, np.argsort(order)))
            text += f".permute({there}).contiguous().permute({back})"
        if extent.is_cut:
            text += f"[{', '.join(f'::{step}' if step != 1 else ':' for step in extent.steps)}]"
        return text


def is_overridden(of: object, root: type, method: str) -> bool:
    """Whether the class of an object has another method in the place of the one of `root`."""
    return getattr(type(of), method) is not getattr(root, method)


def choose_device(name: str, cuda: bool, device: torch.device | str | None) -> torch.device:
    """Where the content is made: on the CPU unless told otherwise."""
    if device is None:
        return torch.device("cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError):
        raise DefinitionError(
            f"{device!r} is not a device of torch, such as 'cpu', 'cuda:0' or 'meta': tensor {name!r}."
        ) from None
    if cuda and chosen.type != "cuda":
        raise DefinitionError(f"cuda=True and device={str(device)!r} contradict each other: tensor {name!r}.")
    return chosen
