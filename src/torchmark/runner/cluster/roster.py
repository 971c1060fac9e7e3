"""The nodes of a fleet and the processes on them, and the deadlines by which each has to answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from torchmark.model.plan import Metric
from torchmark.runner.cluster.board import Parcel, SetAside
from torchmark.runner.cluster.protocol import (
    Admission,
    Canary,
    Fleet,
    Heard,
    Listed,
    MachineKind,
    OddNode,
    Reply,
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


@dataclasses.dataclass
class _Seen:
    results: int = 0
    seconds: float = 0.0

    @property
    def mean_s(self) -> float:
        return self.seconds / self.results


class Deadlines:
    """What has been seen of it. `timeout_s` is what the run allows a process."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._all = _Seen()
        self._nodes: dict[str, _Seen] = {}

    def note(self, node: str, results: int, seconds: float) -> None:
        """So many results took that long there."""
        for seen in (self._all, self._nodes.setdefault(node, _Seen())):
            seen.results += results
            seen.seconds += seconds

    def forget(self, node: str) -> None:
        """It is gone."""
        self._nodes.pop(node, None)

    @property
    def usual_s(self) -> float:
        """What a result takes."""
        return self._all.mean_s if self._all.results else EXPECTED_S

    def is_another_worth_it(self, results: int, posts: int) -> bool:
        """Whether to start one more post, where so many share what is left."""
        return results * self.usual_s > START_S * posts

    def is_slow(self, parcel: Parcel, seconds: float, helper: str) -> bool:
        """Whether this node would be done sooner, though it starts only now; one that is slow itself is in no hurry."""
        own = self._nodes.get(helper)
        expected_s = max(self.usual_s, own.mean_s if own is not None else 0.0)
        return seconds > max(SLOW_LEAST_S, SLOW_FACTOR * expected_s * parcel.size)

    def is_overdue(self, doing: Parcel | Survey | Canary, seconds: float) -> bool:
        """Whether there will be no answer."""
        results = doing.size if isinstance(doing, Parcel) else 1
        return seconds > max(SILENCE_S, self._timeout_s * (results + MORE_PROCESSES))


# How often to look which nodes there are.
LOOK_S = 2.0
# A node whose posts do not even begin is left alone.
MOST_FAILURES = 3


@dataclasses.dataclass(eq=False)
class Post:
    """A process that measures, and what it is doing."""

    id: int
    node: Member
    alone: bool
    opened: float
    is_ready: bool = False
    """Whether it has been met, and has counted the canary where anything is counted."""
    doing: Parcel | Survey | Canary | None = None
    ticket: int | None = None
    since: float = 0.0

    @property
    def is_free(self) -> bool:
        """Whether it can do something."""
        return self.is_ready and self.ticket is None


@dataclasses.dataclass(eq=False)
class Member:
    """A node, and what is known of it."""

    listed: Listed
    posts: list[Post] = dataclasses.field(default_factory=list)
    surveyed: Surveyed | None = None
    heard: Heard | None = None
    kind: MachineKind | None = None
    """Once it may measure."""
    is_refused: bool = False
    is_full: bool = False
    """Whether another process could not be started beside those that were there."""
    failures: int = 0

    @property
    def name(self) -> str:
        """What people call it."""
        return self.listed.name


class Roster:
    """All nodes of a fleet."""

    def __init__(self, fleet: Fleet, outset: RunSetup) -> None:
        self._fleet = fleet
        self._version = outset.torchmark
        self._counting = Metric.COUNT in outset.sampling.metrics
        self._timing = Metric.WALL in outset.sampling.metrics
        self._census = Admission()
        self._posts: dict[int, Post] = {}
        self._looked: float | None = None
        self.members: dict[str, Member] = {}
        self.posts = 0
        """How many there are."""

    @property
    def is_being_met(self) -> bool:
        """Whether some have not said yet what they are like."""
        return any(one.surveyed is None and not one.is_refused for one in self.members.values())

    @property
    def usable(self) -> list[Member]:
        """Those that can measure, as far as is known."""
        return [one for one in self.members.values() if one.surveyed is not None and not one.is_refused]

    @property
    def busy(self) -> Iterator[Post]:
        """Posts that have been asked for something."""
        return iter(self._posts.values())

    def builds(self, member: Member) -> bool:
        """Whether it is one to compile: it can, or nobody can, and then whoever measures will say so."""
        return _compiles(member) or not any(map(_compiles, self.usable))

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
            self._census.drop(member.listed.id)
        for id_, listed in there.items():
            member = self.members.setdefault(id_, Member(listed))
            if member.kind is None and not member.posts and not member.is_refused:
                self.open(member, alone=False)
        return gone

    def look_again(self) -> None:
        """Something was lost: perhaps a node."""
        self._looked = None

    def refuse(self, member: Member, reason: str) -> SetAside:
        """Use it no more."""
        member.is_refused = True
        self._census.drop(member.listed.id)
        return SetAside(member.name, reason)

    def settle(self) -> tuple[list[Member], list[SetAside]]:
        """Those that may measure from now on, and those that are set aside because they count otherwise."""
        if not self._census.is_waiting:
            return [], []
        unheard = (one.heard is None and one.kind is None and not one.is_refused for one in self.members.values())
        fit, odd = self._census.settle(sum(unheard) if self._counting else 0, self._fleet.now())
        for id_, kind in fit.items():
            self.members[id_].kind = kind
        return [self.members[id_] for id_ in fit], [self.refuse(self.members[one.node], _word(one)) for one in odd]

    # --- posts ---------------------------------------------------------------------------------------

    def open(self, member: Member, *, alone: bool) -> None:
        """Have another process on a node; it is asked what the node is like."""
        post = Post(self._fleet.open_post(member.listed.id, alone=alone), member, alone, self._fleet.now())
        member.posts.append(post)
        self.posts += 1
        self.send(post, Survey())

    def send(self, post: Post, doing: Parcel | Survey | Canary) -> None:
        """Have it do something."""
        post.doing, post.since = doing, self._fleet.now()
        post.ticket = self._fleet.send(post.id, doing.write() if isinstance(doing, Parcel) else doing)
        self._posts[post.ticket] = post

    def close(self, post: Post) -> None:
        """End it."""
        post.node.posts.remove(post)
        self.posts -= 1
        if post.ticket is not None:
            self._posts.pop(post.ticket, None)
        self._fleet.close_post(post.id)

    def free(self, ticket: int) -> tuple[Post, Parcel | Survey | Canary] | None:
        """Whose ticket that is, and what for; None for a post that was given up. It can do something else now."""
        post = self._posts.pop(ticket, None)
        if post is None:
            return None
        doing, post.doing, post.ticket = post.doing, None, None
        assert doing is not None
        return post, doing

    def meet(self, post: Post, reply: Reply) -> SetAside | None:
        """A post says what its node is like, or what the canary takes there."""
        member = post.node
        if isinstance(reply, RequestRefused):
            return self._give_up(member, post, reply.message)
        if isinstance(reply, Surveyed):
            if reply.torchmark != self._version:
                return self.refuse(member, f"It has torchmark {reply.torchmark}, and this is {self._version}.")
            member.surveyed = reply
            if self._counting and not post.alone:
                self.send(post, Canary())
                return None
        elif isinstance(reply, Heard):
            if member.heard is not None and member.heard.counts != reply.counts:
                return self.refuse(member, _word_unsteady(member.heard.counts, reply.counts))
            member.heard = reply
        post.is_ready = True
        member.failures = 0
        if member.kind is None:
            assert member.surveyed is not None
            kind = classify(member.surveyed, member.heard, timing=self._timing)
            counts = member.heard.counts if member.heard is not None else ()
            self._census.add(member.listed.id, kind, counts, self._fleet.now())
        return None

    def fail(self, member: Member, message: str) -> SetAside | None:
        """A post did not come to be. Once is bad luck."""
        member.failures += 1
        if member.failures >= MOST_FAILURES:
            return self._give_up(member, None, f"Processes do not stay up there: {message}")
        if not member.posts:
            self.open(member, alone=False)
        return None

    def _give_up(self, member: Member, post: Post | None, reason: str) -> SetAside | None:
        """Do without one more post where there are others: memory may not do for it. Else without the node."""
        if all(other is post for other in member.posts):
            return self.refuse(member, reason)
        member.is_full = True
        if post is not None:
            self.close(post)
        return None


def _compiles(member: Member) -> bool:
    return member.surveyed is not None and member.surveyed.compiles


def _word(odd: OddNode) -> str:
    return (
        f"Its canary takes {_list(odd.counts)} instructions, where it takes {_list(odd.expected)} on the other nodes "
        "of its kind: what is counted there cannot be compared."
    )


def _word_unsteady(before: tuple[int, ...], now: tuple[int, ...]) -> str:
    return (
        f"Its canary takes {_list(before)} instructions in one process and {_list(now)} in another: "
        "what is counted there cannot be compared."
    )


def _list(counts: tuple[int, ...]) -> str:
    return " and ".join(map(str, counts))
