"""Flame graphs for tests: a small one worked out by hand, its difference, hostile names, and any."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
import zlib
from typing import Any

from hypothesis import strategies as st

from torchmark.analysis.flames import grow
from torchmark.model.costs import Flame, FlameNode, FlameUnit, Frame, FrameKind, Method, Stack, Stacks

RUN = Frame("run", FrameKind.PYTHON, "bench.py:3")
HOOK = Frame("Sub.__torch_function__", FrameKind.PYTHON, "/site-packages/sub.py:12")
ADD = Frame("at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&)", FrameKind.NATIVE, "libtorch_cpu.so")
LOOP = Frame("at::native::vectorized_loop<float>(char**, long)", FrameKind.NATIVE, "libtorch_cpu.so")
MALLOC = Frame("malloc", FrameKind.NATIVE, "libc.so.6")
OLD = Frame("at::old_path()", FrameKind.NATIVE, "libtorch_cpu.so")

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "]]></script><script>alert(2)</script>",
    "\"'&amp;&lt;",
    "line\nbreak\r\ttab",
    "\x00\x01\x1b[31m\x7f\x85",
    "\ud800 alone \udfff",
    "\u202eright to left\u202c\u200f",
    "\ufffe\uffff\u2028\u2029",
    "<!-- -- -->",
    "",
    "a;b;c 12",
    "${1 + 1}`\\u003c{{ 7 * 7 }}",
)


def make_stacks(*stacks: tuple[tuple[Frame, ...], int], number: int = 100) -> Stacks:
    return Stacks(tuple(Stack(*stack) for stack in stacks), FlameUnit.INSTRUCTIONS, Method.CALLERS, number)


BASE = make_stacks(
    ((RUN,), 10_000),
    ((RUN, HOOK), 20_000),
    ((RUN, HOOK, ADD), 5_050),
    ((RUN, HOOK, ADD, LOOP), 40_000),
    ((RUN, HOOK, ADD, MALLOC), 4_000),
    ((RUN, MALLOC), 10_000),
    ((RUN, OLD), 11_000),
)
HEAD = make_stacks(
    ((RUN,), 10_000),
    ((RUN, HOOK), 32_000),
    ((RUN, HOOK, ADD), 5_050),
    ((RUN, HOOK, ADD, LOOP), 37_000),
    ((RUN, HOOK, ADD, MALLOC), 4_000),
    ((RUN, MALLOC), 10_000),
)


def plain_flame() -> Flame:
    return Flame(
        root=grow(BASE),
        title="torch.add for Sub",
        unit=FlameUnit.INSTRUCTIONS,
        method=Method.CALLERS,
        number=100,
        note="torch 2.13",
    )


def compared_flame() -> Flame:
    root = grow(HEAD, BASE)
    return Flame(
        root=root,
        title="torch.add for Sub: base, head",
        unit=FlameUnit.INSTRUCTIONS,
        method=Method.CALLERS,
        number=100,
        note="Two builds",
    )


def hostile_flame() -> Flame:
    """Every hostile text as a title, a note, a name and an origin."""
    frames = [Frame(text, kind, text) for text in HOSTILE for kind in (FrameKind.PYTHON, FrameKind.NATIVE)]
    stacks = make_stacks(*(((frame,), 100) for frame in frames))
    return Flame(
        root=grow(stacks),
        title="".join(HOSTILE),
        unit=stacks.unit,
        method=stacks.method,
        number=1,
        note="".join(HOSTILE),
    )


def large_flame(frames: int) -> Flame:
    """A tree of so many frames, wide and deep, most of them too narrow to be seen at first."""
    rows = [Frame(f"f{i}", FrameKind.NATIVE, "lib.so") for i in range(20)]
    stacks: list[tuple[tuple[Frame, ...], int]] = [((RUN,), 1)]
    for i in range(frames // len(rows)):
        leaf = Frame(f"leaf{i}", FrameKind.PYTHON, f"x.py:{i}")
        stacks.append(((RUN, leaf, *rows[1:]), 1 + 20_000 // (i + 1)))
    made = make_stacks(*stacks, number=1)
    return Flame(grow(made), "large", made.unit, made.method)


texts = st.one_of(st.text(max_size=30), st.sampled_from(HOSTILE), st.text(st.characters(codec=None), max_size=10))
frames = st.builds(Frame, texts, st.sampled_from([FrameKind.PYTHON, FrameKind.NATIVE]), texts)
small_frames = st.one_of(st.sampled_from([RUN, HOOK, ADD, LOOP, MALLOC]), frames)


@st.composite
def stacks(draw: st.DrawFn) -> Stacks:
    chains = draw(st.dictionaries(st.lists(small_frames, max_size=5).map(tuple), st.integers(0, 10**9), max_size=8))
    made = make_stacks(*chains.items(), number=draw(st.integers(1, 100)))
    return dataclasses.replace(made, unit=draw(st.sampled_from(FlameUnit)))


@st.composite
def flames(draw: st.DrawFn) -> Flame:
    one, other = draw(stacks()), draw(stacks())
    root = grow(dataclasses.replace(other, number=one.number), one) if draw(st.booleans()) else grow(one)
    return Flame(
        root=root,
        title=draw(texts),
        unit=one.unit,
        method=draw(st.sampled_from(Method)),
        number=one.number,
        note=draw(texts),
    )


def inflate(packed: str) -> str:
    """The JSON of the graphs of a page of many cases."""
    return zlib.decompress(base64.b64decode(packed)).decode()


def read_flames(page: str) -> dict[str, Any]:
    """The graphs in a report."""
    (packed,) = re.findall(r'id="torchmark-flames">(.*?)</script>', page, re.DOTALL)
    read: dict[str, Any] = json.loads(inflate(packed))
    return read


def unpack(names: list[list[Any]], graph: dict[str, Any]) -> FlameNode:
    """What flame.js reads from a graph, with frames that have their labels for names."""
    compared = "styles" in graph
    zeros = [0] * len(graph["depth"])
    columns = [graph[key] for key in ("depth", "name", "own", "rest")]
    columns += [graph.get(key, zeros) for key in ("ownChange", "restChange")]
    # Of each level, the frames that have been made and whose caller has not.
    made: dict[int, list[FlameNode]] = {}
    for depth, name, own, rest, own_change, rest_change in reversed(list(zip(*columns, strict=True))):
        children = tuple(reversed(made.pop(depth + 1, [])))
        label, _, origin, *_ = names[name]
        value = own + rest + sum(child.value for child in children)
        base_own, base_value = own - own_change, own - own_change + rest - rest_change
        base_value += sum(child.base_value or 0 for child in children)
        node = FlameNode(Frame(label, FrameKind.OTHER, origin), own, value, children)
        if compared:
            node = dataclasses.replace(node, base_own=base_own, base_value=base_value)
        made.setdefault(depth, []).append(node)
    return made[0][0]


# Deeper than any limit of Python's.
DEEP = 20_000


def make_deep_stacks(depth: int = DEEP, leaf: int = 100) -> Stacks:
    """One chain of calls, in which something is spent at the top and at the bottom."""
    chain = tuple(Frame(f"f{i}", FrameKind.NATIVE, "libx.so") for i in range(depth))
    return make_stacks(((chain[0],), 1), (chain, leaf))
