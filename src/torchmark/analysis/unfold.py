"""Stacks from a call graph, which knows who called whom but not on behalf of whom.

What a function spends is shared among its callers in proportion to what their calls of it cost, and so on upwards.
Each function keeps what it spent itself, and everything adds up to the total. A function that is on the way already is
folded into the frame that it has there.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import NamedTuple

from torchmark.analysis.naming import NAMELESS, is_nameless, library
from torchmark.model.costs import INSTRUCTIONS, Function, Profile
from torchmark.model.flame import Frame, FrameKind, Method, Stack, Stacks, Unit

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
    spent = _spread(graph, _find_spent(graph))
    trimmed = _trim(spent)
    return Stacks(_round(trimmed, profile.total()), Unit.INSTRUCTIONS, Method.CALL_GRAPH, number)


class _Graph(NamedTuple):
    """Functions by number. `callers` are those of a function with their shares of it; what remains is the root's."""

    frames: list[Frame]
    own: list[int]
    callers: list[dict[int, float]]
    callees: list[set[int]]


def _read_graph(profile: Profile) -> _Graph:
    event = profile.events.index(INSTRUCTIONS)
    numbers = {function: i for i, function in enumerate(profile.exclusive)}
    own = [costs[event] for costs in profile.exclusive.values()]
    calls: list[dict[int, float]] = [{} for _ in own]
    gone: list[float] = [float(cost) for cost in own]
    callees: list[set[int]] = [set() for _ in own]
    for (caller, callee), call in profile.calls.items():
        one, other, cost = numbers[caller], numbers[callee], call.costs[event]
        if one != other and cost:
            calls[other][one] = calls[other].get(one, 0.0) + cost
            callees[one].add(other)
            gone[one] += cost
    frames = [_describe(function) for function in numbers]
    graph = _Graph(frames, own, calls, callees)
    _share_out(graph, gone)
    return graph


def _share_out(graph: _Graph, gone: Sequence[float]) -> None:
    """Turn costs of calls into shares. What left a function without having come from a caller came from the root.

    Not in a cycle, where what goes round is counted more than once.
    """
    for members in _find_cycles(graph):
        inside = set(members)
        for i in members:
            callers = graph.callers[i]
            come = sum(callers.values())
            whole = come if come and len(members) > 1 else max(come, gone[i])
            graph.callers[i] = {caller: cost / whole for caller, cost in callers.items()} if whole else {}
        if all(_leak(graph, i, inside) < PRECISION for i in members):
            # Nobody ever entered it: whatever is largest was there from the beginning.
            graph.callers[max(members, key=lambda i: gone[i])].clear()


def _leak(graph: _Graph, i: int, inside: set[int]) -> float:
    """The share of a function that comes from elsewhere than these functions."""
    return 1.0 - sum(share for caller, share in graph.callers[i].items() if caller in inside)


def _find_spent(graph: _Graph) -> list[float]:
    """What each function spent with all that it called, by the shares of callers."""
    spent = [float(cost) for cost in graph.own]
    for members in _find_cycles(graph):
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


def _find_cycles(graph: _Graph) -> list[list[int]]:
    """Functions that call each other in a circle, and all others by themselves; callees before their callers.

    Tarjan's algorithm without recursion, for chains of calls can be longer than Python likes.
    """
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    waiting: list[int] = []
    is_waiting = [False] * len(graph.own)
    found: list[list[int]] = []
    for start in range(len(graph.own)):
        if start in order:
            continue
        path = [(start, iter(sorted(graph.callees[start])))]
        order[start] = low[start] = len(order)
        waiting.append(start)
        is_waiting[start] = True
        while path:
            here, further = path[-1]
            following = next(further, None)
            if following is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[here])
                if low[here] == order[here]:
                    found.append(_take(waiting, is_waiting, here))
            elif following not in order:
                order[following] = low[following] = len(order)
                waiting.append(following)
                is_waiting[following] = True
                path.append((following, iter(sorted(graph.callees[following]))))
            elif is_waiting[following]:
                low[here] = min(low[here], order[following])
    return found


def _take(waiting: list[int], is_waiting: list[bool], last: int) -> list[int]:
    members = []
    while True:
        member = waiting.pop()
        is_waiting[member] = False
        members.append(member)
        if member == last:
            return members


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
        for callee in sorted(graph.callees[i]):
            passed = spent[callee] * graph.callers[callee].get(i, 0.0) * part
            if passed:
                arrived.append((_extend(path, graph.frames[callee]), callee, passed))
    return values


def _extend(path: Path, frame: Frame) -> Path:
    return path[: path.index(frame) + 1] if frame in path else (*path, frame)


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


def _describe(function: Function) -> Frame:
    name = function.name.partition("'")[0]
    return Frame(NAMELESS if is_nameless(name) else name, FrameKind.NATIVE, library(function.binary))
