"""Conditions of the user's on parameters: how they are called, and what they are called in messages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any

from torchmark.errors import DefinitionError
from torchmark.fuzz.tensors import Params

Predicate = Callable[[dict[str, Any]], object]


def adapt(constraint: Callable[..., object], names: Collection[str]) -> Predicate:
    """A function of all parameters in one dictionary.

    A constraint gets parameters by name: those that it names, or all if it takes any. One that names none of them and
    takes a single argument gets the dictionary.

    >>> fits = adapt(lambda a, b: a < b, ["a", "b", "c"])
    >>> fits({"a": 1, "b": 2, "c": 0})
    True
    >>> adapt(lambda params: params["c"] > 0, ["a", "b", "c"])({"a": 1, "b": 2, "c": 0})
    False
    """
    if not callable(constraint):
        raise DefinitionError(f"A constraint is a function of parameters, not {constraint!r}.")
    try:
        taken = list(inspect.signature(constraint).parameters.values())
    except (TypeError, ValueError):
        # Some functions written in C do not tell.
        return constraint
    by_name = [p for p in taken if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name in names]
    missing = [p for p in taken if p not in by_name and p.default is p.empty and p.kind not in _VARIADIC]
    if not missing and any(p.kind is p.VAR_KEYWORD for p in taken):
        return lambda params: constraint(**params)
    if not missing and by_name:
        wanted = [p.name for p in by_name]
        return lambda params: constraint(**{name: params[name] for name in wanted})
    positional = [p for p in taken if p.kind is not p.KEYWORD_ONLY]
    if not by_name and positional and all(p.default is not p.empty or p in positional[:1] for p in missing):
        return constraint
    unknown = ", ".join(p.name for p in missing) or "nothing"
    raise DefinitionError(
        f"The constraint {name_constraint(constraint)} asks for {unknown}. The parameters are: {', '.join(names)}. "
        "A constraint takes parameters by their names, or all of them as one dictionary."
    )


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def name_constraint(constraint: Callable[..., object]) -> str:
    """What it is called and where it stands."""
    name = getattr(constraint, "__qualname__", None) or repr(constraint)
    code = getattr(constraint, "__code__", None)
    return name if code is None else f"{name} ({code.co_filename}, line {code.co_firstlineno})"


def refuses(predicate: Predicate, params: Params) -> bool:
    """Whether a condition does not hold; one that fails on what others would have kept from it does not count."""
    try:
        return not predicate(dict(params))
    except Exception:
        return False
