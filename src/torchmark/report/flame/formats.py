"""Stacks for other programs: the file of speedscope, and lines as Brendan Gregg's scripts and many others read them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

from torchmark.analysis.flames import ALL, draw_flame
from torchmark.analysis.stacks import align, leave_out_native
from torchmark.model.costs import Flame, Frame, FrameKind, Stacks
from torchmark.report.flame.labels import full_name, origin_of
from torchmark.report.flame.page import render_html, render_svg
from torchmark.report.formats.entries import dump_json
from torchmark.report.text.terminal import count

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
EXPORTER = "torchmark"


def as_collapsed(head: Stacks, base: Stacks | None = None) -> str:
    """A line for each stack: its frames, outermost first, and what was spent in the innermost.

    With a base, there are two numbers, base's first, as `difffolded.pl` writes them; both are of equally many runs.

    >>> from torchmark.model.costs import Method, Stack, FlameUnit
    >>> f, g = Frame("f"), Frame("std::g(int; char)")
    >>> print(as_collapsed(Stacks((Stack((f, g), 3), Stack((f,), 2)), FlameUnit.INSTRUCTIONS, Method.CALLERS)), end="")
    f 2
    f;std::g(int, char) 3
    """
    sides = [_collapse(head, 1)] if base is None else [_collapse(*side) for side in _level(base, head)]
    lines = sorted({line for side in sides for line in side})
    return "".join(f"{line} {' '.join(str(side[line]) for side in sides)}\n" for line in lines)


def as_speedscope(head: Stacks, base: Stacks | None = None, *, name: str = "") -> dict[str, Any]:
    """A file with one profile, or with base's and head's, of equally many runs. Weights are of all runs together."""
    frames: dict[Frame, int] = {}
    sides = [(name or "profile", (head, 1))]
    if base is not None:
        sides = list(zip(("base", "head"), _level(base, head), strict=True))
    profiles = [_profile(side, stacks, times, frames) for side, (stacks, times) in sides]
    return {
        "$schema": SCHEMA,
        "exporter": EXPORTER,
        "name": name,
        "activeProfileIndex": len(profiles) - 1,
        "shared": {"frames": [_describe(frame) for frame in frames]},
        "profiles": profiles,
    }


def _level(base: Stacks, head: Stacks) -> list[tuple[Stacks, int]]:
    """Both with what to multiply them by, so that they are of the same number of runs."""
    alike = base.number == head.number
    return [(base, 1 if alike else head.number), (head, 1 if alike else base.number)]


def _collapse(stacks: Stacks, times: int) -> Counter[str]:
    lines: Counter[str] = Counter()
    for frames, value in stacks.stacks:
        lines[";".join(full_name(frame).replace(";", ",") for frame in frames or (ALL,))] += value * times
    return lines


def _profile(name: str, stacks: Stacks, times: int, frames: dict[Frame, int]) -> dict[str, Any]:
    return {
        "type": "sampled",
        "name": f"{name}, {count(stacks.number * times, 'run')}",
        "unit": "none",
        "startValue": 0,
        "endValue": stacks.total * times,
        "samples": [[frames.setdefault(frame, len(frames)) for frame in stack.frames] for stack in stacks.stacks],
        "weights": [stack.value * times for stack in stacks.stacks],
    }


def _describe(frame: Frame) -> dict[str, Any]:
    described: dict[str, Any] = {"name": full_name(frame)}
    if origin := origin_of(frame):
        file, colon, line = origin.rpartition(":")
        is_line = frame.kind is FrameKind.PYTHON and colon and line.isascii() and line.isdigit()
        described |= {"file": file, "line": int(line)} if is_line else {"file": origin}
    return described


@dataclasses.dataclass(frozen=True)
class Graph:
    """One graph to write: the stacks of one side, or of both."""

    head: Stacks
    title: str
    note: str
    base: Stacks | None = None
    native: bool = True

    @property
    def flame(self) -> Flame:
        base, head = self._choose_sides()
        return draw_flame(head, self.title, self.note, base=base)

    def render(self, kind: str) -> str:
        """As a text of this format; a PNG is not text."""
        if kind == "svg":
            return render_svg(self.flame)
        if kind == "html":
            return render_html(self.flame)
        base, head = self._choose_sides()
        if base is not None:
            base, head, _ = align(base, head)
        if kind == "collapsed":
            return as_collapsed(head, base)
        return dump_json(as_speedscope(head, base, name=self.title))

    def _choose_sides(self) -> tuple[Stacks | None, Stacks]:
        """Base and head with the frames that are wanted."""
        if self.native:
            return self.base, self.head
        return self.base and leave_out_native(self.base), leave_out_native(self.head)
