"""What differs between two stored results that changes numbers by itself, so that comparing them would mislead.

Another torch or another Python is what is compared, and no obstacle.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from torchmark.model.case import Case
from torchmark.model.comparison import Incomparable
from torchmark.model.costs import Tally
from torchmark.model.environment import Environment
from torchmark.model.outcome import Outcome
from torchmark.model.plan import Metric, Target
from torchmark.model.run import Run

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
# Told by itself.
_HASH_SEED = "PYTHONHASHSEED"
# What a worker's environment has besides the processor, by the word that obstacles are told apart by.
_FIELDS = {"capability": "cpu_capability", "hash_seed": "hash_seed", "valgrind": "valgrind"}
# Of a definition, what is measured. How results are checked is not, nor what a person calls the case.
_MEASURED = ("args", "artefact", "parts")


@dataclasses.dataclass(frozen=True)
class Part:
    """One target of a run: what is held against another."""

    run: Run
    target: Target

    @property
    def outcomes(self) -> Iterator[Outcome]:
        """What came of it in this target."""
        return (outcome for outcome in self.run.outcomes if outcome.order.target == self.target)


def find_obstacles(base: Part, head: Part) -> tuple[Incomparable, ...]:
    """All that differs for every case. What one side does not tell is taken to be alike."""
    found = [_compare("cpu", _known(base.run.info.host.cpu_model), _known(head.run.info.host.cpu_model))]
    # What is counted and what is timed run in workers of different kinds, each of which is held to its own.
    both = [(_environments(base, counted=counted), _environments(head, counted=counted)) for counted in (False, True)]
    for what, field in _FIELDS.items():
        found += [_compare(what, *(_known(*(getattr(one, field) for one in side)) for side in pair)) for pair in both]
    found += [_compare_variables(*(dict(one.variables) for one in pair)) for side in both for pair in _pairs(*side)]
    return tuple(dict.fromkeys(obstacle for obstacle in found if obstacle is not None))


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


def _known(*values: str | None) -> tuple[str, ...]:
    return tuple(sorted({value for value in values if value is not None}))


def _compare(what: str, base: tuple[str, ...], head: tuple[str, ...]) -> Incomparable | None:
    """A run that was gone on with elsewhere has several values: all of them have to be those of the other."""
    if not base or not head or base == head:
        return None
    return Incomparable(what, " and ".join(base), " and ".join(head))


def _environments(part: Part, *, counted: bool) -> tuple[Environment, ...]:
    metric = Metric.COUNT if counted else Metric.WALL
    found = (outcome.environment for outcome in part.outcomes if outcome.order.metric is metric)
    return tuple(dict.fromkeys(one for one in found if one is not None))


def _pairs(base: Iterable[Environment], head: Iterable[Environment]) -> Iterator[tuple[Environment, Environment]]:
    heads = tuple(head)
    return ((one, other) for one in base for other in heads)


def _compare_variables(base: Mapping[str, str], head: Mapping[str, str]) -> Incomparable | None:
    names = sorted({*base, *head} - PLACES - {_HASH_SEED})
    names = [name for name in names if base.get(name) != head.get(name)]
    if not names:
        return None
    return Incomparable("variables", *(", ".join(_spell(side, name) for name in names) for side in (base, head)))


def _spell(variables: Mapping[str, str], name: str) -> str:
    return f"{name}={variables[name]}" if name in variables else f"no {name}"


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
