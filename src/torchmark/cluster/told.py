"""What a dispatcher tells of parcels and nodes, as it happens."""

from __future__ import annotations

import dataclasses
from typing import TypeAlias

from torchmark.cluster.board import Parcel
from torchmark.cluster.parcels import Reply
from torchmark.model.outcome import ActivityKind


@dataclasses.dataclass(frozen=True)
class Sent:
    """A parcel is under way for the first time."""

    parcel: Parcel


@dataclasses.dataclass(frozen=True)
class Returned:
    """A parcel has been answered."""

    parcel: Parcel
    reply: Reply


@dataclasses.dataclass(frozen=True)
class GivenUp:
    """A parcel has no answer and will have none: whatever it runs on ends."""

    parcel: Parcel
    message: str


@dataclasses.dataclass(frozen=True)
class SetAside:
    """A node is not used."""

    node: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Done:
    """Something that had to be done besides, and for how long."""

    kind: ActivityKind
    seconds: float
    size: int = 0


Told: TypeAlias = Sent | Returned | GivenUp | SetAside | Done
