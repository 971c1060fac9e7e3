"""The nodes of a fleet and the processes on them, and the deadlines by which each has to answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

from torchmark.model.plan import Metric
from torchmark.runner.cluster.batches import Batch
from torchmark.runner.cluster.protocol import (
    Admission,
    Canary,
    CanaryCounted,
    Fleet,
    Listed,
    MachineKind,
    NodeReply,
    RequestRefused,
    RunSetup,
    Survey,
    Surveyed,
    classify,
)

# What starting another one that counts takes: it is worth that where each of those that are there has more to do.
START_S = 20.0
# What a result takes until some are there.
EXPECTED_S = 1.0
# What takes so many times as long as usual is given to a second node, where that has nothing else to do.
SLOW_FACTOR = 3.0
SLOW_LEAST_S = 2.0
# Starting workers and compiling take minutes at the most, however little time the run allows a case.
SILENCE_S = 1800.0
# A node ends by itself each process that takes longer than the run allows. A result takes one that measures; starting,
# preparing and checking may take so many more. Who has not answered by then does not know of time any more.
MORE_PROCESSES = 3


class Deadlines:
    """What results have taken so far, and what follows. `timeout_s` is what the run allows a process."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._seen: dict[str | None, tuple[int, float]] = {}
        """By node, and for None of all: how many results, and seconds of all of them together."""

    def note(self, node: str, results: int, seconds: float) -> None:
        for key in (None, node):
            known, known_s = self._seen.get(key, (0, 0.0))
            self._seen[key] = known + results, known_s + seconds

    def forget(self, node: str) -> None:
        self._seen.pop(node, None)

    def _find_mean_s(self, node: str | None, unknown_s: float) -> float:
        results, seconds = self._seen.get(node, (0, 0.0))
        return seconds / results if results else unknown_s

    def is_another_worth_it(self, results: int, actors: int) -> bool:
        """Whether to start one more actor, where so many share what is left."""
        return results * self._find_mean_s(None, EXPECTED_S) > START_S * actors

    def is_slow(self, batch: Batch, seconds: float, helper: str) -> bool:
        """Whether this node would be done sooner, though it starts only now; one that is slow itself is in no hurry."""
        expected_s = max(self._find_mean_s(None, EXPECTED_S), self._find_mean_s(helper, 0.0))
        return seconds > max(SLOW_LEAST_S, SLOW_FACTOR * expected_s * batch.size)

    def is_overdue(self, doing: Batch | Survey | Canary, seconds: float) -> bool:
        results = doing.size if isinstance(doing, Batch) else 1
        return seconds > max(SILENCE_S, self._timeout_s * (results + MORE_PROCESSES))


# How often to look which nodes there are.
LOOK_S = 2.0
# A node whose actors do not even begin is left alone.
MOST_FAILURES = 3


@dataclasses.dataclass(eq=False)
class Actor:
    """A process that measures, and what it is doing."""

    id: int
    node: Member
    alone: bool
    opened: float
    is_ready: bool = False
    """Whether it has said what its node is like, and has counted the canary where anything is counted."""
    doing: Batch | Survey | Canary | None = None
    request_id: int | None = None
    since: float = 0.0

    @property
    def is_free(self) -> bool:
        return self.is_ready and self.request_id is None


@dataclasses.dataclass(eq=False)
class Member:
    """A node, and what is known of it."""

    listed: Listed
    actors: list[Actor] = dataclasses.field(default_factory=list)
    surveyed: Surveyed | None = None
    canary: CanaryCounted | None = None
    kind: MachineKind | None = None
    is_refused: bool = False
    is_full: bool = False
    """Whether another process could not be started beside those that were there."""
    failures: int = 0

    @property
    def name(self) -> str:
        return self.listed.name


class SetAside(NamedTuple):
    """A node is not used."""

    node: str
    reason: str


class Nodes:
    """All nodes of a fleet."""

    def __init__(self, fleet: Fleet, run_setup: RunSetup, notify: Callable[[str], None]) -> None:
        """`notify` hears which nodes are not used, and why."""
        self._fleet = fleet
        self._notify = notify
        self._version = run_setup.torchmark
        self._counting = Metric.COUNT in run_setup.sampling.metrics
        self._timing = Metric.WALL in run_setup.sampling.metrics
        self._admission = Admission()
        self._by_request: dict[int, Actor] = {}
        self._looked: float | None = None
        self.members: dict[str, Member] = {}
        self.set_aside: list[SetAside] = []
        self.actor_count = 0

    @property
    def is_being_surveyed(self) -> bool:
        return any(one.surveyed is None and not one.is_refused for one in self.members.values())

    @property
    def usable(self) -> list[Member]:
        return [one for one in self.members.values() if one.surveyed is not None and not one.is_refused]

    @property
    def busy(self) -> list[Actor]:
        return list(self._by_request.values())

    def builds(self, member: Member) -> bool:
        """Whether it is one to compile: it can, or nobody can, and then whoever measures will say so."""
        compiling = [one for one in self.usable if one.surveyed is not None and one.surveyed.compiles]
        return member in compiling or not compiling

    # --- nodes ---------------------------------------------------------------------------------------

    def look(self) -> list[Member]:
        """See which nodes there are, now and then; gives those that are gone.

        New ones are asked what they are like, and so are those that could not say.
        """
        now = self._fleet.now()
        if self._looked is not None and now - self._looked < LOOK_S:
            return []
        self._looked = now
        there = {listed.id: listed for listed in self._fleet.list_nodes()}
        gone = [self.members.pop(id_) for id_ in list(self.members) if id_ not in there]
        for member in gone:
            self._admission.drop(member.listed.id)
        for id_, listed in there.items():
            member = self.members.setdefault(id_, Member(listed))
            if member.kind is None and not member.actors and not member.is_refused:
                self.open(member, alone=False)
        return gone

    def look_again(self) -> None:
        """Something was lost: perhaps a node."""
        self._looked = None

    def refuse(self, member: Member, reason: str) -> None:
        member.is_refused = True
        self._admission.drop(member.listed.id)
        self.set_aside.append(SetAside(member.name, reason))
        self._notify(f"The node {member.name} is not used. {reason}")

    def settle(self) -> list[Member]:
        """Those that may measure from now on; those that count otherwise are set aside."""
        if not self._admission.is_waiting:
            return []
        uncounted = (one.canary is None and one.kind is None and not one.is_refused for one in self.members.values())
        fit, odd = self._admission.settle(sum(uncounted) if self._counting else 0, self._fleet.now())
        for id_, kind in fit.items():
            self.members[id_].kind = kind
        for id_, expected in odd.items():
            canary = self.members[id_].canary
            assert canary is not None
            self.refuse(
                self.members[id_],
                f"Its canary takes {_list(canary.counts)} instructions, where it takes {_list(expected)} on the other "
                "nodes of its kind: what is counted there cannot be compared.",
            )
        return [self.members[id_] for id_ in fit]

    # --- actors --------------------------------------------------------------------------------------

    def open(self, member: Member, *, alone: bool) -> None:
        """Have another process on a node; it is asked what the node is like."""
        actor = Actor(self._fleet.open_actor(member.listed.id, alone=alone), member, alone, self._fleet.now())
        member.actors.append(actor)
        self.actor_count += 1
        self.send(actor, Survey())

    def send(self, actor: Actor, doing: Batch | Survey | Canary) -> None:
        actor.doing, actor.since = doing, self._fleet.now()
        actor.request_id = self._fleet.send(actor.id, doing.write() if isinstance(doing, Batch) else doing)
        self._by_request[actor.request_id] = actor

    def close(self, actor: Actor) -> None:
        actor.node.actors.remove(actor)
        self.actor_count -= 1
        if actor.request_id is not None:
            self._by_request.pop(actor.request_id, None)
        self._fleet.close_actor(actor.id)

    def free(self, request_id: int) -> tuple[Actor, Batch | Survey | Canary] | None:
        """Which actor was asked this, and for what; None for one that was ended. It can do something else now."""
        actor = self._by_request.pop(request_id, None)
        if actor is None:
            return None
        doing, actor.doing, actor.request_id = actor.doing, None, None
        assert doing is not None
        return actor, doing

    def take_reply(self, actor: Actor, reply: NodeReply) -> None:
        """An actor says what its node is like, or what the canary takes there."""
        member = actor.node
        if isinstance(reply, RequestRefused):
            self._give_up(member, actor, reply.message)
            return
        if isinstance(reply, Surveyed):
            if reply.torchmark != self._version:
                self.refuse(member, f"It has torchmark {reply.torchmark}, and this is {self._version}.")
                return
            member.surveyed = reply
            if self._counting and not actor.alone:
                self.send(actor, Canary())
                return
        elif isinstance(reply, CanaryCounted):
            if member.canary is not None and member.canary.counts != reply.counts:
                self.refuse(
                    member,
                    f"Its canary takes {_list(member.canary.counts)} instructions in one process and "
                    f"{_list(reply.counts)} in another: what is counted there cannot be compared.",
                )
                return
            member.canary = reply
        self._make_ready(actor)

    def _make_ready(self, actor: Actor) -> None:
        member = actor.node
        actor.is_ready = True
        member.failures = 0
        if member.kind is None:
            assert member.surveyed is not None
            kind = classify(member.surveyed, member.canary, timing=self._timing)
            counts = member.canary.counts if member.canary is not None else ()
            self._admission.add(member.listed.id, kind, counts, self._fleet.now())

    def fail(self, member: Member, message: str) -> None:
        """An actor did not come to be. Once is bad luck."""
        member.failures += 1
        if member.failures >= MOST_FAILURES:
            self._give_up(member, None, f"Processes do not stay up there: {message}")
        elif not member.actors:
            self.open(member, alone=False)

    def _give_up(self, member: Member, actor: Actor | None, reason: str) -> None:
        """Do without one more actor where there are others: memory may not do for it. Else without the node."""
        if all(other is actor for other in member.actors):
            self.refuse(member, reason)
            return
        member.is_full = True
        if actor is not None:
            self.close(actor)


def _list(counts: tuple[int, ...]) -> str:
    return " and ".join(map(str, counts))
