"""The types whose calls are measured, and what may be around a call.

Each can be imported. Its text is part of the setup of every case that needs it, with whatever it refers to in here,
for cases run in interpreters that know nothing of this package. So it is for Python 3.9 and torch 1.13, and not
annotated. A module of its own because its text travels.
"""
# mypy: ignore-errors

import functools
import sys
from types import ModuleType

import torch
from torch.overrides import TorchFunctionMode, handle_torch_function
from torch.utils._python_dispatch import TorchDispatchMode


class SubTensor(torch.Tensor):
    """A subclass of Tensor that changes nothing."""


class SubSubTensor(SubTensor):
    """A subclass of that one, which is asked first where both are operands."""


class WithTorchFunction:
    """No Tensor, but torch functions take it: whatever they are, they add. One reads numbers of earlier years by it."""

    def __init__(self, data, requires_grad=False):
        if isinstance(data, torch.Tensor):
            self._tensor = data
        else:
            self._tensor = torch.tensor(data, requires_grad=requires_grad)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """Add."""
        if kwargs is None:
            kwargs = {}
        return WithTorchFunction(args[0]._tensor + args[1]._tensor)


class SubWithTorchFunction(torch.Tensor):
    """A subclass of Tensor that overrides torch functions, and leaves them to Tensor."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """What Tensor does."""
        if kwargs is None:
            kwargs = {}
        return super().__torch_function__(func, types, args, kwargs)


def unwrap(value, kind):
    """What a function was called with, and Tensors in the place of those of a kind that hold them."""
    if isinstance(value, kind):
        return value._tensor
    if isinstance(value, (list, tuple)):
        return [unwrap(item, kind) for item in value]
    return value


class TensorLike:
    """No Tensor, but what is done to it is done to the one that it holds, by torch functions and by its methods."""

    def __init__(self, data):
        self._tensor = data if isinstance(data, torch.Tensor) else torch.tensor(data)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """The same on Tensors; a Tensor that comes out is wrapped again."""
        named = {name: unwrap(value, cls) for name, value in kwargs.items()} if kwargs else {}
        result = func(*unwrap(args, cls), **named)
        return cls(result) if isinstance(result, torch.Tensor) else result

    def add(self, other):
        """As Tensor.add."""
        return handle_torch_function(torch.Tensor.add, (self, other), self, other)

    def add_(self, other):
        """As Tensor.add_."""
        handle_torch_function(torch.Tensor.add_, (self, other), self, other)
        return self

    def __add__(self, other):
        return handle_torch_function(torch.Tensor.__add__, (self, other), self, other)

    def __getitem__(self, index):
        return handle_torch_function(torch.Tensor.__getitem__, (self,), self, index)

    @property
    def shape(self):
        """As Tensor.shape."""
        return handle_torch_function(torch.Tensor.shape.__get__, (self,), self)

    @property
    def data(self):
        """As Tensor.data."""
        return handle_torch_function(torch.Tensor.data.__get__, (self,), self)


class WrapperTensor(torch.Tensor):
    """A subclass of Tensor without memory, whose operators run on the one that it holds, below autograd."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, data):
        """Around a Tensor, or around one with these numbers."""
        tensor = data if isinstance(data, torch.Tensor) else torch.tensor(data)
        self = torch.Tensor._make_wrapper_subclass(cls, tensor.size(), dtype=tensor.dtype)
        self._tensor = tensor
        return self

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        """The same on Tensors; a Tensor that comes out is wrapped again."""
        named = {name: unwrap(value, cls) for name, value in kwargs.items()} if kwargs else {}
        result = func(*unwrap(args, cls), **named)
        return cls(result) if isinstance(result, torch.Tensor) else result


def spare_distributed():
    """Spare this process the loading of distributed tensors, which torch only does to know their class.

    Newer versions do so before the first `__torch_dispatch__`, and then ask of each operand whether it is one. That is
    500 modules, half a minute under Valgrind, and a heap that is another each time. What is asked stays the same.
    """
    if "torch.distributed.tensor" not in sys.modules:
        module = ModuleType("torch.distributed.tensor")
        module.DTensor = type("DTensor", (torch.Tensor,), {})
        sys.modules[module.__name__] = module


@functools.cache
def derive(kind, depth):
    """A subclass of a subclass and so on, so many times, each of them empty."""
    for _ in range(depth):
        kind = type("Derived", (kind,), {})
    return kind


@functools.cache
def derive_overriding(kind, depth):
    """The same, but each overrides torch functions and leaves them to the one before."""
    for _ in range(depth):

        class Overriding(kind):
            """One of them."""

            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                """What the one before does."""
                return super().__torch_function__(func, types, args, kwargs)

        kind = Overriding
    return kind


class FunctionMode(TorchFunctionMode):
    """Sees every torch function, and lets it be."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        """What it would do anyway."""
        return func(*args, **(kwargs or {}))


class DispatchMode(TorchDispatchMode):
    """Sees every operator below autograd, and lets it be.

    Without what newer versions of torch put around it for torch.compile, which would load all of Dynamo at first.
    """

    @classmethod
    def _should_skip_dynamo(cls):
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """What it would do anyway."""
        return func(*args, **(kwargs or {}))


# In torch 1.13 it is called DisableTorchFunction; later on, that one is for modes as well.
DisableTorchFunctionSubclass = getattr(
    torch._C, "DisableTorchFunctionSubclass", getattr(torch._C, "DisableTorchFunction", None)
)


class Entered:
    """A context that is entered for as long as this lives.

    A setup that runs anew for each block of a measurement leaves with its variables what it has entered.
    """

    def __init__(self, context):
        self._context = context
        context.__enter__()

    def __del__(self):
        self._context.__exit__(None, None, None)
