"""Which results of a case may be taken together: those from places of one kind. Of several, the largest group speaks.

Counts have no processor in them: Valgrind shows one of its own to the code, which differs by instruction set only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from torchmark.model.caveat import OtherPlaces
from torchmark.model.environment import Environment
from torchmark.model.node import Node, NodeKind
from torchmark.model.outcome import Failure, Outcome
from torchmark.model.plan import Metric
from torchmark.model.run import Host

Kind = tuple[tuple[str, "str | None"], ...]
"""What the results of a place depend on, by the words that caveats tell it with."""

# What the run's own machine is called beside nodes.
OWN_MACHINE = "own machine"
# What torch says of the machine in the text on how it was built. It is part of the kind by itself.
_CAPABILITY_LINE = "CPU capability usage"
# Of an environment, all that matters to either metric, by the words that it is told with.
_FIELDS = {
    "torch": "torch_version",
    "torch_commit": "torch_commit",
    "torch_build": "torch_build",
    "capability": "cpu_capability",
    "valgrind": "valgrind",
    "hash_seed": "hash_seed",
}
_WORDS = {
    Metric.WALL: ("cpu", "torch", "torch_commit", "torch_build", "capability"),
    Metric.COUNT: tuple(_FIELDS),
}
# Another version is another commit, and another commit another build.
_IMPLIED = {"torch_commit": ("torch",), "torch_build": ("torch", "torch_commit")}


@dataclasses.dataclass(frozen=True)
class Chosen:
    """Results that may be taken together, and what was left out for their sake."""

    outcomes: tuple[Outcome, ...]
    """In the order in which they were given; failures are not among them."""
    caveats: tuple[OtherPlaces, ...] = ()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Those that they are of; none where all are of the run's own machine."""
        return tuple(dict.fromkeys(one.node for one in self.outcomes if one.node is not None))


def find_cpu(outcome: Outcome, host: Host | None) -> str | None:
    """The processor that an outcome is of; `host` is the run's own machine."""
    if outcome.node is not None:
        return outcome.node.cpu_model
    return None if host is None else host.cpu_model


def find_kind(outcome: Outcome, host: Host | None) -> Kind:
    """What of its place an outcome depends on. What is not known is a value of its own."""
    kind = {"cpu": find_cpu(outcome, host)} if outcome.order.metric is Metric.WALL else {}
    if outcome.environment is not None:
        kind |= _describe(outcome.environment, outcome.order.metric)
    return tuple((what, kind.get(what)) for what in _WORDS[outcome.order.metric])


def _describe(environment: Environment, metric: Metric) -> dict[str, str | None]:
    known = {what: getattr(environment, field) for what, field in _FIELDS.items() if what in _WORDS[metric]}
    lines = (environment.torch_build or "").splitlines()
    return known | {"torch_build": "\n".join(line for line in lines if _CAPABILITY_LINE not in line) or None}


def choose_rounds(outcomes: Iterable[Outcome], host: Host | None = None) -> Chosen:
    """Of the outcomes of one case in one target: for each metric, the results from places of one kind.

    It is the kind that most of them have; of kinds with as many, the one that was there first.
    """
    results = [(one, find_kind(one, host)) for one in outcomes if not isinstance(one.result, Failure)]
    kept: dict[Metric, Kind] = {}
    caveats = []
    for metric in dict.fromkeys(outcome.order.metric for outcome, _ in results):
        rounds = [(outcome, kind) for outcome, kind in results if outcome.order.metric is metric]
        kept[metric] = _choose_kind(rounds)
        if any(kind != kept[metric] for _, kind in rounds):
            caveats.append(_doubt(metric, rounds, kept[metric]))
    return Chosen(tuple(one for one, kind in results if kind == kept[one.order.metric]), tuple(caveats))


def _choose_kind(rounds: Sequence[tuple[Outcome, Kind]]) -> Kind:
    groups: dict[Kind, list[tuple[float, int]]] = {}
    for outcome, kind in rounds:
        groups.setdefault(kind, []).append((outcome.began, outcome.order.round))
    return min(groups, key=lambda kind: (-len(groups[kind]), min(groups[kind])))


def _doubt(metric: Metric, rounds: Sequence[tuple[Outcome, Kind]], kept: Kind) -> OtherPlaces:
    others = [(outcome, kind) for outcome, kind in rounds if kind != kept]
    nodes = dict.fromkeys(outcome.node.name for outcome, _ in others if outcome.node is not None)
    what = _find_differing([kept, *(kind for _, kind in others)])
    return OtherPlaces(metric.value, len(others), len(rounds), what, tuple(nodes))


def _find_differing(kinds: Sequence[Kind]) -> tuple[str, ...]:
    """What is not the same in all of them, without what follows from the rest."""
    found = [column[0][0] for column in zip(*kinds, strict=True) if len(set(column)) > 1]
    telling = [what for what in found if not set(_IMPLIED.get(what, ())) & set(found)]
    apart = {tuple(dict(kind)[what] for what in telling) for kind in kinds}
    return tuple(telling if len(apart) == len(set(kinds)) else found)


def list_nodes(outcomes: Iterable[Outcome], host: Host | None = None) -> tuple[Node, ...]:
    """All that took part, the run's own machine among them if it did; none if there was no other."""
    found = dict.fromkeys(_find_node(one, host) for one in outcomes if one.node or one.environment)
    nodes = sorted(found, key=lambda node: (node.name, node.cpu_model or ""))
    own = Node(OWN_MACHINE, None if host is None else host.cpu_model)
    return () if nodes == [own] else tuple(nodes)


def _find_node(outcome: Outcome, host: Host | None) -> Node:
    return outcome.node or Node(OWN_MACHINE, None if host is None else host.cpu_model)


def list_kinds(outcomes: Iterable[Outcome], metric: Metric, host: Host | None = None) -> tuple[NodeKind, ...]:
    """The kinds of places that results of a metric come from, in one target; the largest first, none if all are alike.

    Builds of torch, which are long texts, are numbered.
    """
    groups: dict[Kind, dict[Node, None]] = {}
    for outcome in outcomes:
        if outcome.order.metric is metric and not isinstance(outcome.result, Failure):
            groups.setdefault(find_kind(outcome, host), {})[_find_node(outcome, host)] = None
    if len(groups) < 2:
        return ()
    builds = list(dict.fromkeys(dict(kind)["torch_build"] for kind in groups))
    what = _find_differing(list(groups))
    found = []
    for kind, nodes in sorted(groups.items(), key=lambda item: -len(item[1])):
        known = dict(kind) | {"torch_build": str(1 + builds.index(dict(kind)["torch_build"]))}
        ordered = sorted(nodes, key=lambda node: node.name)
        found.append(NodeKind(tuple((one, known[one]) for one in what), tuple(ordered)))
    return tuple(found)
