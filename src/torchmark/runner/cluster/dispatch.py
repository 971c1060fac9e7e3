"""Sends each batch to nodes until it is answered once, and decides what to blame when one is lost.

Apart from the back end, so that simulations run it with pretended nodes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from torchmark.errors import SetupError
from torchmark.model.outcome import Activity, ActivityKind, Begun
from torchmark.processes import StopRequest
from torchmark.runner.cluster.batches import Batch, BatchQueue, GivenUp, Report, Returned
from torchmark.runner.cluster.nodes import Actor, Deadlines, Member, Nodes, SetAside
from torchmark.runner.cluster.protocol import (
    Built,
    CanaryCounted,
    Fleet,
    Loss,
    Lost,
    MachineKind,
    NodeReply,
    Notice,
    RequestRefused,
    RunSetup,
    share_libraries,
)

# How late a request to stop is noticed where nothing else happens.
NOTICE_S = 0.25
# How long nodes may take to say what they are like, and how long to wait for others when all are gone.
SURVEY_S = 120.0
WITHOUT_NODES_S = 120.0
# How often to look for what is slow, or does not answer at all.
WATCH_S = 1.0


class Dispatcher:
    """Has batches carried out by a fleet."""

    def __init__(self, fleet: Fleet, run_setup: RunSetup, notify: Callable[[str], None] = lambda _: None) -> None:
        """`notify` hears which nodes are not used, and why."""
        self.fleet = fleet
        self._target = run_setup.targets[0]
        self.nodes = Nodes(fleet, run_setup, notify)
        self._batch_queue = BatchQueue(())
        self._stop = StopRequest()
        self._attention: dict[str, None] = {}
        self._deadlines = Deadlines(run_setup.sampling.timeout_s)
        self._watched = fleet.now()
        self._without_nodes_since: float | None = None

    def open(self) -> None:
        """Ask all nodes what they are like. SetupError if there is none that can measure."""
        began = self.fleet.now()
        self.nodes.look()
        while self.nodes.is_being_surveyed and self.fleet.now() - began < SURVEY_S:
            for notice in self.fleet.wait(NOTICE_S):
                list(self._take(notice))
            list(self._look())
        if not self.nodes.usable:
            raise _refuse_all(self.nodes.set_aside, len(self.nodes.members))

    def clear(self) -> None:
        for member in self.nodes.members.values():
            for actor in list(member.actors):
                self.nodes.close(actor)

    def run(self, batch_queue: BatchQueue, stop: StopRequest) -> Iterator[Report]:
        """Until everything is answered; once stopping was requested, until what is under way is."""
        self._batch_queue, self._stop, self._without_nodes_since = batch_queue, stop, None
        self._attend_to_all()
        for member in self.nodes.usable:
            if not member.actors:
                self.nodes.open(member, alone=False)
        try:
            while True:
                yield from self._look()
                yield from self._watch()
                yield from self._assign()
                if (stop.requested or batch_queue.is_empty) and not self._is_under_way:
                    return
                self._check_alive()
                for notice in self.fleet.wait(NOTICE_S):
                    yield from self._take(notice)
        finally:
            # What nobody waits for any more ends: a second one that was slower, what was interrupted.
            for actor in self.nodes.busy:
                if isinstance(actor.doing, Batch):
                    self.nodes.close(actor)
            self._batch_queue = BatchQueue(())

    @property
    def _is_under_way(self) -> bool:
        """Whether any result is. What is built is none."""
        batches = (actor.doing for actor in self.nodes.busy if isinstance(actor.doing, Batch))
        return any(not batch.is_done and not batch.is_build for batch in batches)

    def _attend_to_all(self) -> None:
        self._attention = dict.fromkeys(self.nodes.members)

    # --- nodes come and go ---------------------------------------------------------------------------

    def _look(self) -> Iterator[Report]:
        for member in self.nodes.look():
            self._deadlines.forget(member.listed.id)
            yield from self._drop(member)
        self._attention |= dict.fromkeys(member.listed.id for member in self.nodes.settle())
        yield from self._drop_refused()

    def _drop(self, member: Member) -> Iterator[Report]:
        """It is gone, or not used any more, and with it what was under way there."""
        kind, member.kind = member.kind, None
        for actor in list(member.actors):
            batch = actor.doing
            self.nodes.close(actor)
            if isinstance(batch, Batch):
                if not member.is_refused:
                    batch.losses += ((Loss.NODE, member.name),)
                yield from self._retry(batch, "The node is gone.")
        if kind is not None and all(other.kind != kind for other in self.nodes.members.values()):
            self._batch_queue.release(kind)
            self._attend_to_all()

    def _drop_refused(self) -> Iterator[Report]:
        for member in self.nodes.members.values():
            if member.is_refused and (member.actors or member.kind is not None):
                yield from self._drop(member)

    def _check_alive(self) -> None:
        """With nobody left, others may come; but that is not waited for for ever."""
        if any(not member.is_refused for member in self.nodes.members.values()):
            self._without_nodes_since = None
            return
        now = self.fleet.now()
        self._without_nodes_since = now if self._without_nodes_since is None else self._without_nodes_since
        if now - self._without_nodes_since > WITHOUT_NODES_S:
            raise SetupError(
                "There is no node left that can measure.",
                missing="nodes",
                advice="What was measured is saved. Start nodes, and go on with --resume.",
            )

    def _watch(self) -> Iterator[Report]:
        now = self.fleet.now()
        if now - self._watched < WATCH_S:
            return
        self._watched = now
        self._attend_to_all()
        for actor in self.nodes.busy:
            if actor.doing is not None and self._deadlines.is_overdue(actor.doing, now - actor.since):
                assert actor.request_id is not None
                message = f"There was no answer for {now - actor.since:.0f} seconds."
                yield from self._take(Lost(actor.request_id, Loss.ACTOR, message))

    # --- who does what -------------------------------------------------------------------------------

    def _assign(self) -> Iterator[Report]:
        attention, self._attention = self._attention, {}
        for id_ in attention:
            member = self.nodes.members.get(id_)
            if member is None or member.is_refused or self._stop.requested:
                continue
            self._use_more_slots(member)
            if member.kind is not None:
                yield from self._keep_busy(member, member.kind)

    def _use_more_slots(self, member: Member) -> None:
        """Use more slots of a node, if each of those that are used has more to do than it takes to start another."""
        if member.is_full or any(actor.alone for actor in member.actors):
            return
        while len(member.actors) < member.listed.slots and self._deadlines.is_another_worth_it(
            self._batch_queue.count(alone=False), self.nodes.actor_count
        ):
            self.nodes.open(member, alone=False)

    def _keep_busy(self, member: Member, kind: MachineKind) -> Iterator[Report]:
        """Keep a node busy: what shares it first, then what needs it alone. It changes only if it has to."""
        building = self.nodes.builds(member)
        for alone in (True, False) if any(actor.alone for actor in member.actors) else (False, True):
            if not self._batch_queue.has(kind, alone=alone, building=building) or (
                alone and self._batch_queue.is_building(kind)
            ):
                continue
            if any(isinstance(actor.doing, Batch) and actor.alone != alone for actor in member.actors):
                return
            yield from self._use(member, kind, alone=alone)
            if any(actor.request_id is not None for actor in member.actors):
                return
        self._copy_slow(member)

    def _use(self, member: Member, kind: MachineKind, *, alone: bool) -> Iterator[Report]:
        """Have all free actors of a node do something; one at least is had."""
        self._change(member, alone=alone)
        for actor in member.actors:
            if not actor.is_free or self._stop.requested:
                continue
            batch = self._batch_queue.take(kind, alone=alone, building=self.nodes.builds(member))
            if batch is None:
                continue
            self.nodes.send(actor, batch)
            if not batch.is_reported and not batch.is_build:
                batch.is_reported = True
                yield from (Begun(order, order.target) for order in batch.orders)

    def _change(self, member: Member, *, alone: bool) -> None:
        """Have a node shared, or used by one alone; nothing is done there at the moment."""
        for actor in [actor for actor in member.actors if actor.alone != alone]:
            self.nodes.close(actor)
        if not member.actors:
            self.nodes.open(member, alone=alone)

    def _copy_slow(self, member: Member) -> None:
        """Do what is slow elsewhere a second time; whoever is first counts."""
        now = self.fleet.now()
        for slow in self.nodes.busy:
            batch = slow.doing
            if not isinstance(batch, Batch) or batch.is_done or batch.is_copied or batch.is_build:
                continue
            if slow.node is member or slow.node.kind != member.kind:
                continue
            if not self._deadlines.is_slow(batch, now - slow.since, member.listed.id):
                continue
            free = [actor for actor in member.actors if actor.is_free and actor.alone == slow.alone]
            if free:
                batch.is_copied = True
                self.nodes.send(free[0], batch)
            elif all(actor.request_id is None for actor in member.actors):
                self._change(member, alone=slow.alone)

    # --- what has happened ---------------------------------------------------------------------------

    def _take(self, notice: Notice) -> Iterator[Report]:
        freed = self.nodes.free(notice.request_id)
        if freed is None:
            return
        actor, doing = freed
        self._attention[actor.node.listed.id] = None
        if isinstance(notice, Lost):
            yield from self._lose(actor, doing, notice)
        elif isinstance(doing, Batch):
            yield from self._accept(actor, doing, notice.reply)
        else:
            if isinstance(notice.reply, CanaryCounted):
                yield self._report(ActivityKind.START, self.fleet.now() - actor.opened)
            self.nodes.take_reply(actor, notice.reply)
        yield from self._drop_refused()

    def _accept(self, actor: Actor, batch: Batch, reply: NodeReply) -> Iterator[Report]:
        seconds = self.fleet.now() - actor.since
        if isinstance(reply, RequestRefused):
            # What this node lacks, others may have.
            self.nodes.refuse(actor.node, reply.message)
            batch.losses += ((Loss.REFUSAL, actor.node.name),)
            yield from self._retry(batch, reply.message)
        elif isinstance(reply, Built):
            yield self._report(ActivityKind.COMPILE, seconds, len(batch.kind_group.sources))
            assert batch.kind_group.kind == actor.node.kind
            self._batch_queue.add_libraries(batch.kind_group, share_libraries(self.fleet, reply))
            self._attend_to_all()
        elif not batch.is_done:
            batch.is_done = True
            self._batch_queue.finish(batch)
            self._deadlines.note(actor.node.listed.id, batch.size, seconds)
            yield Returned(batch, reply)

    def _report(self, kind: ActivityKind, seconds: float, size: int = 0) -> Activity:
        """What had to be done besides, in this machine's time."""
        now = time.time()
        return Activity(kind=kind, target=self._target, began=now - seconds, ended=now, size=size)

    def _lose(self, actor: Actor, doing: object, lost: Lost) -> Iterator[Report]:
        member = actor.node
        if lost.loss is not Loss.OBJECT:
            self.nodes.look_again()
        # One that has not said what its node is like is no use, even if it is well.
        if lost.loss is not Loss.OBJECT or not isinstance(doing, Batch):
            self.nodes.close(actor)
        if isinstance(doing, Batch):
            doing.losses += ((lost.loss, member.name),)
            yield from self._retry(doing, lost.message)
        elif lost.loss is not Loss.NODE:
            self.nodes.fail(member, lost.message)

    def _retry(self, batch: Batch, message: str) -> Iterator[Report]:
        """Have somebody else do it, but not for ever; `message` is what was said when it was lost."""
        if batch.is_done:
            return
        if any(actor.doing is batch for actor in self.nodes.busy):
            batch.is_copied = batch.is_hopeless
            return
        batch.is_copied = False
        if not batch.is_hopeless:
            for piece in reversed(batch.split()):
                self._batch_queue.give_back(piece)
            self._attend_to_all()
            return
        message = batch.describe_losses(message)
        for one in self._batch_queue.abandon(batch.kind_group) if batch.is_build else [batch]:
            one.is_done = True
            self._batch_queue.finish(one)
            yield GivenUp(one, message)


def _refuse_all(set_aside: Sequence[SetAside], nodes: int) -> SetupError:
    if set_aside:
        first = set_aside[0]
        others = f" (and {len(set_aside) - 1} more nodes)" if len(set_aside) > 1 else ""
        what = f"No node of the cluster can measure. {first.node}{others}: {first.reason}"
        advice = "Nodes need the same torchmark, the same interpreters and, to count, Valgrind."
    elif nodes:
        what = f"The nodes of the cluster ({nodes}) do not answer."
        advice = "Others may have all of their slots, or processors: see 'ray status'."
    else:
        what = "The cluster has no node to measure on."
        advice = "Start nodes with --resources='{\"torchmark\": N}': as many as there may be counted at once."
    return SetupError(what, missing="nodes", advice=advice)
