"""The two stored results that a comparison names: runs, or environments of runs."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator, Sequence

from torchmark.analysis.verdict.stored import CaseId
from torchmark.define.selection import nearest
from torchmark.errors import UsageError
from torchmark.model.plan import Target
from torchmark.model.run import RunInfo
from torchmark.report.text.names import name_target
from torchmark.report.text.run_summary import SHORT_ID
from torchmark.report.text.terminal import count, printable
from torchmark.store.runs import Store

SEPARATOR = ":"


@dataclasses.dataclass(frozen=True)
class StoredSide:
    """One environment of a run."""

    info: RunInfo
    target: Target
    alone: bool
    """Whether the run has no other."""
    is_file: bool = False
    """Whether it was read from a file of results, whose name the run has."""

    @property
    def name(self) -> str:
        """What it is called on the command line, as far as people read it."""
        run = self.info.name or self.info.id[:SHORT_ID]
        return run if self.alone else f"{run}{SEPARATOR}{self.target.name}"

    @property
    def title(self) -> str:
        """With what tells it from others of its name."""
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.info.created))
        where = "" if self.alone else f", {name_target(self.target)}"
        if self.is_file:
            return printable(f"{self.info.name}, {when}")
        return printable(f"{self.info.name or 'run'} ({self.info.id[:SHORT_ID]}), {when}{where}")


def name_sides(base: StoredSide, head: StoredSide) -> tuple[str, str]:
    """What both are called where they stand side by side; those of one name, by the beginnings of their ids."""
    if base.name != head.name:
        return base.name, head.name
    return base.info.id[:SHORT_ID], head.info.id[:SHORT_ID]


def find_sides(store: Store, base: str, head: str | None) -> tuple[StoredSide, StoredSide]:
    """Base and head. Without a head, base is a run with two environments, the first of which is base."""
    if head is not None:
        sides = find_side(store, base), find_side(store, head)
        if sides[0] == sides[1]:
            raise UsageError(f"{base} and {head} are the same: there is nothing to compare.")
        return sides
    info = store.find(base)
    targets = _read_targets(store, info)
    if len(targets) != 2:
        raise UsageError(
            f"The run {base} has {count(len(targets), 'environment')}; two would be compared with each other. "
            f"Name another run to compare it with, as in torchmark compare {base} @."
        )
    first, second = (StoredSide(info, target, alone=False) for target in targets)
    return first, second


def has_two_targets(store: Store, reference: str) -> bool:
    """Whether this means a whole run with two environments, which can be held against each other."""
    try:
        info = store.find(reference)
    except UsageError:
        return False
    return len(_read_targets(store, info)) == 2


def find_side(store: Store, reference: str) -> StoredSide:
    """`RUN`, or `RUN:ENV`. A run's name may have a colon in it."""
    env = None
    try:
        info = store.find(reference)
    except UsageError:
        run, separator, env = reference.rpartition(SEPARATOR)
        if not separator:
            raise
        info = store.find(run)
    targets = _read_targets(store, info)
    return StoredSide(info, choose_target(targets, env, info.name), alone=len(targets) == 1)


def _read_targets(store: Store, info: RunInfo) -> tuple[Target, ...]:
    return store.load(info.id, select=lambda case: False).plan.targets


def choose_target(targets: Sequence[Target], env: str | None, run: str, how: str = "{run}:{env}") -> Target:
    """The environment of that name, or the only one there is; `how` is how to name one on the command line."""
    names = [target.name for target in targets]
    if env is not None:
        if env not in names:
            known = nearest(env, names) or names
            raise UsageError(f"The run {run!r} has no environment {env!r}. There is {', '.join(map(repr, known))}.")
        return targets[names.index(env)]
    if len(targets) != 1:
        raise UsageError(
            f"The run {run!r} has {len(targets)} environments: {', '.join(map(repr, names))}. "
            f"Say which one is meant, as in {how.format(run=run, env=names[0])}."
        )
    return targets[0]


# How many cases are loaded at a time: each has thousands of functions, on both sides.
BATCH = 20


def split(keys: Iterable[CaseId]) -> Iterator[frozenset[CaseId]]:
    """Cases, as many at a time as are loaded together."""
    ordered = list(keys)
    for start in range(0, len(ordered), BATCH):
        yield frozenset(ordered[start : start + BATCH])
