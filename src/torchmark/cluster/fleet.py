"""The seam to whatever has the machines: nodes with slots, posts that measure on them, and what happens to both."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from torchmark.cluster.parcels import Body, Reply


@dataclasses.dataclass(frozen=True)
class Listed:
    """A node that is there."""

    id: str
    name: str
    slots: int
    """How many posts may share it."""


class Loss(enum.Enum):
    """What is gone."""

    POST = "post"
    """The process that measured, as far as can be told."""
    NODE = "node"
    OBJECT = "object"
    """Something that was sent or shared; whoever should have had it is well."""


@dataclasses.dataclass(frozen=True)
class Replied:
    """The answer to what was sent with this ticket."""

    ticket: int
    reply: Reply


@dataclasses.dataclass(frozen=True)
class Lost:
    """There will be no answer to that ticket."""

    ticket: int
    loss: Loss
    message: str


Notice: TypeAlias = Replied | Lost


class Fleet(Protocol):
    """Machines that come and go. Nothing here waits but `wait`."""

    def now(self) -> float:
        """Seconds by its clock."""

    def list_nodes(self) -> Sequence[Listed]:
        """Those that are there."""

    def open_post(self, node: str, *, alone: bool) -> int:
        """Begin to have a process that measures on a node: in one of its slots, or with the node for itself."""

    def close_post(self, post: int) -> None:
        """End it at once. What it was sent has no answer then, and no notice either."""

    def send(self, post: int, body: Body) -> int:
        """Ask a post for something; the ticket that its answer will have. A post does one thing after the other."""

    def ask(self, post: int, body: Body, timeout_s: float) -> Reply | Lost:
        """Ask a post for something, and wait for the answer, but no longer than that. For any thread."""

    def share(self, value: object) -> object:
        """Make something large available to all posts; what stands for it in what is sent."""

    def wait(self, timeout_s: float) -> Sequence[Notice]:
        """What has happened, as soon as anything has, or nothing after so long."""

    def close(self) -> None:
        """End everything, at once."""
