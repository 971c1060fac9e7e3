"""A Ray cluster as a fleet: actors of Ray, each on the node it was opened for.

The only module that knows Ray. Nodes offer slots as a custom resource; an actor takes one of them and a processor, one
that is alone takes all of them and all processors, so that Ray itself keeps others away.
"""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, ObjectLostError, OwnerDiedError, RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from torchmark.errors import SetupError
from torchmark.runner.cluster.node_server import NodeServer
from torchmark.runner.cluster.protocol import Listed, Loss, Lost, NodeReply, Notice, Replied, Request, RunSetup

# These have no types.
_list_nodes: Callable[[], list[dict[str, Any]]] = ray.nodes
_find_own_address: Callable[[], str] = ray.util.get_node_ip_address


RESOURCE = "torchmark"
# Ray starts an actor that died again this often, on the same node, and asks it the same again once.
RESTARTS = 2
RETRIES = 1
# What Ray logs is no output of a command.
QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": False}


def connect(address: str) -> None:
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
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():
                signal.signal(number, handler)


class RayFleet:
    """The nodes of the cluster this process is connected to that offer slots for torchmark."""

    def __init__(
        self,
        run_setup: RunSetup,
        node_server: Callable[..., Any] = NodeServer,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        """`node_server` makes what answers on a node; `at_end` is called once the cluster is left."""
        self._run_setup = run_setup
        self._at_end = at_end
        self._actor_class: Any = ray.remote(_make_actor_class(node_server))
        self._nodes: dict[str, dict[str, Any]] = {}
        self._actors: dict[int, tuple[Any, str]] = {}
        self._requests: dict[Any, tuple[int, int]] = {}
        """By the reference to its answer, the id of a request and the actor that was asked."""
        self._number = itertools.count(1).__next__

    def now(self) -> float:
        return time.monotonic()

    def list_nodes(self) -> Sequence[Listed]:
        alive = [node for node in _list_nodes() if node["Alive"] and node["Resources"].get(RESOURCE, 0) >= 1]
        self._nodes = {node["NodeID"]: node for node in alive}
        return [Listed(id_, _name(node), int(node["Resources"][RESOURCE])) for id_, node in self._nodes.items()]

    def open_actor(self, node: str, *, alone: bool) -> int:
        offered = self._nodes[node]["Resources"]
        options = {
            "num_cpus": offered.get("CPU", 0) if alone else min(1, offered.get("CPU", 0)),
            "resources": {RESOURCE: offered[RESOURCE] if alone else 1},
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False),
            "max_restarts": RESTARTS,
            "max_task_retries": RETRIES,
        }
        actor = self._number()
        name = _name(self._nodes[node])
        self._actors[actor] = self._actor_class.options(**options).remote(self._run_setup, name), node
        return actor

    def close_actor(self, actor: int) -> None:
        handle, _ = self._actors.pop(actor)
        for reference in [one for one, (_, whose) in self._requests.items() if whose == actor]:
            del self._requests[reference]
        ray.kill(handle, no_restart=True)

    def send(self, actor: int, request: Request) -> int:
        request_id = self._number()
        self._requests[self._actors[actor][0].answer.remote(request)] = request_id, actor
        return request_id

    def ask(self, actor: int, request: Request, timeout_s: float) -> NodeReply | Lost:
        if actor not in self._actors:
            return Lost(0, Loss.ACTOR, "It was closed.")
        return self._read(0, actor, self._actors[actor][0].answer.remote(request), timeout_s)

    def share(self, value: object) -> object:
        """Put it where all nodes can get it, once each. It is this process's, and stays as long as that lives."""
        # In a list: what stands alone would be replaced by what it stands for.
        return [ray.put(value)]

    def wait(self, timeout_s: float) -> Sequence[Notice]:
        if not self._requests:
            time.sleep(timeout_s)
            return []
        references = list(self._requests)
        ready, _ = ray.wait(references, num_returns=1, timeout=timeout_s)
        if ready and len(references) > 1:
            ready, _ = ray.wait(references, num_returns=len(references), timeout=0)
        return [self._settle(reference) for reference in ready]

    def close(self) -> None:
        """End all actors, and leave the cluster. One that was started by this process ends with that."""
        with contextlib.ExitStack() as stack:
            # Also if an interrupt ends the shutdown early.
            stack.callback(self._at_end)
            stack.callback(ray.shutdown)
            for actor in list(self._actors):
                self.close_actor(actor)

    def _settle(self, reference: Any) -> Notice:
        request_id, actor = self._requests.pop(reference)
        answer = self._read(request_id, actor, reference)
        return answer if isinstance(answer, Lost) else Replied(request_id, answer)

    def _read(self, request_id: int, actor: int, reference: Any, timeout_s: float | None = None) -> NodeReply | Lost:
        try:
            reply: NodeReply = ray.get(reference, timeout=timeout_s)
        except RayActorError as error:
            _, node = self._actors.get(actor, (None, None))
            alive = any(one["NodeID"] == node and one["Alive"] for one in _list_nodes())
            return Lost(request_id, Loss.ACTOR if alive else Loss.NODE, _first_line(error))
        except (ObjectLostError, OwnerDiedError, GetTimeoutError) as error:
            return Lost(request_id, Loss.OBJECT, _first_line(error))
        except RayTaskError as error:
            # A fault of ours on the node, or of what was sent there.
            return Lost(request_id, Loss.ACTOR, str(error).strip())
        except RayError as error:
            return Lost(request_id, Loss.ACTOR, _first_line(error))
        return reply


def _make_actor_class(node_server: Callable[..., Any]) -> type:
    class RayActor:
        def __init__(self, run_setup: RunSetup, name: str) -> None:
            self._node_server = node_server(run_setup, _fetch, name=name)

        def answer(self, request: Request) -> Any:
            return self._node_server.answer(request)

    return RayActor


def _fetch(handle: object) -> object:
    assert isinstance(handle, list)
    return ray.get(handle[0])


def _name(node: dict[str, Any]) -> str:
    """What its owner calls it, if that says more than its address; the address and a part of its id else."""
    name = str(node.get("NodeName") or node.get("NodeManagerHostname") or node["NodeManagerAddress"])
    return f"{name} ({node['NodeID'][:6]})" if name == node["NodeManagerAddress"] else name


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".") + "."
