"""An input as Python that makes it with torch alone, in any interpreter: nothing else is loaded there."""

from __future__ import annotations

import ast
import functools
import inspect
import keyword
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torchmark.errors import DefinitionError
from torchmark.fuzz import filling
from torchmark.fuzz.sparse import FuzzedSparseTensor
from torchmark.fuzz.tensors import FuzzedTensor

_FOR_SPARSE = (filling.fill, filling.make_sparse, filling.place_at_random, filling.unravel)


def write_input(
    seed: int, tensors: Sequence[FuzzedTensor], params: Mapping[str, Any], orders: Sequence[Any], names: Iterable[str]
) -> str:
    """Statements that make all tensors, and variables for the parameters that are named."""
    for tensor in tensors:
        if not _is_free(tensor.name):
            raise DefinitionError(f"Python has no variable called {tensor.name!r}, or uses it here. Rename the tensor.")
    lines = [write_for_sparse()] if any(isinstance(t, FuzzedSparseTensor) for t in tensors) else []
    lines += [f"{name} = {params[name]!r}" for name in names if _is_free(name)]
    lines.append(f"torch.manual_seed({seed})")
    lines += [tensor.write(params, order) for tensor, order in zip(tensors, orders, strict=True)]
    return "\n".join(lines)


def _is_free(name: str) -> bool:
    """Whether it can be the name of a variable, and is not needed for something else."""
    taken = {"torch", *(function.__name__ for function in _FOR_SPARSE)}
    return name.isidentifier() and not keyword.iskeyword(name) and name not in taken


@functools.cache
def write_for_sparse() -> str:
    """The functions that make sparse tensors, without what Python 3.9 would stumble over."""
    return "\n\n".join(ast.unparse(_strip(ast.parse(inspect.getsource(function)))) for function in _FOR_SPARSE)


def _strip(tree: ast.Module) -> ast.Module:
    """Remove annotations and the docstring."""
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    function.body = function.body[1:]
    function.returns = None
    for argument in function.args.args:
        argument.annotation = None
    return tree
