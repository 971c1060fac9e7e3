"""Of the outcomes that several copies or shards of a run have, those that are kept; and where they come from."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from torchmark.model.costs import Tally
from torchmark.model.node import Node
from torchmark.model.outcome import Failure, Outcome
from torchmark.model.plan import Metric, Order, Target
from torchmark.store.uniting import Copy

Place = tuple[str, str, Target, Metric, int]


def identify(order: Order) -> Place:
    """An order by its names: tags of its case may be others."""
    return order.case.suite, order.case.key, order.target, order.metric, order.round


@dataclasses.dataclass(frozen=True)
class Choice:
    """For each order the outcome that is kept, and the number of the copy that has it."""

    kept: dict[Place, tuple[int, Outcome]]
    repeated: int
    """Orders that were carried out more than once."""
    differing: int
    """Of these, orders whose counts differed."""


def choose(found: Iterable[Sequence[Outcome]]) -> Choice:
    """One outcome an order: a result rather than a failure, and of two alike the one that ended first."""
    kept: dict[Place, tuple[int, Outcome]] = {}
    repeated: set[Place] = set()
    differing: set[Place] = set()
    for number, outcomes in enumerate(found):
        for outcome in outcomes:
            place = identify(outcome.order)
            _, other = kept.setdefault(place, (number, outcome))
            if _is_same(outcome, other):
                continue
            repeated.add(place)
            if _have_other_counts(outcome, other):
                differing.add(place)
            if _rank(outcome) < _rank(other):
                kept[place] = number, outcome
    return Choice(kept, len(repeated), len(differing))


def _is_same(one: Outcome, other: Outcome) -> bool:
    """Whether this is one outcome, in two copies of a run."""
    return (one.began, one.ended, one.result) == (other.began, other.ended, other.result)


def _rank(outcome: Outcome) -> tuple[bool, float]:
    return isinstance(outcome.result, Failure), outcome.ended


def _have_other_counts(one: Outcome, other: Outcome) -> bool:
    counts = [
        (result.number, result.totals, result.allocations, result.tensor_allocations)
        for result in (one.result, other.result)
        if isinstance(result, Tally)
    ]
    return len(counts) == 2 and counts[0] != counts[1]


def name_nodes(copies: Sequence[Copy]) -> list[Node | None]:
    """Where the outcomes of each copy were measured; nothing if that was one machine for all."""
    if len({copy.info.host for copy in copies}) == 1:
        return [None] * len(copies)
    return [_name_node(copy) if copy.parts else None for copy in copies]


def _name_node(copy: Copy) -> Node:
    shards = [str(part.shard) for part in copy.parts]
    return Node(f"{'shards' if len(shards) > 1 else 'shard'} {', '.join(shards)}", copy.info.host.cpu_model)


def locate(outcomes: Sequence[Outcome], node: Node | None) -> list[Outcome]:
    """Outcomes with the node that they come from; those that know theirs keep it."""
    if node is None:
        return list(outcomes)
    return [one if one.node is not None else dataclasses.replace(one, node=node) for one in outcomes]


def find_mixtures(outcomes: Iterable[Outcome]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What differs within one target and metric although it changes numbers: what it is, and its values."""
    found: dict[tuple[str, Target, Metric], set[str]] = {}
    for outcome in outcomes:
        for what, value in _describe_environment(outcome):
            found.setdefault((what, outcome.order.target, outcome.order.metric), set()).add(value)
    return tuple(sorted({(what, tuple(sorted(values))) for (what, _, _), values in found.items() if len(values) > 1}))


def _describe_environment(outcome: Outcome) -> Iterator[tuple[str, str]]:
    environment = outcome.environment
    if environment is not None:
        values = {
            "torch": environment.torch_version,
            "Python": environment.python_version,
            "Valgrind": environment.valgrind,
            "CPU capability": environment.cpu_capability,
        }
        yield from ((what, value) for what, value in values.items() if value is not None)
