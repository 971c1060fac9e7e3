"""Sends each parcel to nodes until it is answered once, and decides what to blame when one is lost."""

from __future__ import annotations

from collections.abc import Iterator

from torchmark.errors import SetupError
from torchmark.model.outcome import ActivityKind
from torchmark.runner.backend import StopRequest
from torchmark.runner.cluster.board import Board, Done, GivenUp, Parcel, Returned, Sent, SetAside, Told
from torchmark.runner.cluster.protocol import (
    Built,
    Fleet,
    Heard,
    LibrarySet,
    Loss,
    Lost,
    MachineKind,
    Notice,
    Reply,
    RequestRefused,
    RunSetup,
)
from torchmark.runner.cluster.roster import Deadlines, Member, Post, Roster

# What ends its post so often is to blame for it. Nodes die of other things, and answers are lost by themselves: more of
# these are needed to be sure.
MOST_POSTS = 3
MOST_NODES = 5
MOST_ANSWERS = 5
# What so many nodes cannot do, others cannot do either.
MOST_REFUSALS = 3


def note_loss(parcel: Parcel, loss: Loss, node: str) -> None:
    """It was lost together with this, on that node."""
    if loss is Loss.POST:
        parcel.lost_posts += 1
    elif loss is Loss.NODE:
        parcel.lost_nodes += (node,)
    else:
        parcel.lost_answers += 1


def note_refusal(parcel: Parcel, node: str) -> None:
    """That node said that it cannot do it."""
    parcel.refusals += (node,)


def is_hopeless(parcel: Parcel) -> bool:
    """Whether it would only be lost again."""
    return (
        parcel.lost_posts >= MOST_POSTS
        or len(parcel.lost_nodes) >= MOST_NODES
        or parcel.lost_answers >= MOST_ANSWERS
        or len(parcel.refusals) >= MOST_REFUSALS
    )


def word_losses(parcel: Parcel, last: str) -> str:
    """Why it was given up; `last` is what was said the last time."""
    parts = []
    if parcel.lost_posts:
        parts.append(f"the process that ran it ended {_times(parcel.lost_posts)}")
    if parcel.lost_nodes:
        parts.append(f"nodes were lost while it ran there: {', '.join(parcel.lost_nodes)}")
    if parcel.lost_answers:
        parts.append(f"its answer was lost {_times(parcel.lost_answers)}")
    if parcel.refusals:
        parts.append(f"nodes cannot do it: {', '.join(parcel.refusals)}")
    return f"It was given up: {'; '.join(parts)}. The last time: {last}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


# How late a request to stop is noticed where nothing else happens.
NOTICE_S = 0.25
# How long nodes may take to say what they are like, and how long to wait for others when all are gone.
SURVEY_S = 120.0
WITHOUT_NODES_S = 120.0
# How often to look for what is slow, or does not answer at all.
WATCH_S = 1.0


class Dispatcher:
    """Has parcels carried out by a fleet."""

    def __init__(self, fleet: Fleet, outset: RunSetup) -> None:
        self._fleet = fleet
        self._roster = Roster(fleet, outset)
        self._board = Board(())
        self._stop = StopRequest()
        self._attention: dict[str, None] = {}
        """Nodes for which something may have to be decided."""
        self._pace = Deadlines(outset.sampling.timeout_s)
        self._watched = fleet.now()
        self._deserted: float | None = None

    @property
    def usable(self) -> list[Member]:
        """Nodes that can measure, as far as is known."""
        return self._roster.usable

    def open(self) -> list[SetAside]:
        """Ask all nodes what they are like. SetupError if there is none that can measure."""
        told: list[SetAside] = []
        began = self._fleet.now()
        self._roster.look()
        while self._roster.is_being_met and self._fleet.now() - began < SURVEY_S:
            for notice in self._fleet.wait(NOTICE_S):
                told += [one for one in self._take(notice) if isinstance(one, SetAside)]
            told += [one for one in self._look() if isinstance(one, SetAside)]
        if not self._roster.usable:
            raise _refuse_all(told, len(self._roster.members))
        return told

    def clear(self) -> None:
        """End all posts. The nodes stay known."""
        for member in self._roster.members.values():
            for post in list(member.posts):
                self._roster.close(post)

    def run(self, board: Board, stop: StopRequest) -> Iterator[Told]:
        """Until everything is answered; once stopping was requested, until what is under way is."""
        self._board, self._stop, self._deserted = board, stop, None
        self._attend_to_all()
        for member in self._roster.usable:
            if not member.posts:
                self._roster.open(member, alone=False)
        try:
            while True:
                yield from self._look()
                yield from self._watch()
                yield from self._assign()
                if (stop.requested or board.is_empty) and not self._is_under_way:
                    return
                self._check_alive()
                for notice in self._fleet.wait(NOTICE_S):
                    yield from self._take(notice)
        finally:
            self._leave()

    @property
    def _is_under_way(self) -> bool:
        """Whether any result is. What is built is none."""
        parcels = (post.doing for post in self._roster.busy if isinstance(post.doing, Parcel))
        return any(not parcel.is_done and not parcel.is_build for parcel in parcels)

    def _leave(self) -> None:
        """End whatever nobody waits for any more: a second one that was slower, what was interrupted."""
        for post in [post for post in self._roster.busy if isinstance(post.doing, Parcel)]:
            self._roster.close(post)
        self._board = Board(())

    def _attend_to_all(self) -> None:
        self._attention = dict.fromkeys(self._roster.members)

    # --- nodes come and go ---------------------------------------------------------------------------

    def _look(self) -> Iterator[Told]:
        for member in self._roster.look():
            self._pace.forget(member.listed.id)
            yield from self._drop(member)
        fit, odd = self._roster.settle()
        self._attention |= dict.fromkeys(member.listed.id for member in fit)
        for aside in odd:
            yield aside
            yield from self._drop_refused()

    def _drop(self, member: Member) -> Iterator[Told]:
        """It is gone, or not used any more, and with it what was under way there."""
        kind, member.kind = member.kind, None
        for post in list(member.posts):
            parcel = post.doing
            self._roster.close(post)
            if isinstance(parcel, Parcel):
                if not member.is_refused:
                    note_loss(parcel, Loss.NODE, member.name)
                yield from self._retry(parcel, "The node is gone.")
        if kind is not None and all(other.kind != kind for other in self._roster.members.values()):
            self._board.release(kind)
            self._attend_to_all()

    def _drop_refused(self) -> Iterator[Told]:
        for member in self._roster.members.values():
            if member.is_refused and (member.posts or member.kind is not None):
                yield from self._drop(member)

    def _check_alive(self) -> None:
        """With nobody left, others may come; but that is not waited for for ever."""
        if any(not member.is_refused for member in self._roster.members.values()):
            self._deserted = None
            return
        now = self._fleet.now()
        self._deserted = now if self._deserted is None else self._deserted
        if now - self._deserted > WITHOUT_NODES_S:
            raise SetupError(
                "There is no node left that can measure.",
                missing="nodes",
                advice="What was measured is saved. Start nodes, and go on with --resume.",
            )

    def _watch(self) -> Iterator[Told]:
        """Now and then, see who takes too long."""
        now = self._fleet.now()
        if now - self._watched < WATCH_S:
            return
        self._watched = now
        self._attend_to_all()
        for post in list(self._roster.busy):
            if post.doing is not None and self._pace.is_overdue(post.doing, now - post.since):
                assert post.ticket is not None
                message = f"There was no answer for {now - post.since:.0f} seconds."
                yield from self._take(Lost(post.ticket, Loss.POST, message))

    # --- who does what -------------------------------------------------------------------------------

    def _assign(self) -> Iterator[Told]:
        attention, self._attention = self._attention, {}
        for id_ in attention:
            member = self._roster.members.get(id_)
            if member is None or member.is_refused or self._stop.requested:
                continue
            self._staff(member)
            if member.kind is not None:
                yield from self._serve(member, member.kind)

    def _staff(self, member: Member) -> None:
        """Use more slots of a node, if each of those that are used has more to do than it takes to start another."""
        if member.is_full or any(post.alone for post in member.posts):
            return
        left = self._board.count(alone=False)
        while len(member.posts) < member.listed.slots and self._pace.is_another_worth_it(left, self._roster.posts):
            self._roster.open(member, alone=False)

    def _serve(self, member: Member, kind: MachineKind) -> Iterator[Told]:
        """Keep a node busy: what shares it first, then what needs it alone. It changes only if it has to."""
        building = self._roster.builds(member)
        for alone in (True, False) if any(post.alone for post in member.posts) else (False, True):
            if not self._board.has(kind, alone=alone, building=building) or (alone and self._board.is_building(kind)):
                continue
            if any(isinstance(post.doing, Parcel) and post.alone != alone for post in member.posts):
                return
            yield from self._use(member, kind, alone=alone)
            if any(post.ticket is not None for post in member.posts):
                return
        self._help_out(member)

    def _use(self, member: Member, kind: MachineKind, *, alone: bool) -> Iterator[Told]:
        """Have all free posts of a node do something; one at least is had."""
        self._change(member, alone=alone)
        for post in member.posts:
            if post.is_free and not self._stop.requested:
                building = self._roster.builds(member)
                yield from self._hand(post, self._board.take(kind, alone=alone, building=building))

    def _change(self, member: Member, *, alone: bool) -> None:
        """Have a node shared, or used by one alone; nothing is done there at the moment."""
        for post in [post for post in member.posts if post.alone != alone]:
            self._roster.close(post)
        if not member.posts:
            self._roster.open(member, alone=alone)

    def _hand(self, post: Post, parcel: Parcel | None) -> Iterator[Told]:
        if parcel is None:
            return
        self._roster.send(post, parcel)
        if not parcel.is_told and not parcel.is_build:
            parcel.is_told = True
            yield Sent(parcel)

    def _help_out(self, member: Member) -> None:
        """Do what is slow elsewhere a second time; whoever is first counts."""
        for slow, parcel in self._list_slow(member):
            free = [post for post in member.posts if post.is_free and post.alone == slow.alone]
            if free:
                parcel.is_copied = True
                self._roster.send(free[0], parcel)
            elif all(post.ticket is None for post in member.posts):
                self._change(member, alone=slow.alone)

    def _list_slow(self, helper: Member) -> list[tuple[Post, Parcel]]:
        now = self._fleet.now()
        return [
            (post, parcel)
            for post in self._roster.busy
            if isinstance(parcel := post.doing, Parcel)
            and not (parcel.is_done or parcel.is_copied or parcel.is_build)
            and post.node is not helper
            and post.node.kind == helper.kind
            and self._pace.is_slow(parcel, now - post.since, helper.listed.id)
        ]

    # --- what has happened ---------------------------------------------------------------------------

    def _take(self, notice: Notice) -> Iterator[Told]:
        freed = self._roster.free(notice.ticket)
        if freed is None:
            return
        post, doing = freed
        self._attention[post.node.listed.id] = None
        if isinstance(notice, Lost):
            yield from self._lose(post, doing, notice)
        elif isinstance(doing, Parcel):
            yield from self._accept(post, doing, notice.reply)
        else:
            if isinstance(notice.reply, Heard):
                yield Done(ActivityKind.START, self._fleet.now() - post.opened)
            aside = self._roster.meet(post, notice.reply)
            if aside is not None:
                yield aside
                yield from self._drop_refused()

    def _accept(self, post: Post, parcel: Parcel, reply: Reply) -> Iterator[Told]:
        seconds = self._fleet.now() - post.since
        if isinstance(reply, RequestRefused):
            # What this node lacks, others may have.
            yield self._roster.refuse(post.node, reply.message)
            note_refusal(parcel, post.node.name)
            yield from self._retry(parcel, reply.message)
            yield from self._drop_refused()
        elif isinstance(reply, Built):
            yield Done(ActivityKind.COMPILE, seconds, len(parcel.lot.sources))
            assert parcel.lot.kind == post.node.kind
            self._board.equip(parcel.lot, self._share(reply))
            self._attend_to_all()
        elif not parcel.is_done:
            parcel.is_done = True
            self._board.finish(parcel)
            self._pace.note(post.node.listed.id, parcel.size, seconds)
            yield Returned(parcel, reply)

    def _share(self, built: Built) -> object:
        contents = {name: self._fleet.share(content) for name, content in built.contents.items()}
        return self._fleet.share(LibrarySet(built.wares, contents))

    def _lose(self, post: Post, doing: object, lost: Lost) -> Iterator[Told]:
        member = post.node
        if lost.loss is not Loss.OBJECT:
            self._roster.look_again()
        if isinstance(doing, Parcel):
            if lost.loss is not Loss.OBJECT:
                self._roster.close(post)
            note_loss(doing, lost.loss, member.name)
            yield from self._retry(doing, lost.message)
            return
        # One that was never met is no use, even if it is well.
        self._roster.close(post)
        aside = None if lost.loss is Loss.NODE else self._roster.fail(member, lost.message)
        if aside is not None:
            yield aside
            yield from self._drop_refused()

    def _retry(self, parcel: Parcel, message: str) -> Iterator[Told]:
        """Have somebody else do it, but not for ever; `message` is what was said when it was lost."""
        if parcel.is_done:
            return
        if any(post.doing is parcel for post in self._roster.busy):
            parcel.is_copied = is_hopeless(parcel)
            return
        parcel.is_copied = False
        if not is_hopeless(parcel):
            for piece in reversed(parcel.split()):
                self._board.give_back(piece)
            self._attend_to_all()
            return
        message = word_losses(parcel, message)
        for one in self._board.abandon(parcel.lot) if parcel.is_build else [parcel]:
            one.is_done = True
            self._board.finish(one)
            yield GivenUp(one, message)


def _refuse_all(told: list[SetAside], nodes: int) -> SetupError:
    if not told and nodes:
        return SetupError(
            f"The nodes of the cluster ({nodes}) do not answer.",
            missing="nodes",
            advice="Others may have all of their slots, or processors: see 'ray status'.",
        )
    if not told:
        return SetupError(
            "The cluster has no node to measure on.",
            missing="nodes",
            advice="Start nodes with --resources='{\"torchmark\": N}': as many as there may be counted at once.",
        )
    first = told[0]
    others = f" (and {len(told) - 1} more nodes)" if len(told) > 1 else ""
    return SetupError(
        f"No node of the cluster can measure. {first.node}{others}: {first.reason}",
        missing="nodes",
        advice="Nodes need the same torchmark, the same interpreters and, to count, Valgrind.",
    )
