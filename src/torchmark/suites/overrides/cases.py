"""The cases: every call with every type that can make it, and calls with something around them.

Operands have one element each, so that what is measured is everything but computing. All are compared with plain
Tensors in the same call, and those whose label ends with `add` with plain Tensors in `add`.

What is left out cannot be: `WithTorchFunction` does nothing but add two of its own kind. Two subclasses of Tensor of
which neither is the other's refuse each other. A Tensor-like is nothing to torch where overrides are disabled. And what
comes through a dispatch mode cannot become a subclass of Tensor in torch 1.13.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence

from torchmark.define.groups import GroupedBenchmark, GroupedStmts
from torchmark.define.setups import GroupedSetup
from torchmark.suites.overrides.sources import quote

ADD = "torch.add(x, y)"
CALLS = {
    "add": ADD,
    "neg": "torch.neg(x)",
    "sum": "torch.sum(x)",
    "cat": "torch.cat([x, y])",
    "out": "torch.add(x, y, out=z)",
    "method": "x.add(y)",
    "operator": "x + y",
    # Of nothing, or it would grow.
    "in-place": "x.add_(z)",
    "index": "x[0]",
    "shape": "x.shape",
    "data": "x.data",
}
# What operands are made of, by the names that they have in statements.
NUMBERS = {"x": "[1.0]", "y": "[2.0]", "z": "[0.0]"}

# The calls that have always been measured: whoever reports on a change has to show these.
CLASSIC = "classic"
# What others are held against; what is a subclass of Tensor; what is none; and types of the user's.
PLAIN, SUBCLASS, TENSOR_LIKE, GIVEN = "plain", "subclass", "tensor-like", "given"

DEPTHS = (1, 4, 16)
_SPELLING = re.compile(r"(?!\d)\w+(?:\.(?!\d)\w+)*:(?!\d)\w+(?:\.(?!\d)\w+)*", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Kind:
    """A type of operands: what results call it, and what makes one of a list of numbers."""

    name: str
    make: str
    needs: tuple[str, ...] = ()
    """Names of what comes along that has to be there before."""
    setup: str = ""
    """What else has to run before."""
    tags: tuple[str, ...] = ()
    """Of its calls, where nothing is around them."""


def own(name: str, *tags: str) -> Kind:
    """One of the types that come along."""
    return Kind(name, name, needs=(name,), tags=tags)


def foreign(spelling: str) -> Kind | None:
    """A type of the user's, from the working folder or from wherever Python finds modules; None for what is none.

    >>> foreign("package.module:Mine").make
    'Mine'
    """
    if not _SPELLING.fullmatch(spelling):
        return None
    module, _, name = spelling.partition(":")
    # In an interpreter of its own, the working folder is no place where modules are looked for.
    path = 'import sys\nif "" not in sys.path:\n    sys.path.insert(0, "")'
    return Kind(spelling, name, setup=f"{path}\nfrom {module} import {name.partition('.')[0]}", tags=(GIVEN,))


TENSOR = Kind("Tensor", "torch.tensor", tags=(PLAIN,))
SUB, OVERRIDING = own("SubTensor", SUBCLASS), own("SubWithTorchFunction", SUBCLASS)
ADDING_LIKE, LIKE = own("WithTorchFunction", TENSOR_LIKE), own("TensorLike", TENSOR_LIKE)
WRAPPER = Kind("WrapperTensor", "WrapperTensor", ("WrapperTensor", "spare_distributed"), "spare_distributed()")
# What is measured below autograd too: a list of operands, a reduction, a change in place and a view.
BELOW_AUTOGRAD = ("sum", "cat", "in-place", "index")
# Those that can make all calls.
ALL_ROUND = (TENSOR, SUB, OVERRIDING, LIKE)

Benchmarks = Mapping[tuple[str, ...], GroupedBenchmark]


def call(
    stmt: str, *kinds: Kind, needs: Sequence[str] = (), around: str = "", tags: Sequence[str] = ()
) -> GroupedBenchmark:
    """A statement with operands of one type, or with x of the first and y of the second.

    `around` runs behind what makes them; it needs what else is named.
    """
    names = {node.id for node in ast.walk(ast.parse(stmt)) if isinstance(node, ast.Name)}
    makers = dict(zip(NUMBERS, (kind.make for kind in kinds), strict=False))
    operands = [f"{name} = {makers.get(name, kinds[0].make)}({NUMBERS[name]})" for name in NUMBERS if name in names]
    needed = dict.fromkeys([*(name for kind in kinds for name in kind.needs), *needs])
    setups = dict.fromkeys(kind.setup for kind in kinds)
    lines = (quote(*needed) if needed else "", *setups, *operands, around)
    return GroupedStmts(stmt, setup=GroupedSetup("\n".join(filter(None, lines))), tags=tags)


def define_calls(kind: Kind) -> Benchmarks:
    """Every call with operands of a type, and adding it to a Tensor in both orders: for types of the user's."""
    mixed = dict(_mix([(TENSOR, kind)], kind.tags))
    return {**{(label, kind.name): call(stmt, kind, tags=kind.tags) for label, stmt in CALLS.items()}, **mixed}


def _mix(
    pairs: Sequence[tuple[Kind, Kind]], tags: Sequence[str] = ()
) -> Iterator[tuple[tuple[str, ...], GroupedBenchmark]]:
    for one, other in pairs:
        for first, second in ((one, other), (other, one)):
            yield ("mixed add", f"{first.name}, {second.name}"), call(ADD, first, second, tags=tags)


def _call_all() -> Iterator[tuple[tuple[str, ...], GroupedBenchmark]]:
    for label, stmt in CALLS.items():
        adds = stmt == ADD
        kinds = (TENSOR, SUB, ADDING_LIKE, OVERRIDING, LIKE) if adds else ALL_ROUND
        for kind in (*kinds, *((WRAPPER,) if adds or label in BELOW_AUTOGRAD else ())):
            classic = (CLASSIC,) if adds and kind in (TENSOR, SUB, ADDING_LIKE, OVERRIDING) else ()
            yield (label, kind.name), call(stmt, kind, tags=(*kind.tags, *classic))


def _add_deep() -> Iterator[tuple[tuple[str, ...], GroupedBenchmark]]:
    for word, derive in (("empty", "derive"), ("overriding", "derive_overriding")):
        for depth in DEPTHS:
            setup = f"Deep = {derive}(torch.Tensor, {depth})"
            kind = Kind(f"{word}, depth {depth}", "Deep", (derive,), setup)
            yield ("deep add", kind.name), call(ADD, kind)


def _add_within(label: str, context: str, *kinds: Kind) -> Iterator[tuple[tuple[str, ...], GroupedBenchmark]]:
    """A context that is entered before, so that the call alone is measured."""
    for kind in kinds:
        benchmark = call(ADD, kind, needs=(context, "Entered"), around=f"entered = Entered({context}())")
        yield (label, kind.name), benchmark


def _add_disabling() -> Iterator[tuple[tuple[str, ...], GroupedBenchmark]]:
    """A context that is entered and left each time."""
    context = "DisableTorchFunctionSubclass"
    for kind in (TENSOR, SUB):
        yield ("disabling add", kind.name), call(f"with {context}():\n    {ADD}", kind, needs=(context,))


BENCHMARKS: Benchmarks = {
    **dict(_call_all()),
    **dict(_mix([(TENSOR, SUB), (TENSOR, OVERRIDING), (TENSOR, LIKE)])),
    **dict(_mix([(SUB, LIKE), (OVERRIDING, LIKE), (SUB, own("SubSubTensor"))])),
    **dict(_add_deep()),
    **dict(_add_within("disabled add", "DisableTorchFunctionSubclass", TENSOR, SUB, OVERRIDING)),
    **dict(_add_disabling()),
    **dict(_add_within("function mode add", "FunctionMode", *ALL_ROUND)),
    **dict(_add_within("dispatch mode add", "DispatchMode", TENSOR, LIKE)),
}
