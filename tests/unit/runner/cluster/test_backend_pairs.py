"""Pairs that are timed on a node: what the driver asks, what the node does, and losing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fleets import COUNTING, make_case
from tests.places import FakePlace, noise, paired_case
from tests.simulated_fleet import SimulatedFleet
from torchmark import __version__
from torchmark.errors import PlaceLost
from torchmark.model.job import BlockPlan, RunTime, Visit
from torchmark.model.plan import Target
from torchmark.model.task import Language, Times
from torchmark.runner.cluster import node_server
from torchmark.runner.cluster.backend import LibraryStore, RemotePairs
from torchmark.runner.cluster.node_server import NodeServer
from torchmark.runner.cluster.nodes import Member
from torchmark.runner.cluster.protocol import (
    Build,
    Built,
    Loss,
    Lost,
    NodeReply,
    PairsTimed,
    PreparePairs,
    Request,
    RequestRefused,
    RunSetup,
)
from torchmark.runner.spec import Match

BASE, HEAD = Target("base", "/a"), Target("head", "/b")
ASKED = PreparePairs(pairs=(), base=BASE, head=HEAD, together=False, timeout_s=5.0)
PACE = BlockPlan(number=5, warm=2, pairs=6)
CASE, NATIVE = make_case("calm"), make_case("native", Language.CPP)


class AnsweringFleet(SimulatedFleet):
    """A fleet that answers at once what it is asked."""

    def __init__(self, answer: Callable[[Request], NodeReply | Lost]) -> None:
        super().__init__(1, 1, lambda order: 1.0, lambda order: Times(1, (1.0,)))
        self.answer = answer
        self.asked: list[Request] = []

    def ask(self, actor: int, request: Request, timeout_s: float) -> NodeReply | Lost:
        self.asked.append(request)
        return self.answer(request)


def open_pairs(fleet: AnsweringFleet, store: LibraryStore | None = None) -> RemotePairs:
    (listed,) = fleet.list_nodes()
    return RemotePairs(fleet, Member(listed), store or LibraryStore(fleet), ASKED)


@pytest.fixture
def place() -> FakePlace:
    return FakePlace({"calm": noise(0)}, Match(alike=False))


@pytest.fixture
def pairs(place: FakePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemotePairs]:
    """Pairs on a node whose workers are pretended."""
    monkeypatch.setattr(node_server, "PairedWorkers", lambda *_, **__: place)
    monkeypatch.setattr(place, "prepare", lambda pairs, builds: tuple(FakePlace.prepare(place, pairs)))
    monkeypatch.chdir(tmp_path)
    run_setup = RunSetup(torchmark=__version__, targets=(BASE, HEAD), sampling=COUNTING, folder="/", path=())
    environ = {"PATH": "/bin", "TORCHMARK_CACHE": str(tmp_path / "c")}
    server = NodeServer(run_setup, lambda handle: handle, environ, "n1", lambda *_: place)  # type: ignore[arg-type]
    monkeypatch.setattr(place, "abandon", place.close, raising=False)
    yield open_pairs(AnsweringFleet(server.answer))
    server.close()
    assert place.is_closed


def test_what_is_asked_of_a_node_is_what_its_workers_say(pairs: RemotePairs, place: FakePlace) -> None:
    assert pairs.layouts == ()
    assert pairs.prepare([(CASE, CASE)]) == (paired_case("calm"),)
    heard: list[int] = []
    pairs.start([0, 1, 2], heard.append)
    assert heard == [2, 4, 6]
    assert pairs.layouts == place.layouts == (0, 1, 2)
    assert not pairs.match.alike
    assert isinstance(pairs.gauge(paired_case("calm")), RunTime)
    assert isinstance(pairs.visit(2, paired_case("calm"), PACE), Visit)
    assert place.visits["calm", 2] == 1


@pytest.mark.parametrize(
    "reply",
    [
        Lost(0, Loss.NODE, "The node is gone."),
        RequestRefused("No space left on device"),
        Built((), {}),
        PairsTimed("no visit", (), Match(alike=True)),
    ],
)
def test_a_node_that_answers_nothing_of_use_is_lost(reply: NodeReply | Lost) -> None:
    pairs = open_pairs(AnsweringFleet(lambda request: reply))
    with pytest.raises(PlaceLost, match=r"^node-\d+: "):
        pairs.visit(0, paired_case("calm"), PACE)


def test_a_node_that_was_let_go_of_is_lost() -> None:
    fleet = AnsweringFleet(lambda request: PairsTimed(None, (0,), Match(alike=True)))
    pairs = open_pairs(fleet)
    pairs.start([0])
    pairs.close()
    pairs.close()
    with pytest.raises(PlaceLost, match="was let go of"):
        pairs.start([1])
    assert len(fleet.asked) == 1


def test_libraries_are_compiled_by_the_first_node_of_a_kind_that_needs_them() -> None:
    def reply(request: Request) -> NodeReply:
        return Built((), {}) if isinstance(request, Build) else PairsTimed((), (), Match(alike=True))

    fleet = AnsweringFleet(reply)
    store = LibraryStore(fleet)
    for cases in ([CASE], [NATIVE], [NATIVE, CASE]):
        open_pairs(fleet, store).prepare([(case, case) for case in cases])
    assert [one.cases for one in fleet.asked if isinstance(one, Build)] == [(NATIVE,)]
    prepared = [one for one in fleet.asked if isinstance(one, PreparePairs)]
    assert [len(one.library_sets) for one in prepared] == [0, 1, 1]
    assert [one.pairs for one in prepared] == [((CASE, CASE),), ((NATIVE, NATIVE),), ((NATIVE, NATIVE), (CASE, CASE))]
