"""Machines that took part in a run, where several did: nodes of a cluster, shards of a matrix."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Node:
    """One machine by the name that its cluster has for it, and what its times depend on."""

    name: str
    cpu_model: str | None = None
    """None where the machine does not tell."""


@dataclasses.dataclass(frozen=True)
class NodeKind:
    """Nodes whose results may be taken together, and what tells them from the others of a run."""

    traits: tuple[tuple[str, str | None], ...]
    """Such as `("capability", "AVX2")`; the words are those of `OtherPlaces`."""
    nodes: tuple[Node, ...]
