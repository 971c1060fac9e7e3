"""Trees for flame graphs, from stacks or from call graphs; their sums are exact, small frames are combined."""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from torchmark.analysis.stacks import align
from torchmark.analysis.verdict.explain import NAMELESS, explain, is_nameless, library
from torchmark.model.costs import (
    INSTRUCTIONS,
    Flame,
    FlameNode,
    FlameUnit,
    Frame,
    FrameKind,
    Function,
    Method,
    Profile,
    Stack,
    Stacks,
    Tally,
)
from torchmark.model.judgement import Explanation, FunctionChange, Side
from torchmark.model.report_data import Breakdown

ALL = Frame("all", FrameKind.OTHER)


def grow(head: Stacks, base: Stacks | None = None) -> FlameNode:
    """The tree of all stacks; of two sides, with base's values beside head's.

    Both are brought to the same number of runs first, which is the product of theirs where they differ.

    >>> from torchmark.model.costs import Method, Stack, FlameUnit
    >>> f, g = Frame("f"), Frame("g")
    >>> root = grow(Stacks((Stack((f,), 2), Stack((f, g), 3)), FlameUnit.INSTRUCTIONS, Method.CALLERS))
    >>> root.value, root.children[0].own, root.children[0].children[0].value
    (5, 2, 3)
    """
    sides = [head] if base is None else [head, base]
    # Frames are numbered as they are found, so callers have smaller numbers than what they call.
    numbers: dict[tuple[int, Frame], int] = {}
    found: list[tuple[int, Frame]] = [(0, ALL)]
    own: list[collections.Counter[int]] = [collections.Counter() for _ in sides]
    for side, stacks in enumerate(sides):
        times = math.prod({one.number for one in sides}) // stacks.number
        for frames, value in stacks.stacks:
            number = 0
            for frame in frames:
                place = (number, frame)
                if place not in numbers:
                    numbers[place] = len(found)
                    found.append(place)
                number = numbers[place]
            own[side][number] += value * times
    below: list[list[FlameNode]] = [[] for _ in found]
    for number in range(len(found) - 1, 0, -1):
        caller, frame = found[number]
        below[caller].append(_finish(frame, below[number], [spent[number] for spent in own]))
    return _finish(ALL, below[0], [spent[0] for spent in own])


def _finish(frame: Frame, below: list[FlameNode], own: Sequence[int]) -> FlameNode:
    """A frame, of what is spent in itself on head's side, and on base's if there are two."""
    below.sort(key=lambda child: (-_larger(child), child.frame.name, child.frame.origin))
    return FlameNode(
        frame=frame,
        own=own[0],
        value=own[0] + sum(child.value for child in below),
        children=tuple(below),
        base_own=own[1] if own[1:] else None,
        base_value=own[1] + sum(child.base_value or 0 for child in below) if own[1:] else None,
    )


def prune(root: FlameNode, share: float) -> FlameNode:
    """The tree without frames that are less than this share of the root, on both sides. Values stay what they are, so
    that a frame may be more than its own and its children's."""
    least = share * _larger(root)

    def keep(node: FlameNode) -> list[FlameNode]:
        return [child for child in node.children if _larger(child) >= least]

    made: list[FlameNode] = []
    for node in reversed(list_callers_first(root, keep)):
        # The first of those below it was made last.
        made.append(dataclasses.replace(node, children=tuple([made.pop() for _ in keep(node)])))
    return made[0]


def list_callers_first(
    root: FlameNode, list_below: Callable[[FlameNode], Sequence[FlameNode]] = lambda node: node.children
) -> list[FlameNode]:
    """All frames, each before those below it. Without recursion: chains of calls are longer than Python's."""
    found: list[FlameNode] = []
    waiting = [root]
    while waiting:
        found.append(waiting.pop())
        waiting += reversed(list_below(found[-1]))
    return found


def _larger(node: FlameNode) -> int:
    return max(node.value, node.base_value or 0)


# What is a smaller share of all is not followed any further: it stays in the function that it was spent in or below.
SMALLEST_SHARE = 2e-4
# Nor is what is deeper than this, four times as deep as a call of an operator through two overrides. Each frame
# of a chain has a path of its own, so without a bound they would take room that grows with the square of its length.
DEEPEST = 250
# Cycles of calls are solved by going around them until nothing changes any more; so often at most.
MOST_ROUNDS = 1000
PRECISION = 1e-9
# Chains of callers that all of it passes through are of no interest: they are the loop around the statement.
ENCLOSING_SHARE = 0.995

Path = tuple[Frame, ...]


def unfold(profile: Profile, number: int) -> Stacks:
    """The stacks of `number` runs."""
    graph = _read_graph(profile)
    values = _trim(_spread(graph, _find_spent(graph)))
    return Stacks(_round(values, profile.total()), FlameUnit.INSTRUCTIONS, Method.CALL_GRAPH, number)


class _Graph(NamedTuple):
    """Functions by number. `callers` are those of a function with their shares of it; what remains is the root's."""

    frames: list[Frame]
    own: list[int]
    callers: list[dict[int, float]]
    callees: list[list[int]]
    cycles: list[list[int]]
    """Functions that call each other in a circle, and all others by themselves; callees before their callers."""


def _read_graph(profile: Profile) -> _Graph:
    event = profile.events.index(INSTRUCTIONS)
    numbers = {function: i for i, function in enumerate(profile.exclusive)}
    own = [costs[event] for costs in profile.exclusive.values()]
    calls: list[dict[int, float]] = [{} for _ in own]
    gone = [float(cost) for cost in own]
    callees: list[set[int]] = [set() for _ in own]
    for (caller, callee), call in profile.calls.items():
        one, other, cost = numbers[caller], numbers[callee], call.costs[event]
        if one != other and cost:
            calls[other][one] = calls[other].get(one, 0.0) + cost
            callees[one].add(other)
            gone[one] += cost
    ordered = [sorted(one) for one in callees]
    graph = _Graph([_describe(function) for function in numbers], own, calls, ordered, _find_cycles(ordered))
    _share_out(graph, gone)
    return graph


def _share_out(graph: _Graph, gone: Sequence[float]) -> None:
    """Turn costs of calls into shares. What left a function without having come from a caller came from the root.

    Not in a cycle, where what goes round is counted more than once.
    """
    for members in graph.cycles:
        inside = set(members)
        for i in members:
            callers = graph.callers[i]
            come = sum(callers.values())
            whole = come if come and len(members) > 1 else max(come, gone[i])
            graph.callers[i] = {caller: cost / whole for caller, cost in callers.items()} if whole else {}
        own = (sum(share for caller, share in graph.callers[i].items() if caller in inside) for i in members)
        if all(1.0 - share < PRECISION for share in own):
            # Nobody ever entered it: whatever is largest was there from the beginning.
            graph.callers[max(members, key=lambda i: gone[i])].clear()


def _find_spent(graph: _Graph) -> list[float]:
    """What each function spent with all that it called, by the shares of callers."""
    spent = [float(cost) for cost in graph.own]
    for members in graph.cycles:
        for _ in range(MOST_ROUNDS if len(members) > 1 else 1):
            change = 0.0
            for i in members:
                now = graph.own[i] + sum(
                    spent[callee] * graph.callers[callee].get(i, 0.0) for callee in graph.callees[i]
                )
                change = max(change, abs(now - spent[i]))
                spent[i] = now
            if change <= PRECISION * max(spent[i] for i in members):
                break
    return spent


def _find_cycles(callees: Sequence[Sequence[int]]) -> list[list[int]]:
    """Functions that call each other in a circle, and all others by themselves; callees before their callers.

    Kosaraju's algorithm without recursion, for chains of calls can be longer than Python likes.
    """
    callers: list[list[int]] = [[] for _ in callees]
    for caller, called in enumerate(callees):
        for callee in called:
            callers[callee].append(caller)
    cycles = []
    taken: set[int] = set()
    # Whoever is left with the last end has no caller outside of its circle.
    for start in reversed(_list_by_end(callees)):
        members = []
        waiting = [start]
        while waiting:
            member = waiting.pop()
            if member not in taken:
                taken.add(member)
                members.append(member)
                waiting += callers[member]
        if members:
            cycles.append(members)
    return cycles[::-1]


def _list_by_end(callees: Sequence[Sequence[int]]) -> list[int]:
    """Functions in the order in which a walk through all calls has seen all below them."""
    ended: dict[int, None] = {}
    seen: set[int] = set()
    waiting = list(reversed(range(len(callees))))
    while waiting:
        here = waiting[-1]
        if here in seen:
            ended.setdefault(waiting.pop())
        else:
            seen.add(here)
            waiting += [callee for callee in reversed(callees[here]) if callee not in seen]
    return list(ended)


def _spread(graph: _Graph, spent: Sequence[float]) -> dict[Path, float]:
    """What is spent at the end of each path of frames."""
    least = SMALLEST_SHARE * sum(graph.own)
    values: dict[Path, float] = collections.defaultdict(float)
    # The amounts that arrive at a path in a function, to be shared out further.
    arrived: collections.deque[tuple[Path, int, float]] = collections.deque()
    for i, callers in enumerate(graph.callers):
        amount = spent[i] * (1.0 - sum(callers.values()))
        if amount > PRECISION * spent[i]:
            arrived.append(((graph.frames[i],), i, amount))
    while arrived:
        path, i, amount = arrived.popleft()
        part = amount / spent[i] if spent[i] else 0.0
        if amount < least or len(path) == DEEPEST:
            values[path] += amount
            continue
        values[path] += graph.own[i] * part
        for callee in graph.callees[i]:
            passed = spent[callee] * graph.callers[callee].get(i, 0.0) * part
            if passed:
                frame = graph.frames[callee]
                below = path[: path.index(frame) + 1] if frame in path else (*path, frame)
                arrived.append((below, callee, passed))
    return values


def _trim(values: dict[Path, float]) -> dict[Path, float]:
    """Leave out the frames that all but a trace is below."""
    total = sum(values.values())
    depth = 0
    while True:
        below: dict[Frame, float] = collections.defaultdict(float)
        for path, value in values.items():
            if len(path) > depth + 1:
                below[path[depth]] += value
        if not below or max(below.values()) < ENCLOSING_SHARE * total:
            break
        depth += 1
    trimmed: dict[Path, float] = collections.defaultdict(float)
    for path, value in values.items():
        trimmed[path[depth:] or path[-1:]] += value
    return trimmed


def _round(values: dict[Path, float], total: int) -> tuple[Stack, ...]:
    """Whole numbers that add up to the total: those that lose most by being cut off get one more."""
    paths = sorted(values, key=lambda path: [(frame.name, frame.origin) for frame in path])
    # What rounds around a cycle were too few for is missing in proportion.
    scale = total / (sum(values.values()) or 1.0)
    exact = [values[path] * scale for path in paths]
    whole = [int(value) for value in exact]
    losing = sorted(range(len(whole)), key=lambda i: whole[i] - exact[i])
    for i in losing[: total - sum(whole)]:
        whole[i] += 1
    if paths:
        # Of numbers beyond the precision of floats.
        whole[losing[0]] += total - sum(whole)
    return tuple(Stack(path, value) for path, value in zip(paths, whole, strict=True) if value)


@functools.lru_cache(maxsize=50_000)
def _describe(function: Function) -> Frame:
    name = function.name.partition("'")[0]
    return Frame(NAMELESS if is_nameless(name) else name, FrameKind.NATIVE, library(function.binary))


# Frames on a page, all graphs together: some 300 kB. A graph of more than the most is drawn no better on a
# screen, and one of fewer than the least tells nothing, so there are no more graphs than there is room for.
FRAMES_A_PAGE = 36_000
MOST_FRAMES = 500
LEAST_FRAMES = 60
MOST_GRAPHS = FRAMES_A_PAGE // LEAST_FRAMES

STRIPPED = "One side has no names for functions of {}: they are part of their callers"
ONE_SIDE = "Only {} was counted: this is not a difference"


def share_out_frames(cases: int) -> int:
    """How many frames each of so many graphs may have.

    >>> share_out_frames(10), share_out_frames(200), share_out_frames(5000)
    (500, 180, 60)
    """
    return min(max(FRAMES_A_PAGE // max(cases, 1), LEAST_FRAMES), MOST_FRAMES)


def picture(tallies: Sequence[Tally | None], title: str, most: int) -> Flame | None:
    """The graph of the only side that has costs by function, or the difference of both; None where nobody has them."""
    found = [unfold(one.profile, one.number) for one in tallies if one is not None and one.profile is not None]
    if not found:
        return None
    if len(found) == 2:
        return abridge(draw_flame(found[1], title, base=found[0]), most)
    side = find_only(tallies) if len(tallies) == 2 else None
    return abridge(draw_flame(found[0], title, "" if side is None else ONE_SIDE.format(side.value)), most)


def draw_flame(head: Stacks, title: str, note: str = "", *, base: Stacks | None = None) -> Flame:
    """The graph of one side, or of the difference between both, by names that both have."""
    number = head.number
    if base is not None:
        base, head, stripped = align(base, head)
        if stripped:
            note = f"{note}. {STRIPPED.format(', '.join(stripped))}".removeprefix(". ")
        # Of different numbers of runs, the tree is of their product.
        number = math.prod({base.number, head.number})
    return Flame(root=grow(head, base), title=title, unit=head.unit, method=head.method, number=number, note=note)


def abridge(flame: Flame, most: int) -> Flame:
    """The same with about so many of its widest frames; what has none left belongs to whoever called it."""
    widths = sorted(map(_larger, list_callers_first(flame.root)), reverse=True)
    if len(widths) <= most or not widths[0]:
        return flame
    # Half of one less: widths are whole numbers, and a share that is rounded up must not take those that just fit.
    return dataclasses.replace(flame, root=prune(flame.root, (widths[most - 1] - 0.5) / widths[0]))


# As many as people read. A call is spread over some three hundred functions, and what is left of it is summed up.
MOST_CHANGED = 10
MOST_COSTLY = 16
# Half of the last digit that is shown: what changed by less did not change to whoever reads it.
VISIBLE = 0.05


def break_down(tallies: Sequence[Tally | None], standardise: Callable[[str], str]) -> Breakdown | None:
    """Of base and head, or of the only one there is; None where neither has costs by function."""
    counted = [tally for tally in tallies if tally is not None and tally.profile is not None]
    if not counted:
        return None
    # One side has nothing to be compared with. Its numbers are explained alone, and `only` says whose they are.
    explanation = explain(counted[0], counted[-1], standardise)
    return None if explanation is None else shorten(explanation, find_only(tallies))


def find_only(tallies: Sequence[Tally | None]) -> Side | None:
    """The only side that has costs by function, HEAD where there is only one; None where both sides have them."""
    has_costs = [tally is not None and tally.profile is not None for tally in tallies]
    return None if has_costs == [True, True] else Side.HEAD if has_costs[-1] else Side.BASE


def shorten(explanation: Explanation, only: Side | None = None) -> Breakdown:
    """Those that changed most, then those that cost most, and the others together."""
    changed = [one for one in explanation.functions if abs(one.delta) >= VISIBLE][:MOST_CHANGED]
    costly = sorted(explanation.functions, key=lambda one: -max(one.base, one.head))[:MOST_COSTLY]
    shown = list(dict.fromkeys([*changed, *costly]))
    taken = set(shown)
    others = [one for one in explanation.functions if one not in taken]
    rest = FunctionChange("", "", sum(one.base for one in others), sum(one.head for one in others)) if others else None
    return Breakdown(tuple(shown), rest=rest, others=len(others), stages=explanation.stages, only=only)
