"""How a callable is named in results. Names are how replicates are recognised: different callables never share one."""

from __future__ import annotations

import functools
import inspect
import os
import weakref
from collections.abc import Callable
from typing import Any, Optional

# Values of these types say in a few characters what a function was made with.
_TELLING = (bool, int, float, str, bytes, type(None))
_LONGEST_VALUE = 20

Reference = Callable[[], Optional[Callable[[], Any]]]

# For each name, how many callables have had it so far, and those of them that live, by number.
_given: dict[str, int] = {}
_bearers: dict[str, dict[int, Reference]] = {}


def name_callable(call: Callable[[], Any]) -> str:
    """A one-line text that stands for the callable.

    Ordinary functions go by their name; lambdas and inner functions also by their place and the plain values
    they captured. A second callable that would have the same name gets a number behind it.

    >>> name_callable(functools.partial(max, 3, 4))
    'max(3, 4)'
    """
    name = _describe(call)
    number = _find_number(name, call)
    return name if number == 1 else f"{name} #{number}"


def _find_number(name: str, call: Callable[[], Any]) -> int:
    living = {n: refer for n, refer in _bearers.get(name, {}).items() if refer() is not None}
    number = next((n for n, refer in living.items() if _is_same(call, refer())), None)
    if number is None:
        number = _given[name] = _given.get(name, 0) + 1
        living[number] = _refer(call)
    _bearers[name] = living
    return number


def _describe(call: Callable[[], Any]) -> str:
    if isinstance(call, functools.partial):
        arguments = [_value(v) for v in call.args] + [f"{k}={_value(v)}" for k, v in call.keywords.items()]
        return f"{_plain_name(call.func)}({', '.join(arguments)})"
    name = _plain_name(call)
    if not inspect.isfunction(call) or not ("<lambda>" in name or "<locals>" in name):
        return f"{name}()"
    code = call.__code__
    place = f"{name.replace('<locals>.', '')}() at {os.path.basename(code.co_filename)}:{code.co_firstlineno}"
    telling = [f"{k}={_value(v)}" for k, v in _captured(call).items() if isinstance(v, _TELLING)]
    return f"{place} [{', '.join(telling)}]" if telling else place


def _plain_name(call: Any) -> str:
    return getattr(call, "__qualname__", None) or type(call).__qualname__


def _captured(call: Any) -> dict[str, Any]:
    """What a function brings along: values of its closure and defaults of its parameters."""
    captured = {}
    for name, cell in zip(call.__code__.co_freevars, call.__closure__ or ()):
        try:
            captured[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            captured[name] = cell
    parameters = inspect.signature(call).parameters.values()
    captured.update({p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty})
    return captured


def _value(value: object) -> str:
    if not isinstance(value, _TELLING):
        return f"<{type(value).__name__}>"
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."


def _is_same(one: Any, other: Any) -> bool:
    """Whether two callables are one, or were made alike: the same code with the very same objects."""
    if one is other:
        return True
    if inspect.ismethod(one) and inspect.ismethod(other):
        return one.__self__ is other.__self__ and one.__func__ is other.__func__
    if inspect.isfunction(one) and inspect.isfunction(other):
        mine, yours = _captured(one), _captured(other)
        return (
            one.__code__ is other.__code__
            and mine.keys() == yours.keys()
            and all(map(_identical, mine.values(), yours.values()))
        )
    return False


def _identical(one: object, other: object) -> bool:
    # Equal plain values are interchangeable; two equal tensors are not the same input.
    return one is other or (isinstance(one, _TELLING) and type(one) is type(other) and one == other)


def _refer(call: Callable[[], Any]) -> Reference:
    """A reference that does not keep the callable, and all it holds, alive."""
    try:
        return weakref.WeakMethod(call) if inspect.ismethod(call) else weakref.ref(call)
    except TypeError:
        return lambda: call
