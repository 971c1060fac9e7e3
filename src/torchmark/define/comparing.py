"""How statements without a signature are compared: by the variables of their setups, and by the values they have."""

from __future__ import annotations

import ast
import dataclasses
import re

from torchmark.define.options import check_python
from torchmark.define.setups import GroupedSetup
from torchmark.define.variants import Pair

# The value of a statement that is an expression.
VALUE = "torchmark_value"


@dataclasses.dataclass(frozen=True)
class Compared:
    """Expressions that must have the same value in both languages, and the statements to run before."""

    stmts: Pair
    """The statements, as they are run for comparing."""
    results: tuple[tuple[str, str, str], ...]
    """Names, and the expressions in Python and in C++."""


def compare_stmts(pair: Pair, setup: GroupedSetup, *, has_model: bool = False) -> Compared | None:
    """What must be the same after both: the variables that both have, and the value if they are expressions.

    A statement that has become a model changes what it is given, and leaves nothing else.
    """
    if pair.python is None or (pair.cpp is None and not has_model):
        return None
    # Told with its name when the group is made.
    check_python("py_setup", setup.py_setup)
    check_python("py_stmt", pair.python)
    if pair.cpp is None:
        names = tuple(_assigned_names(setup.py_setup))
    else:
        names = shared_names(setup.py_setup, setup.cpp_setup)
        names += () if has_model else shared_names(pair.python, pair.cpp)
    results = [(name, name, name) for name in dict.fromkeys(names)]
    expressions = None if has_model else as_expressions(pair)
    if expressions is None:
        return Compared(pair, tuple(results)) if results else None
    stmts = Pair(f"{VALUE} = ({expressions.python})", f"auto &&{VALUE} = ({expressions.cpp});")
    return Compared(stmts, (("the value", VALUE, VALUE), *results))


_DECLARATION = re.compile(r"^\s*(?:const\s+)?(?:auto|torch::Tensor|at::Tensor)\s+(\w+)\s*=", re.MULTILINE)
# How a C++ statement begins that is no expression.
_NO_EXPRESSION = re.compile(
    r"(?:const|auto|for|if|while|do|switch|using|return|torch::Tensor\s+\w|at::Tensor\s+\w)\b|[{#]"
)


def shared_names(python_setup: str, cpp_setup: str) -> tuple[str, ...]:
    """The variables that both setups make, in the order of the Python one.

    >>> shared_names("x = torch.ones(1); n = 2", "auto x = torch::ones(1);")
    ('x',)
    """
    declared = set(_DECLARATION.findall(cpp_setup.replace(";", ";\n")))
    return tuple(name for name in _assigned_names(python_setup) if name in declared)


def _assigned_names(code: str) -> list[str]:
    names: dict[str, None] = {}
    for node in ast.parse(code).body:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            names.update((part.id, None) for part in ast.walk(target) if isinstance(part, ast.Name))
    return list(names)


def as_expressions(pair: Pair) -> Pair | None:
    """Both statements as expressions, if that is what they are.

    >>> as_expressions(Pair("x + y", "x + y;"))
    Pair(python='x + y', cpp='x + y')
    >>> as_expressions(Pair("z = x + y", "auto z = x + y;"))
    """
    if pair.python is None or pair.cpp is None:
        return None
    body = ast.parse(pair.python).body
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        return None
    cpp = re.sub(r"\s*//[^\n]*$", "", pair.cpp).strip()
    if not cpp.endswith(";") or ";" in cpp[:-1] or _NO_EXPRESSION.match(cpp):
        return None
    python = ast.get_source_segment(pair.python, body[0])
    assert python is not None
    return Pair(python, cpp[:-1].strip())
