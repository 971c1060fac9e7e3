"""A fleet that is not there: nodes, failures and time are drawn from a seed. For tests, and for sizing clusters."""

from __future__ import annotations

import dataclasses
import functools
import heapq
import random
from collections.abc import Callable, Sequence

from torchmark.model.environment import Environment
from torchmark.model.outcome import Outcome, Result
from torchmark.model.plan import Node, Order
from torchmark.runner.cluster.protocol import (
    Build,
    Built,
    Canary,
    CanaryCounted,
    Listed,
    Loss,
    Lost,
    Measure,
    Measured,
    NodeReply,
    Notice,
    Replied,
    Request,
    Survey,
    Surveyed,
)

VERSION = "simulated"


@dataclasses.dataclass(frozen=True)
class SimulatedFaults:
    """What goes wrong, and how long things take besides measuring. Durations are seconds."""

    node_lifetime_s: float | None = None
    """In the mean; None for nodes that stay."""
    repair_s: float = 120.0
    """Until another one takes the place of a node that died."""
    notice_s: float = 5.0
    """How long it takes at the most until that is known."""
    crash: float = 0.0
    """The share of batches that end their actor."""
    lost: float = 0.0
    """The share of answers that are lost on their way."""
    slow: float = 0.0
    """The share of nodes that take ten times as long."""
    odd: float = 0.0
    """The share of nodes that count otherwise."""
    kinds: int = 1
    """How many kinds of nodes there are."""
    start_s: float = 20.0
    """To start one that counts."""
    send_s: float = 0.001


SLOWNESS = 10.0
NO_FAULTS = SimulatedFaults()


@dataclasses.dataclass
class _Machine:
    listed: Listed
    kind: int
    factor: float
    count: int
    born: float
    is_dead: bool = False
    is_known_dead: bool = False


@dataclasses.dataclass
class _Process:
    machine: _Machine
    free: float
    """When it has done all that it was asked for."""
    alone: bool


class SimulatedFleet:
    """So many nodes. `take_s` says how long a case takes, `measure` what comes of it, whoever does it and when."""

    def __init__(
        self,
        nodes: int,
        slots: int,
        take_s: Callable[[Order], float],
        measure: Callable[[Order], Result],
        faults: SimulatedFaults = NO_FAULTS,
        seed: int = 0,
    ) -> None:
        self._slots = slots
        self._take_s = take_s
        self._measure = measure
        self._faults = faults
        self._chance = random.Random(seed)
        self._now = 0.0
        self._machines: dict[str, _Machine] = {}
        self._processes: dict[int, _Process] = {}
        self._requests: dict[int, tuple[int, Request]] = {}
        self._events: list[tuple[float, int, Callable[[], Notice | None]]] = []
        self._numbers = 0
        self.useful_s = 0.0
        """Spent on what was answered."""
        self.there_s = 0.0
        """That slots of nodes which are gone have been there."""
        self.answered_at = 0.0
        self.died = 0
        for _ in range(nodes):
            self._add_machine()

    @property
    def utilisation(self) -> float:
        """The share of time that slots were busy with what was answered, until the last answer."""
        there = self.there_s + sum(
            one.listed.slots * (self.answered_at - one.born) for one in self._machines.values() if not one.is_dead
        )
        return self.useful_s / there if there else 0.0

    def now(self) -> float:
        """Seconds since the beginning."""
        return self._now

    def list_nodes(self) -> Sequence[Listed]:
        """Those that live, as far as is known."""
        return [one.listed for one in self._machines.values() if not one.is_known_dead]

    def open_actor(self, node: str, *, alone: bool) -> int:
        """It is there at once; what takes time is to start what measures."""
        actor = self._number()
        self._processes[actor] = _Process(self._machines[node], self._now, alone)
        return actor

    def close_actor(self, actor: int) -> None:
        """Whatever it was doing has no answer."""
        self._processes.pop(actor, None)

    def send(self, actor: int, request: Request) -> int:
        """The answer comes when it has been worked on, or never."""
        request_id = self._number()
        self._requests[request_id] = actor, request
        process = self._processes[actor]
        if process.machine.is_known_dead:
            self._at(self._now, lambda: self._lose(request_id))
        if process.machine.is_dead:
            return request_id
        seconds = self._faults.send_s + self._find_seconds(process, request)
        process.free = max(process.free, self._now) + seconds
        is_batch = isinstance(request, (Measure, Build))
        if is_batch and self._chance.random() < self._faults.crash:
            process.free = max(self._now, process.free - seconds * self._chance.random())
            self._at(process.free, lambda: self._crash(request_id))
        else:
            self._at(process.free, lambda: self._answer(request_id, seconds if is_batch else 0.0))
        return request_id

    def ask(self, actor: int, request: Request, timeout_s: float) -> NodeReply | Lost:
        """At once."""
        return self._reply(self._processes[actor], request)

    def share(self, value: object) -> object:
        """Nothing is sent anywhere."""
        return value

    def wait(self, timeout_s: float) -> Sequence[Notice]:
        """The next thing that happens, with all that happens at the same time."""
        end = self._now + timeout_s
        found: list[Notice] = []
        while self._events and self._events[0][0] <= end:
            moment, _, happen = heapq.heappop(self._events)
            self._now = end = moment
            notice = happen()
            if notice is not None:
                found.append(notice)
        self._now = end
        return found

    def close(self) -> None:
        """Nothing was started."""

    # --- what happens --------------------------------------------------------------------------------

    def _answer(self, request_id: int, seconds: float) -> Notice | None:
        process = self._find_process(request_id)
        if process is None:
            return None
        _, request = self._requests.pop(request_id)
        if isinstance(request, Measure) and self._chance.random() < self._faults.lost:
            return Lost(request_id, Loss.OBJECT, "The answer was lost.")
        self.useful_s += seconds * (process.machine.listed.slots if process.alone else 1)
        self.answered_at = self._now
        return Replied(request_id, self._reply(process, request))

    def _reply(self, process: _Process, request: Request) -> NodeReply:
        machine = process.machine
        node = Node(machine.listed.name, f"processor {machine.kind}")
        environment = Environment("python", "3", "2", valgrind="1")
        if isinstance(request, Survey):
            return Surveyed(node, VERSION, f"libc {machine.kind}", (environment,))
        if isinstance(request, Canary):
            return CanaryCounted((machine.count,), (environment,))
        if isinstance(request, Build):
            return Built((), {})
        assert isinstance(request, Measure)
        moments = self._now, self._now
        return Measured(
            tuple(Outcome(order, self._measure(order), *moments, environment, node=node) for order in request.orders)
        )

    def _crash(self, request_id: int) -> Notice | None:
        if self._find_process(request_id) is None:
            return None
        actor, _ = self._requests.pop(request_id)
        del self._processes[actor]
        return Lost(request_id, Loss.ACTOR, "The process was killed.")

    def _find_process(self, request_id: int) -> _Process | None:
        """Who works on it, if anybody does."""
        actor, _ = self._requests.get(request_id, (None, None))
        process = self._processes.get(actor) if actor is not None else None
        if process is None:
            self._requests.pop(request_id, None)
        return None if process is None or process.machine.is_dead else process

    def _die(self, machine: _Machine) -> Notice | None:
        machine.is_dead = True
        self.died += 1
        self.there_s += machine.listed.slots * (self._now - machine.born)
        self._at(self._now + self._chance.random() * self._faults.notice_s, lambda: self._find_dead(machine))
        self._at(self._now + self._faults.repair_s, self._add_machine)
        return None

    def _find_dead(self, machine: _Machine) -> Notice | None:
        machine.is_known_dead = True
        for request_id, (actor, _) in self._requests.items():
            process = self._processes.get(actor)
            if process is not None and process.machine is machine:
                self._at(self._now, functools.partial(self._lose, request_id))
        return None

    def _lose(self, request_id: int) -> Notice | None:
        actor, _ = self._requests.pop(request_id, (None, None))
        return Lost(request_id, Loss.NODE, "The node is gone.") if actor in self._processes else None

    def _add_machine(self) -> None:
        faults, number = self._faults, self._number()
        factor = SLOWNESS if self._chance.random() < faults.slow else 1.0
        count = 1001 if self._chance.random() < faults.odd else 1000
        kind = self._chance.randrange(faults.kinds)
        machine = _Machine(
            listed=Listed(f"id-{number}", f"node-{number}", self._slots),
            kind=kind,
            factor=factor,
            count=count,
            born=self._now,
        )
        self._machines[machine.listed.id] = machine
        if faults.node_lifetime_s is not None:
            moment = self._now + self._chance.expovariate(1 / faults.node_lifetime_s)
            self._at(moment, lambda: self._die(machine))

    # --- the clock -----------------------------------------------------------------------------------

    def _find_seconds(self, process: _Process, request: Request) -> float:
        factor = process.machine.factor
        if isinstance(request, Canary):
            return self._faults.start_s * factor
        if isinstance(request, Measure):
            return sum(map(self._take_s, request.orders)) * factor
        return self._faults.start_s * factor if isinstance(request, Build) else 1.0

    def _at(self, moment: float, happen: Callable[[], Notice | None]) -> None:
        heapq.heappush(self._events, (moment, self._number(), happen))

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers
