"""Fleets that do as a test says: what each node answers, when, and when it is gone. And one that keeps an eye on it."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.simulated_fleet import SimulatedFleet
from torchmark.model.environment import Environment
from torchmark.model.outcome import Outcome
from torchmark.model.plan import (
    AutogradMode,
    AutoLabels,
    Case,
    Check,
    Metric,
    Node,
    Order,
    Plan,
    RuntimeMode,
    Sampling,
    Target,
    TimerArgs,
)
from torchmark.model.task import Language, Times
from torchmark.processes import StopRequest
from torchmark.runner.cluster.backend import ClusterBackend
from torchmark.runner.cluster.batches import Batch, BatchQueue, GivenUp, KindGroup, Report, Returned
from torchmark.runner.cluster.dispatch import Dispatcher
from torchmark.runner.cluster.nodes import SetAside
from torchmark.runner.cluster.protocol import (
    Build,
    Built,
    Canary,
    CanaryCounted,
    Fleet,
    Listed,
    Loss,
    Lost,
    Measure,
    Measured,
    NodeReply,
    Notice,
    Replied,
    Request,
    RunSetup,
    Survey,
    Surveyed,
)

HERE = Environment("python", "3", "2", valgrind="1")
COUNTING = Sampling((Metric.COUNT,))
VERSION = "simulated"
# Of the fleets' clock. Nothing that tests ask for takes so long.
LONGEST_S = 20_000.0


def make_case(
    name: str, language: Language = Language.PYTHON, group: str | None = None, *, check: bool = False
) -> Case:
    """A case of its own group, or of a named one."""
    labels = AutoLabels(RuntimeMode.EAGER, AutogradMode.FORWARD, language)
    return Case((group or name,), labels, TimerArgs(name, language=language), check=Check("", "") if check else None)


def make_plan(names: Iterable[str], sampling: Sampling = COUNTING, *, group: str | None = None) -> Plan:
    return Plan(tuple(make_case(name, group=group) for name in names), sampling=sampling)


def make_run_setup(plan: Plan) -> RunSetup:
    return RunSetup(torchmark=VERSION, targets=plan.targets, sampling=plan.sampling, folder="/", path=())


def make_result(order: Order) -> Times:
    """What comes of an order, whoever carries it out."""
    text = f"{order.case.args.stmt} {order.target.name} {order.metric.value} {order.round}"
    return Times(1, (float(sum(map(ord, text))),))


def open_backend(fleet: Fleet, plan: Plan, reports: list[str] | None = None) -> ClusterBackend:
    backend = ClusterBackend(
        lambda plan: (fleet, make_run_setup(plan)), (reports if reports is not None else []).append
    )
    backend.open(plan)
    return backend


def open_dispatcher(fleet: Fleet, plan: Plan) -> Dispatcher:
    dispatcher = Dispatcher(fleet, make_run_setup(plan))
    dispatcher.open()
    return dispatcher


def outcomes(events: Iterable[object]) -> list[Outcome]:
    return [event for event in events if isinstance(event, Outcome)]


def list_names(reports: Iterable[object], kind: type[Returned] | type[GivenUp] = Returned) -> list[str]:
    """The statements of what was answered, or given up, in that order."""
    batches = [one.batch for one in reports if isinstance(one, kind)]
    return [order.case.args.stmt for batch in batches for order in batch.orders]


# --- a fleet with a script ---------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Asked:
    """Something that was sent to a node."""

    moment: float
    node: str
    actor: int
    alone: bool
    request: Request

    @property
    def names(self) -> list[str]:
        """The statements that are to be measured."""
        return [order.case.args.stmt for order in self.request.orders] if isinstance(self.request, Measure) else []


Answer = tuple[float, NodeReply | Loss] | None
"""After how many seconds, and what; None is never."""
Script = Callable[[Asked], Answer]


def answer(
    asked: Asked, *, count: int = 1000, kind: str = "libc", version: str = VERSION, compiles: bool = True
) -> tuple[float, NodeReply]:
    """What a node says with which all is well. Everything takes a second."""
    if isinstance(asked.request, Survey):
        return 1.0, Surveyed(Node(asked.node, "cpu"), version, kind, (HERE,), compiles=compiles)
    if isinstance(asked.request, Canary):
        return 1.0, CanaryCounted((count,), (HERE,))
    if isinstance(asked.request, Build):
        return 1.0, Built((), {})
    assert isinstance(asked.request, Measure)
    node = Node(asked.node)
    return 1.0, Measured(
        tuple(
            Outcome(order=order, result=make_result(order), began=0.0, ended=1.0, environment=HERE, node=node)
            for order in asked.request.orders
        )
    )


class ScriptedFleet:
    """Nodes of so many slots that answer by a script; time passes while something is waited for."""

    def __init__(self, nodes: Iterable[str], script: Script = answer, slots: int = 1) -> None:
        self.nodes = dict.fromkeys(nodes, slots)
        self.script = script
        self.log: list[Asked] = []
        self.actors: dict[int, tuple[str, bool]] = {}
        self.shared: list[object] = []
        self._now = 0.0
        self._numbers = itertools.count(1)
        self._due: list[tuple[float, int, Callable[[], Notice | None]]] = []

    def at(self, moment: float, action: Callable[[], object]) -> None:
        """Have something happen at a moment."""

        def happen() -> None:
            action()

        heapq.heappush(self._due, (moment, next(self._numbers), happen))

    def die(self, node: str) -> None:
        """A node is gone, and whoever is on it."""
        del self.nodes[node]

    def list_sent(self, kind: type[Request]) -> list[Asked]:
        return [asked for asked in self.log if isinstance(asked.request, kind)]

    def now(self) -> float:
        return self._now

    def list_nodes(self) -> Sequence[Listed]:
        return [Listed(name, name, slots) for name, slots in self.nodes.items()]

    def open_actor(self, node: str, *, alone: bool) -> int:
        assert node in self.nodes
        actor = next(self._numbers)
        self.actors[actor] = node, alone
        return actor

    def close_actor(self, actor: int) -> None:
        del self.actors[actor]

    def send(self, actor: int, request: Request) -> int:
        request_id = next(self._numbers)
        node, alone = self.actors[actor]
        asked = Asked(self._now, node, actor, alone, request)
        self.log.append(asked)
        said = self.script(asked)
        if said is not None:
            seconds, what = said
            heapq.heappush(self._due, (self._now + seconds, request_id, lambda: self._notify(request_id, actor, what)))
        return request_id

    def ask(self, actor: int, request: Request, timeout_s: float) -> NodeReply | Lost:
        raise NotImplementedError

    def share(self, value: object) -> object:
        self.shared.append(value)
        return value

    def wait(self, timeout_s: float) -> Sequence[Notice]:
        assert self._now < LONGEST_S, "it never ends"
        if not self._due or self._due[0][0] > self._now + timeout_s:
            self._now += timeout_s
            return []
        self._now, _, happen = heapq.heappop(self._due)
        notice = happen()
        return [] if notice is None else [notice]

    def close(self) -> None:
        self.actors.clear()

    def _notify(self, request_id: int, actor: int, what: NodeReply | Loss) -> Notice | None:
        if actor not in self.actors or (self.actors[actor][0] not in self.nodes and what is not Loss.NODE):
            return None
        return Lost(request_id, what, "in its own words") if isinstance(what, Loss) else Replied(request_id, what)


# --- a fleet that watches ----------------------------------------------------------------------------


class WatchingFleet(SimulatedFleet):
    """Holds whoever uses it to the rules: slots are not exceeded, and what is timed has its node for itself."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.log: list[Asked] = []
        self.losses: dict[object, list[Loss]] = {}
        """What was lost, by orders and by what was to be compiled."""
        self.built: list[Build] = []
        self._homes: dict[int, tuple[str, bool]] = {}
        self._under_way: dict[int, Asked] = {}

    def open_actor(self, node: str, *, alone: bool) -> int:
        others = [other for home, other in self._homes.values() if home == node]
        assert not (alone and others), "it would not be alone"
        assert True not in others, "another one is alone there"
        assert len(others) < self._slots, "there are no more slots"
        actor = super().open_actor(node, alone=alone)
        self._homes[actor] = node, alone
        return actor

    def close_actor(self, actor: int) -> None:
        super().close_actor(actor)
        del self._homes[actor]
        for request_id in [request_id for request_id, one in self._under_way.items() if one.actor == actor]:
            asked = self._under_way.pop(request_id)
            if self._machines[asked.node].is_known_dead:
                self._note(asked.request, Loss.NODE)

    def send(self, actor: int, request: Request) -> int:
        node, alone = self._homes[actor]
        asked = Asked(self.now(), node, actor, alone, request)
        beside = [one for one in self._under_way.values() if one.node == node]
        assert all(one.actor != actor for one in beside), "an actor does one thing after the other"
        assert not any(map(_is_timed, beside)), "something else is timed there"
        assert not (_is_timed(asked) and (beside or not alone)), "it would not be timed alone"
        request_id = super().send(actor, request)
        self._under_way[request_id] = asked
        self.log.append(asked)
        return request_id

    def wait(self, timeout_s: float) -> Sequence[Notice]:
        assert self.now() < LONGEST_S, "it never ends"
        found = super().wait(timeout_s)
        for notice in found:
            request = self._under_way.pop(notice.request_id).request
            if isinstance(notice, Lost):
                self._note(request, notice.loss)
            elif isinstance(request, Build):
                self.built.append(request)
        return found

    def _note(self, request: Request, loss: Loss) -> None:
        for what in request.orders if isinstance(request, Measure) else [request]:
            self.losses.setdefault(what, []).append(loss)


def _is_timed(asked: Asked) -> bool:
    return isinstance(asked.request, Measure) and any(order.metric is Metric.WALL for order in asked.request.orders)


def run_batches(
    batches: Iterable[Batch], dispatcher: Dispatcher, stop: StopRequest | None = None
) -> list[Report | SetAside]:
    """What was reported, and then which nodes are not used."""
    return [*dispatcher.run(BatchQueue(batches), stop or StopRequest()), *dispatcher.nodes.set_aside]


def make_batch(names: Sequence[str], kind_group: KindGroup | None = None, *, metric: Metric = Metric.COUNT) -> Batch:
    """A batch with a case for each name."""
    cases = tuple(map(make_case, names))
    orders = tuple(Order(case, Target(), metric) for case in cases)
    return Batch(kind_group or KindGroup(), alone=metric is Metric.WALL, orders=orders, cases=cases)
