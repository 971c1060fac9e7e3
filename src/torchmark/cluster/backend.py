"""The back end of a cluster: the same orders and events as on one machine, carried out wherever there are slots."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence

from torchmark.cluster.board import Board, Lot, Parcel
from torchmark.cluster.courts import Court, Depot
from torchmark.cluster.dispatch import Dispatcher
from torchmark.cluster.fleet import Fleet
from torchmark.cluster.packing import pack
from torchmark.cluster.parcels import Measured, Outset, Race, Raced
from torchmark.cluster.told import Done, GivenUp, Returned, Sent, SetAside, Told
from torchmark.model.outcome import Activity, Begun, Event, Failure, FailureKind, Outcome
from torchmark.model.plan import Order, Plan
from torchmark.runner.backend import Stop


class ClusterBackend:
    """Carries out orders on a fleet. Actors stay until it is closed."""

    def __init__(
        self,
        open_fleet: Callable[[Plan], tuple[Fleet, Outset]],
        tell: Callable[[str], None] = lambda _: None,
        *,
        together: bool = False,
    ) -> None:
        """`open_fleet` connects; `tell` hears what users should know; `together` keeps all orders in one place."""
        self._open_fleet = open_fleet
        self._tell = tell
        self._together = together
        self._fleet: Fleet | None = None
        self._dispatcher: Dispatcher | None = None

    @property
    def slots(self) -> int:
        """How many cases can be counted at once."""
        assert self._dispatcher is not None
        return sum(member.listed.slots for member in self._dispatcher.usable)

    def open(self, plan: Plan) -> None:
        """Connect, and ask all nodes what they are like. SetupError if none can measure."""
        if self._fleet is None:
            self._fleet, outset = self._open_fleet(plan)
            self._dispatcher = Dispatcher(self._fleet, outset)
        assert self._dispatcher is not None
        for aside in self._dispatcher.open():
            self._tell(_word(aside))

    def execute(self, plan: Plan, orders: Sequence[Order], stop: Stop) -> Generator[Event, None, None]:
        """Carry out orders; see `Backend`."""
        assert self._dispatcher is not None
        board = Board(pack(plan, orders, together=self._together))
        for told in self._dispatcher.run(board, stop):
            yield from self._translate(told, plan)

    def race(self, races: Sequence[Race], stop: Stop, *, alike: bool) -> Generator[tuple[Race, Raced], None, None]:
        """Time statements on inputs, each with a node for itself; all on nodes of one kind where that is `alike`."""
        assert self._dispatcher is not None
        common = Lot()
        board = Board(Parcel(common if alike else Lot(), alone=True, body=race) for race in races)
        for told in self._dispatcher.run(board, stop):
            if isinstance(told, SetAside):
                self._tell(_word(told))
            elif isinstance(told, Returned):
                assert isinstance(told.parcel.body, Race)
                assert isinstance(told.reply, Raced)
                yield told.parcel.body, told.reply
            elif isinstance(told, GivenUp):
                assert isinstance(told.parcel.body, Race)
                failure = Failure(FailureKind.WORKER_DIED, told.message)
                yield told.parcel.body, Raced(failure, None, None)

    def open_courts(self) -> list[Court]:
        """Every node that can measure, for duels: each is for these alone from now on."""
        assert self._dispatcher is not None
        assert self._fleet is not None
        self._dispatcher.clear()
        depot = Depot(self._fleet)
        return [Court(self._fleet, member, depot) for member in self._dispatcher.usable]

    def close(self) -> None:
        """End all actors, at once."""
        fleet, self._fleet, self._dispatcher = self._fleet, None, None
        if fleet is not None:
            fleet.close()

    def _translate(self, told: Told, plan: Plan) -> Iterator[Event]:
        now = time.time()
        if isinstance(told, SetAside):
            self._tell(_word(told))
        elif isinstance(told, Sent):
            yield from (Begun(order, order.target) for order in told.parcel.orders)
        elif isinstance(told, Returned):
            yield from _list_outcomes(told, now)
        elif isinstance(told, GivenUp):
            failure = Failure(FailureKind.WORKER_DIED, told.message)
            yield from (Outcome(order, failure, now, now) for order in told.parcel.orders)
        elif isinstance(told, Done):
            yield Activity(told.kind, plan.targets[0], now - told.seconds, now, told.size)


def _list_outcomes(told: Returned, now: float) -> Iterator[Outcome]:
    """One outcome for each order of the parcel, whatever a node has returned."""
    orders = told.parcel.orders
    outcomes = told.reply.outcomes if isinstance(told.reply, Measured) else ()
    if all(isinstance(one, Outcome) for one in outcomes) and [one.order for one in outcomes] == list(orders):
        yield from outcomes
        return
    failure = Failure(FailureKind.NO_RESULT, "The node returned something else than the outcomes of its orders.")
    yield from (Outcome(order, failure, now, now) for order in orders)


def _word(aside: SetAside) -> str:
    return f"The node {aside.node} is not used. {aside.reason}"
