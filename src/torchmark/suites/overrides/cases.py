"""The cases: every call with every type that can make it, and calls with something around them."""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from torchmark.define.groups import GroupedBenchmark, GroupedStmts
from torchmark.define.options import GroupedSetup

_IMPORTS = ("import ", "from ")


class SourcePart(NamedTuple):
    """What makes one name, and the names that it mentions."""

    name: str
    text: str
    mentions: frozenset[str]


def quote(*names: str) -> str:
    """A setup that makes these names, once in a process, as globals.

    Blocks of a measurement may each have a setup of their own. Types that were new for each would be new to all caches
    of the interpreter, too.

    >>> print(*quote("SubTensor").splitlines()[:3], sep="\\n")
    global SubTensor
    if "SubTensor" not in globals():
        class SubTensor(torch.Tensor):
    """
    needed = set(_gather(names, _read()))
    parts = [part for part in _read().values() if part.name in needed]
    # Imports stand together, and before them nothing does.
    body = "".join(f"{part.text}\n" if part.text.startswith(_IMPORTS) else f"\n{part.text}\n" for part in parts)
    names_line = f"global {', '.join(part.name for part in parts)}"
    return f'{names_line}\nif "{names[0]}" not in globals():\n{textwrap.indent(body.strip(), "    ")}'


def _gather(names: tuple[str, ...], parts: Mapping[str, SourcePart]) -> Iterator[str]:
    waiting, seen = list(names), set(names)
    while waiting:
        name = waiting.pop()
        yield name
        new = (parts[name].mentions & parts.keys()) - seen
        seen |= new
        waiting += new


@functools.cache
def _read() -> dict[str, SourcePart]:
    text = Path(__file__).with_name("tensors.py").read_text(encoding="utf-8")
    parts = [part for node in ast.parse(text).body for part in _split(node, text)]
    # Every setup has torch.
    return {part.name: part for part in parts if part.name != "torch"}


def _split(node: ast.stmt, text: str) -> Iterator[SourcePart]:
    mentions = frozenset(name.id for name in ast.walk(node) if isinstance(name, ast.Name))
    if isinstance(node, ast.ImportFrom):
        yield from (SourcePart(one.name, f"from {node.module} import {one.name}", frozenset()) for one in node.names)
    elif isinstance(node, ast.Import):
        yield from (SourcePart(one.name, f"import {one.name}", frozenset()) for one in node.names)
    elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        yield SourcePart(node.name, _cut(node, text), mentions)
    elif isinstance(node, ast.Assign):
        yield from (SourcePart(one.id, _cut(node, text), mentions) for one in node.targets if isinstance(one, ast.Name))


def _cut(node: ast.ClassDef | ast.FunctionDef | ast.Assign, text: str) -> str:
    """The lines of a definition, from its first decorator on."""
    decorators = [] if isinstance(node, ast.Assign) else node.decorator_list
    first = min(one.lineno for one in (*decorators, node))
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


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
class OperandKind:
    """A type of operands: what results call it, and what makes one of a list of numbers."""

    name: str
    make: str
    needs: tuple[str, ...] = ()
    """Names of what comes along that has to be there before."""
    setup: str = ""
    """What else has to run before."""
    tags: tuple[str, ...] = ()
    """Of its calls, where nothing is around them."""


def own(name: str, *tags: str) -> OperandKind:
    """One of the types that come along."""
    return OperandKind(name, name, needs=(name,), tags=tags)


def foreign(spelling: str) -> OperandKind | None:
    """A type of the user's, from the working folder or from wherever Python finds modules; None for what is none.

    >>> foreign("package.module:Mine").make
    'Mine'
    """
    if not _SPELLING.fullmatch(spelling):
        return None
    module, _, name = spelling.partition(":")
    # In an interpreter of its own, the working folder is no place where modules are looked for.
    path = 'import sys\nif "" not in sys.path:\n    sys.path.insert(0, "")'
    return OperandKind(spelling, name, setup=f"{path}\nfrom {module} import {name.partition('.')[0]}", tags=(GIVEN,))


TENSOR = OperandKind("Tensor", "torch.tensor", tags=(PLAIN,))
SUB, OVERRIDING = own("SubTensor", SUBCLASS), own("SubWithTorchFunction", SUBCLASS)
ADDING_LIKE, LIKE = own("WithTorchFunction", TENSOR_LIKE), own("TensorLike", TENSOR_LIKE)
WRAPPER = OperandKind("WrapperTensor", "WrapperTensor", ("WrapperTensor", "spare_distributed"), "spare_distributed()")
# What is measured below autograd too: a list of operands, a reduction, a change in place and a view.
BELOW_AUTOGRAD = ("sum", "cat", "in-place", "index")
# Those that can make all calls.
ALL_ROUND = (TENSOR, SUB, OVERRIDING, LIKE)

Benchmarks = Mapping[tuple[str, ...], GroupedBenchmark]


def call(
    stmt: str, *kinds: OperandKind, needs: Sequence[str] = (), around: str = "", tags: Sequence[str] = ()
) -> GroupedBenchmark:
    """A statement with operands of one type, or with x of the first and y of the second.

    `around` runs behind what makes them; it needs what else is named.
    """
    names = {node.id for node in ast.walk(ast.parse(stmt)) if isinstance(node, ast.Name)}
    makers = dict(zip(NUMBERS, (kind.make for kind in kinds), strict=False))
    operands = [f"{name} = {makers.get(name, kinds[0].make)}({NUMBERS[name]})" for name in NUMBERS if name in names]
    needed = dict.fromkeys([*(name for kind in kinds for name in kind.needs), *needs])
    lines = (quote(*needed) if needed else "", *dict.fromkeys(kind.setup for kind in kinds), *operands, around)
    return GroupedStmts(stmt, setup=GroupedSetup("\n".join(filter(None, lines))), tags=tags)


def define_calls(kind: OperandKind) -> Benchmarks:
    """Every call with operands of a type, and adding it to a Tensor in both orders: for types of the user's."""
    mixed = dict(_mix([(TENSOR, kind)], kind.tags))
    return {**{(label, kind.name): call(stmt, kind, tags=kind.tags) for label, stmt in CALLS.items()}, **mixed}


def _mix(
    pairs: Sequence[tuple[OperandKind, OperandKind]], tags: Sequence[str] = ()
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
            kind = OperandKind(f"{word}, depth {depth}", "Deep", (derive,), setup)
            yield ("deep add", kind.name), call(ADD, kind)


def _add_within(label: str, context: str, *kinds: OperandKind) -> Iterator[tuple[tuple[str, ...], GroupedBenchmark]]:
    """A context that is entered before, so that the call alone is measured."""
    for kind in kinds:
        benchmark = call(ADD, kind, needs=(context, "Entered"), around=f"entered = Entered({context}())")
        yield (label, kind.name), benchmark


_DISABLING = "DisableTorchFunctionSubclass"

BENCHMARKS: Benchmarks = {
    **dict(_call_all()),
    **dict(_mix([(TENSOR, SUB), (TENSOR, OVERRIDING), (TENSOR, LIKE)])),
    **dict(_mix([(SUB, LIKE), (OVERRIDING, LIKE), (SUB, own("SubSubTensor"))])),
    **dict(_add_deep()),
    **dict(_add_within("disabled add", _DISABLING, TENSOR, SUB, OVERRIDING)),
    # Entered and left each time.
    **{
        ("disabling add", kind.name): call(f"with {_DISABLING}():\n    {ADD}", kind, needs=(_DISABLING,))
        for kind in (TENSOR, SUB)
    },
    **dict(_add_within("function mode add", "FunctionMode", *ALL_ROUND)),
    **dict(_add_within("dispatch mode add", "DispatchMode", TENSOR, LIKE)),
}
