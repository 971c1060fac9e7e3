"""Which cores a run may use: those that the system allows this process, as many as its share of time is worth."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from torchmark.errors import UsageError
from torchmark.runner.machine import read_cpu_quota


def choose_cores(wanted: str | None = None, allowed: Sequence[int] | None = None, root: Path = Path("/")) -> list[int]:
    """The cores to use, in ascending order, at least one.

    `wanted` is a number of cores, or a list such as "0,2-3". `allowed` are those that the system lets this process use.

    >>> choose_cores("2", allowed=[0, 1, 2, 3])
    [0, 1]
    >>> choose_cores("1,3", allowed=[0, 1, 2, 3])
    [1, 3]
    """
    found = sorted(allowed) if allowed is not None else list_allowed_cores()
    if wanted is None:
        quota = read_cpu_quota(root)
        # A part of a core is none: what is throttled in the middle of a measurement measures the throttle.
        return found if quota is None else found[: max(1, int(quota))]
    if _is_number(wanted):
        return _take_some(int(wanted), found)
    chosen = set()
    for core in _read_list(wanted):
        if core not in found:
            raise UsageError(f"Core {core} cannot be used: there are {describe_cores(found)}.")
        chosen.add(core)
    return sorted(chosen)


def list_allowed_cores() -> list[int]:
    """Those that the system lets this process use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def choose_idlest(cores: Sequence[int], number: int = 1, root: Path = Path("/")) -> tuple[int, ...]:
    """As many of these cores as are wanted: those that did the least since the last time somebody asked.

    Where all did the same, or the system does not tell, the last ones: most systems have their interrupts on the first.
    """
    busy = _read_busy(root)
    before = {core: _last_busy.get(core, 0) for core in busy}
    _last_busy.update(busy)
    ordered = sorted(cores, key=lambda core: (busy.get(core, 0) - before.get(core, 0), -core))
    return tuple(sorted(ordered[: max(1, number)]))


# Ticks that each core had been busy for when it was last asked for.
_last_busy: dict[int, int] = {}


def _read_busy(root: Path) -> dict[int, int]:
    """Ticks that each core has been busy for."""
    try:
        lines = (root / "proc" / "stat").read_text().splitlines()
    except OSError:
        return {}
    busy = {}
    for line in lines:
        name, *ticks = line.split() or [""]
        if name.startswith("cpu") and name[3:].isdigit() and len(ticks) >= 5:
            idle = int(ticks[3]) + int(ticks[4])
            busy[int(name[3:])] = sum(map(int, ticks[:8])) - idle
    return busy


def _take_some(number: int, found: list[int]) -> list[int]:
    if not 1 <= number <= len(found):
        raise UsageError(f"{number} cores cannot be used: there are {len(found)} ({describe_cores(found)}).")
    return found[:number]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _read_list(text: str) -> Iterable[int]:
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not _is_number(first) or (dash and not _is_number(last)) or (dash and int(first) > int(last)):
            raise UsageError(f"{text!r} names no cores: say how many, such as 2, or which, such as 0,2-3.")
        yield from range(int(first), int(last or first) + 1)


def describe_cores(cores: Sequence[int]) -> str:
    """A list of cores as people write it.

    >>> describe_cores([0, 1, 2, 5])
    '0-2,5'
    """
    spans: list[list[int]] = []
    for core in cores:
        if spans and core == spans[-1][1] + 1:
            spans[-1][1] = core
        else:
            spans.append([core, core])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)
