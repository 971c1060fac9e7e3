"""The text of types, for setups: what is named, and all that it refers to, as it stands in `tensors.py`."""

from __future__ import annotations

import ast
import functools
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_FILE = Path(__file__).with_name("tensors.py")
# Every setup has it.
_GIVEN = "torch"
_IMPORTS = ("import ", "from ")


class Part(NamedTuple):
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


def _gather(names: tuple[str, ...], parts: Mapping[str, Part]) -> Iterator[str]:
    """These names, and all that they need."""
    waiting, seen = list(names), set(names)
    while waiting:
        name = waiting.pop()
        yield name
        new = (parts[name].mentions & parts.keys()) - seen
        seen |= new
        waiting += new


@functools.cache
def _read() -> dict[str, Part]:
    """All there is, in the order of the file."""
    text = _FILE.read_text(encoding="utf-8")
    parts = [part for node in ast.parse(text).body for part in _split(node, text)]
    return {part.name: part for part in parts if part.name != _GIVEN}


def _split(node: ast.stmt, text: str) -> Iterator[Part]:
    mentions = frozenset(name.id for name in ast.walk(node) if isinstance(name, ast.Name))
    if isinstance(node, ast.ImportFrom):
        yield from (Part(one.name, f"from {node.module} import {one.name}", frozenset()) for one in node.names)
    elif isinstance(node, ast.Import):
        yield from (Part(one.name, f"import {one.name}", frozenset()) for one in node.names)
    elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        yield Part(node.name, _cut(node, text), mentions)
    elif isinstance(node, ast.Assign):
        yield from (Part(one.id, _cut(node, text), mentions) for one in node.targets if isinstance(one, ast.Name))


def _cut(node: ast.ClassDef | ast.FunctionDef | ast.Assign, text: str) -> str:
    """The lines of a definition, from its first decorator on."""
    decorators = [] if isinstance(node, ast.Assign) else node.decorator_list
    first = min(one.lineno for one in (*decorators, node))
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
