"""A Ray cluster as a fleet: an actor for each post, on the node it was opened for.

The only module that knows Ray. Nodes offer slots as a custom resource; a post takes one of them and a processor, one
that is alone takes all of them and all processors, so that Ray itself keeps others away.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import ray
from ray.exceptions import GetTimeoutError, ObjectLostError, OwnerDiedError, RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from torchmark.errors import SetupError
from torchmark.runner.cluster.protocol import Body, Listed, Loss, Lost, Notice, Replied, Reply, RunSetup
from torchmark.runner.cluster.station import Station

# These have no types.
_list_nodes: Callable[[], list[dict[str, Any]]] = ray.nodes
_find_own_address: Callable[[], str] = ray.util.get_node_ip_address


class Answering(Protocol):
    """What an actor has inside."""

    def answer(self, body: Body) -> Reply:
        """Do what is asked for."""


class MakeStation(Protocol):
    """Makes it, on the node of this name."""

    def __call__(self, outset: RunSetup, fetch: Callable[[object], object], *, name: str | None) -> Answering:
        """See `Station`."""


RESOURCE = "torchmark"
# Ray starts a post that died again this often, on the same node, and asks it the same again once.
RESTARTS = 2
RETRIES = 1
# What Ray logs is no output of a command.
QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": False}


def connect(address: str) -> None:
    """Join the cluster at this address."""
    if address.startswith("ray://"):
        raise SetupError(
            "Ray's client protocol cannot keep track of nodes.",
            missing="ray",
            advice="Run torchmark on a machine of the cluster, and give that cluster's own address, such as host:6379.",
        )
    with _keeping_signals():
        ray.init(address=address, **QUIET)


def start(folder: str, cores: int, slots: int) -> None:
    """Start a cluster of this machine on loopback, which ends with this process or with `RayFleet.close`.

    SetupError if Ray would listen on the network, which it decides while it is loaded.
    """
    own = _find_own_address()
    if not ipaddress.ip_address(own).is_loopback:
        raise SetupError(
            f"Ray would listen at {own}, and not on this machine alone.",
            missing="ray",
            advice="Start a cluster with 'ray start --head --resources=...', and name it with --address.",
        )
    try:
        with _keeping_signals():
            ray.init(
                address="local",
                num_cpus=cores,
                resources={RESOURCE: slots},
                include_dashboard=False,
                **QUIET,
                _node_ip_address=own,
                _temp_dir=folder,
            )
    except BaseException:
        # Also after an interrupt.
        ray.shutdown()
        raise


@contextlib.contextmanager
def _keeping_signals() -> Iterator[None]:
    """Ray replaces the handlers by which a command ends in order."""
    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    handlers = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():
                signal.signal(number, handler)


class RayFleet:
    """The nodes of the cluster this process is connected to that offer slots for torchmark."""

    def __init__(
        self, outset: RunSetup, station: MakeStation = Station, at_end: Callable[[], None] = lambda: None
    ) -> None:
        """`at_end` is called once the cluster is left."""
        self._outset = outset
        self._at_end = at_end
        self._actor: Any = ray.remote(_serve(station))
        self._nodes: dict[str, dict[str, Any]] = {}
        self._posts: dict[int, tuple[Any, str]] = {}
        self._tickets: dict[Any, tuple[int, int]] = {}
        """By the reference to its answer, a ticket and whose it is."""
        self._numbers = 0

    def now(self) -> float:
        """Seconds by this machine's clock."""
        return time.monotonic()

    def list_nodes(self) -> Sequence[Listed]:
        """Those that live and have slots."""
        alive = [node for node in _list_nodes() if node["Alive"] and node["Resources"].get(RESOURCE, 0) >= 1]
        self._nodes = {node["NodeID"]: node for node in alive}
        return [Listed(id_, _name(node), int(node["Resources"][RESOURCE])) for id_, node in self._nodes.items()]

    def open_post(self, node: str, *, alone: bool) -> int:
        """An actor, which is there when the node has room for it."""
        offered = self._nodes[node]["Resources"]
        options = {
            "num_cpus": offered.get("CPU", 0) if alone else min(1, offered.get("CPU", 0)),
            "resources": {RESOURCE: offered[RESOURCE] if alone else 1},
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False),
            "max_restarts": RESTARTS,
            "max_task_retries": RETRIES,
        }
        post = self._number()
        name = _name(self._nodes[node])
        self._posts[post] = self._actor.options(**options).remote(self._outset, name), node
        return post

    def close_post(self, post: int) -> None:
        """Its workers end with it."""
        actor, _ = self._posts.pop(post)
        for reference in [one for one, (_, whose) in self._tickets.items() if whose == post]:
            del self._tickets[reference]
        ray.kill(actor, no_restart=True)

    def send(self, post: int, body: Body) -> int:
        """Call the actor."""
        ticket = self._number()
        reference = self._posts[post][0].answer.remote(body)
        self._tickets[reference] = ticket, post
        return ticket

    def ask(self, post: int, body: Body, timeout_s: float) -> Reply | Lost:
        """Call the actor, and wait for what it says."""
        if post not in self._posts:
            return Lost(0, Loss.POST, "It was closed.")
        return self._read(0, post, self._posts[post][0].answer.remote(body), timeout_s)

    def share(self, value: object) -> object:
        """Put it where all nodes can get it, once each. It is this process's, and stays as long as that lives."""
        # In a list: what stands alone would be replaced by what it stands for.
        return [ray.put(value)]

    def wait(self, timeout_s: float) -> Sequence[Notice]:
        """What has been answered, and what will not be."""
        if not self._tickets:
            time.sleep(timeout_s)
            return []
        references = list(self._tickets)
        ready, _ = ray.wait(references, num_returns=1, timeout=timeout_s)
        if ready and len(references) > 1:
            ready, _ = ray.wait(references, num_returns=len(references), timeout=0)
        return [self._settle(reference) for reference in ready]

    def close(self) -> None:
        """End all actors, and leave the cluster. One that was started by this process ends with that."""
        try:
            for post in list(self._posts):
                self.close_post(post)
        finally:
            try:
                ray.shutdown()
            finally:
                # Also if an interrupt ends the shutdown early.
                self._at_end()

    def _settle(self, reference: Any) -> Notice:
        ticket, post = self._tickets.pop(reference)
        answer = self._read(ticket, post, reference)
        return answer if isinstance(answer, Lost) else Replied(ticket, answer)

    def _read(self, ticket: int, post: int, reference: Any, timeout_s: float | None = None) -> Reply | Lost:
        try:
            reply: Reply = ray.get(reference, timeout=timeout_s)
        except RayActorError as error:
            return Lost(ticket, self._find_loss(post), _first_line(error))
        except (ObjectLostError, OwnerDiedError, GetTimeoutError) as error:
            return Lost(ticket, Loss.OBJECT, _first_line(error))
        except RayTaskError as error:
            # A fault of ours on the node, or of what was sent there.
            return Lost(ticket, Loss.POST, str(error).strip())
        except RayError as error:
            return Lost(ticket, Loss.POST, _first_line(error))
        return reply

    def _find_loss(self, post: int) -> Loss:
        _, node = self._posts.get(post, (None, None))
        alive = any(one["NodeID"] == node and one["Alive"] for one in _list_nodes())
        return Loss.POST if alive else Loss.NODE

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers


def _serve(station: MakeStation) -> type:
    """The class of the actor."""

    class Actor:
        def __init__(self, outset: RunSetup, name: str) -> None:
            self._station = station(outset, _fetch, name=name)

        def answer(self, body: Body) -> Reply:
            return self._station.answer(body)

    return Actor


def _fetch(handle: object) -> object:
    assert isinstance(handle, list)
    return ray.get(handle[0])


def _name(node: dict[str, Any]) -> str:
    """What its owner calls it, if that says more than its address; the address and a part of its id else."""
    name = str(node.get("NodeName") or node.get("NodeManagerHostname") or node["NodeManagerAddress"])
    return f"{name} ({node['NodeID'][:6]})" if name == node["NodeManagerAddress"] else name


def _first_line(error: BaseException) -> str:
    """What went wrong, as a sentence."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".") + "."
