"""What differs between two stored results that changes numbers by itself, so that comparing them would mislead.

Another torch or another Python is what is compared, and no obstacle. Where a run has results of several machines, a
case is held to those that its own results are of.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from torchmark.analysis.results import find_cpu
from torchmark.model.caveats import Incomparable
from torchmark.model.costs import Tally
from torchmark.model.outcome import Outcome
from torchmark.model.plan import Case, Metric, Target
from torchmark.model.run import Host, Run

# Where things are kept or found. Two interpreters have their own, and none of them changes what torch computes.
PLACES = frozenset(
    {
        "CUDA_HOME",
        "CUDA_PATH",
        "HOME",
        "LD_LIBRARY_PATH",
        "PATH",
        "PYTORCH_KERNEL_CACHE_PATH",
        "TEMP",
        "TMP",
        "TMPDIR",
        "TORCH_EXTENSIONS_DIR",
        "TORCH_HOME",
        "TORCHINDUCTOR_CACHE_DIR",
    }
)
# The seed is told by itself.
_NO_MATTER = {*PLACES, "PYTHONHASHSEED"}
# What a worker's environment has besides the processor, by the word that obstacles are told apart by.
_FIELDS = {"capability": "cpu_capability", "hash_seed": "hash_seed", "valgrind": "valgrind"}
# Of a definition, what is measured. How results are checked is not, nor what a person calls the case.
_MEASURED = ("args", "artefact", "parts")

_VARIABLES = "variables"
_Variables = tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class RunTarget:
    """One target of a run: what is held against another."""

    run: Run
    target: Target

    @property
    def outcomes(self) -> list[Outcome]:
        return [outcome for outcome in self.run.outcomes if outcome.order.target == self.target]


_Traits = Mapping[tuple[str, Metric], frozenset[Any]]
"""What is known of all places that some results come from, by the word that obstacles are told apart by.

What is counted and what is timed run in workers of different kinds, each of which is held to its own.
"""


def find_obstacles(base: RunTarget, head: RunTarget) -> tuple[Incomparable, ...]:
    """All that differs for every case, because no value of one side is one of the other's.

    What one side does not tell is taken to be alike.
    """
    ours, theirs = (_describe(part.outcomes, part.run.info.host) for part in (base, head))
    return tuple(dict.fromkeys(_contrast(ours, theirs, wholly=True)))


def find_place_obstacles(
    base: Sequence[Outcome], base_host: Host, head: Sequence[Outcome], head_host: Host
) -> tuple[Incomparable, ...]:
    """All that differs between the places where both sides of one case were measured.

    They are those that speak for it, as `choose_rounds` has them. Where they have several values, all of them have to
    be those of the other side.
    """
    return tuple(dict.fromkeys(_contrast(_describe(base, base_host), _describe(head, head_host), wholly=False)))


def find_case_obstacles(
    base: Case, head: Case, base_tally: Tally | None = None, head_tally: Tally | None = None
) -> tuple[Incomparable, ...]:
    """All that differs for one case: what is measured, and how it was counted."""
    found = [
        Incomparable("definition", *texts)
        for field in _MEASURED
        if (texts := _contrast_fields(getattr(base, field), getattr(head, field), field)) is not None
    ]
    if base_tally is not None and head_tally is not None:
        ways = [f"{one.number} runs in layouts {', '.join(map(str, one.seeds))}" for one in (base_tally, head_tally)]
        found += [Incomparable("layouts", *ways)] if ways[0] != ways[1] else []
    return tuple(found)


def _describe(outcomes: Sequence[Outcome], host: Host) -> _Traits:
    traits: dict[tuple[str, Metric], frozenset[Any]] = {}
    for metric in Metric:
        measured = [outcome for outcome in outcomes if outcome.order.metric is metric]
        environments = dict.fromkeys(one.environment for one in measured if one.environment is not None)
        # A case is counted on whichever node is free. Counts depend on its instruction set, and not on its processor.
        placed = [one for one in measured if one.node is None or metric is not Metric.COUNT]
        traits["cpu", metric] = frozenset(find_cpu(one, host) for one in placed) - {None}
        for what, name in _FIELDS.items():
            traits[what, metric] = frozenset(getattr(one, name) for one in environments) - {None}
        traits[_VARIABLES, metric] = frozenset(
            tuple(sorted(one for one in where.variables if one[0] not in _NO_MATTER)) for where in environments
        )
    return traits


def _contrast(base: _Traits, head: _Traits, *, wholly: bool) -> Iterator[Incomparable]:
    """What both tell and is not the same; `wholly` is whether they must have nothing in common."""
    for what, metric in itertools.product(("cpu", *_FIELDS, _VARIABLES), Metric):
        ours, theirs = base[what, metric], head[what, metric]
        if not (ours and theirs and (ours.isdisjoint(theirs) if wholly else ours != theirs)):
            continue
        if what == _VARIABLES:
            yield from _contrast_variables(ours, theirs)
        else:
            yield Incomparable(what, " and ".join(sorted(ours)), " and ".join(sorted(theirs)))


def _contrast_variables(base: Iterable[_Variables], head: Iterable[_Variables]) -> Iterator[Incomparable]:
    for pair in itertools.product(sorted(base), sorted(head)):
        sides = [dict(one) for one in pair]
        names = [name for name in sorted({*sides[0], *sides[1]}) if sides[0].get(name) != sides[1].get(name)]
        if names:
            values = ([f"{one}={side[one]}" if one in side else f"no {one}" for one in names] for side in sides)
            yield Incomparable(_VARIABLES, *map(", ".join, values))


def _contrast_fields(base: object, head: object, name: str) -> tuple[str, str] | None:
    """The first field in which two values differ, on both sides; None where they do not."""
    if base == head:
        return None
    if type(base) is type(head) and dataclasses.is_dataclass(base):
        found = (
            _contrast_fields(getattr(base, field.name), getattr(head, field.name), field.name)
            for field in dataclasses.fields(base)
        )
        return next(filter(None, found))
    return f"{name}: {base}", f"{name}: {head}"
