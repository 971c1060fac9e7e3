"""How frames are called and coloured in a flame graph. Whatever a name holds, what comes out is one line of letters."""

from __future__ import annotations

import functools
import re
import zlib

from torchmark.analysis.naming import NAMELESS, is_nameless, plain_name, split_name
from torchmark.analysis.stages import STAGES, stage_of
from torchmark.model.costs import Function
from torchmark.model.flame import Frame, FrameKind
from torchmark.report.cells import ELLIPSIS, cut, measure
from torchmark.report.explaining import fit_name
from torchmark.report.printable import printable

# Numbers of colours in `assets/flame.css`: each family has so many shades, to tell neighbours apart.
FAMILIES = ("all", "Python", *STAGES)
SHADES = 2
# No frame is wide enough for a longer label.
LONGEST_LABEL = 100
# With less room than this for letters, a label says nothing.
LEAST_ROOM = 3
# Names of templates can be of any length. What is longer than this is not read by anybody.
LONGEST_NAME = 1000
# What says nothing without what it belongs to.
DEPENDENT = re.compile(r"\{|~|operator|(?:call|redispatch|apply|run|reset|reset_|release)(?!\w)")


def full_name(frame: Frame) -> str:
    """A frame's name as it is, but on one line, and not without end."""
    return cut(printable(frame.name[:LONGEST_NAME]).strip(), LONGEST_NAME) or NAMELESS


def origin_of(frame: Frame) -> str:
    """Where it is from, in the same way."""
    return printable(frame.origin[-LONGEST_NAME:]).strip()


@functools.lru_cache(maxsize=50_000)
def label_of(frame: Frame) -> str:
    """A short name: of a compiled function without parameters, and of long template arguments only as much as fits.

    >>> label_of(Frame("at::add(at::Tensor const&, at::Tensor const&)"))
    'at::add'
    """
    if frame.kind is not FrameKind.NATIVE:
        return cut(full_name(frame), LONGEST_LABEL)
    if is_nameless(frame.name):
        return NAMELESS
    return fit_name(printable(plain_name(frame.name[:LONGEST_NAME])), LONGEST_LABEL).strip() or NAMELESS


def fit_label(label: str, room: int) -> str:
    """As much of a label as so many letters tell: template arguments go first, then namespaces, then the end.

    >>> [fit_label("torch::autograd::make<int>", room) for room in (26, 25, 10, 4, 1)]
    ['torch::autograd::make<int>', 'torch::autograd::make<…>', 'make<…>', 'mak…', '']
    """
    if measure(label) <= room:
        return label
    if room < LEAST_ROOM:
        return ""
    tails = _list_tails(label)
    return next((tail for tail in tails if measure(tail) <= room), cut(tails[-1], room))


def _list_tails(label: str) -> list[str]:
    """A name with dots for template arguments, and then without its first namespace, its first two, and so on, down to
    what tells something on its own."""
    starts, short = [0], ""
    depth, colons, previous = 0, 0, ""
    for token in split_name(label):
        depth -= token == ">" and depth > 0
        if depth:
            depth += token == "<"
            continue
        if colons == 2:
            starts.append(len(short))
        colons = colons + 1 if token == ":" else 0
        short += token
        if token == "<" and (previous[-1:].isalnum() or previous[-1:] == "_" or previous.startswith("operator")):
            depth = 1
            short += ELLIPSIS
        previous = token
    return [short[start:] for start in starts if not start or not DEPENDENT.match(short, start)]


def family_of(frame: Frame) -> int:
    """The number of its family: what stands for no function, Python's functions, or a stage of a call."""
    if frame.kind is FrameKind.OTHER:
        return 0
    if frame.kind is FrameKind.PYTHON:
        return 1
    return FAMILIES.index(stage_of(Function("", frame.name, frame.origin)), 2)


def colour_of(frame: Frame) -> int:
    """The number of its colour: the same for a name in all graphs."""
    shade = zlib.crc32(frame.name.encode("utf-8", "surrogatepass")) % SHADES
    return family_of(frame) * SHADES + shade
