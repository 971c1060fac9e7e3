"""How a callable is named in results, such that two different ones rarely get the same name."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any

# Values of these types say in a few characters what a function was made with.
_TELLING = (bool, int, float, str, bytes, type(None))
_LONGEST_VALUE = 20


def name_callable(call: Callable[[], Any]) -> str:
    """A one-line text that stands for the callable.

    Ordinary functions go by their name; lambdas and inner functions also by their place and the plain values
    they captured, so that alternatives made in a loop stay apart.

    >>> name_callable(functools.partial(max, 3, 4))
    'max(3, 4)'
    """
    if isinstance(call, functools.partial):
        arguments = [_value(v) for v in call.args] + [f"{k}={_value(v)}" for k, v in call.keywords.items()]
        return f"{_plain_name(call.func)}({', '.join(arguments)})"
    name = _plain_name(call)
    if not inspect.isfunction(call) or not ("<lambda>" in name or "<locals>" in name):
        return f"{name}()"
    code = call.__code__
    place = f"{name.replace('<locals>.', '')}() at {os.path.basename(code.co_filename)}:{code.co_firstlineno}"
    captured = {**inspect.getclosurevars(call).nonlocals, **_defaults(call)}
    telling = [f"{k}={_value(v)}" for k, v in captured.items() if isinstance(v, _TELLING)]
    return f"{place} [{', '.join(telling)}]" if telling else place


def _plain_name(call: Any) -> str:
    return getattr(call, "__qualname__", None) or type(call).__qualname__


def _defaults(call: Callable[[], Any]) -> dict[str, Any]:
    parameters = inspect.signature(call).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


def _value(value: object) -> str:
    if not isinstance(value, _TELLING):
        return f"<{type(value).__name__}>"
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."
