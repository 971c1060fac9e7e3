"""The back end for Ray clusters: connects to one, and carries out orders wherever it has slots."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import importlib.util
import os
import secrets
import socket
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from torchmark import __version__
from torchmark.errors import PlaceLost, SetupError
from torchmark.files import is_ours_by
from torchmark.model.job import BlockPlan, PairedCase, RunTime, Visit
from torchmark.model.outcome import Event, Failure, FailureKind, Outcome
from torchmark.model.plan import Case, Order, Plan
from torchmark.model.task import Language
from torchmark.processes import StopRequest
from torchmark.runner.cluster.batches import Batch, BatchQueue, GivenUp, KindGroup, Returned, pack
from torchmark.runner.cluster.dispatch import Dispatcher
from torchmark.runner.cluster.nodes import SILENCE_S, Member
from torchmark.runner.cluster.protocol import (
    Build,
    Built,
    Fleet,
    InputTimed,
    Lost,
    Measured,
    PairsTimed,
    PreparePairs,
    Race,
    Request,
    RequestRefused,
    RunSetup,
    TimePairs,
    share_libraries,
)
from torchmark.runner.machine import choose_cores
from torchmark.runner.paired_workers import Failures
from torchmark.runner.spec import Match, travels, visible_path

T = TypeVar("T")

UNEXPECTED = "It returned something else than was asked for."


class LibraryStore:
    """Compiled C++ by the kind of nodes it is for: whoever needs it first has it compiled, the others wait for that."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._lock = threading.Lock()
        self._locks: defaultdict[object, threading.Lock] = defaultdict(threading.Lock)
        self._library_sets: defaultdict[object, list[object]] = defaultdict(list)
        self._made: set[tuple[object, Case]] = set()

    def share_libraries(
        self, kind: object, cases: Iterable[Case], build: Callable[[Build], Built]
    ) -> tuple[object, ...]:
        """What the fleet has given for libraries that have all of these cases."""
        with self._lock:
            lock = self._locks[kind]
        with lock:
            sources = [case for case in cases if case.args.language == Language.CPP]
            missing = tuple(case for case in sources if (kind, case) not in self._made)
            if missing:
                self._library_sets[kind].append(share_libraries(self._fleet, build(Build(missing))))
                self._made.update((kind, case) for case in missing)
            return tuple(self._library_sets[kind]) if sources else ()


class RemotePairs:
    """A node, alone. PlaceLost is raised once it is gone."""

    def __init__(self, fleet: Fleet, member: Member, library_store: LibraryStore, request: PreparePairs) -> None:
        """`request` is what all pairs are prepared with."""
        self._fleet = fleet
        self._member = member
        self._library_store = library_store
        self._request = request
        self._is_closed = False
        self.layouts: tuple[int, ...] = ()
        self.match = Match(alike=True)

    def prepare(self, pairs: Sequence[tuple[Case, Case]]) -> tuple[PairedCase | Failures, ...]:
        """What both sides of each pair run. C++ comes compiled, if another node of its kind was faster."""
        kind = self._member.kind or self._member.listed.id
        cases = dict.fromkeys(case for pair in pairs for case in pair)
        library_sets = self._library_store.share_libraries(kind, cases, lambda request: self._ask(request, Built))
        request = dataclasses.replace(self._request, pairs=tuple(pairs), library_sets=library_sets)
        return cast("tuple[PairedCase | Failures, ...]", self._read(request, tuple))

    def start(self, layouts: Iterable[int], note: Callable[[int], None] = lambda _: None) -> None:
        """Have more of them, one after the other so that it can be told how far it is."""
        for done, layout in enumerate(layouts, start=1):
            self._read(TimePairs("start", ((layout,),)), type(None))
            note(2 * done)

    def gauge(self, paired_case: PairedCase) -> RunTime | Failures:
        return cast("RunTime | Failures", self._read(TimePairs("gauge", (paired_case,)), (RunTime, tuple)))

    def visit(self, layout: int, paired_case: PairedCase, pace: BlockPlan) -> Visit | Failures:
        return cast("Visit | Failures", self._read(TimePairs("visit", (layout, paired_case, pace)), (Visit, tuple)))

    def close(self) -> None:
        if not self._is_closed and "_actor" in self.__dict__:
            self._fleet.close_actor(self._actor)
        self._is_closed = True

    @functools.cached_property
    def _actor(self) -> int:
        return self._fleet.open_actor(self._member.listed.id, alone=True)

    def _read(self, request: PreparePairs | TimePairs, expected: type | tuple[type, ...]) -> Any:
        reply = self._ask(request, PairsTimed)
        if not isinstance(reply.result, expected):
            raise PlaceLost(f"{self._member.name}: {UNEXPECTED}")
        self.layouts, self.match = reply.layouts, reply.match
        return reply.result

    def _ask(self, request: Request, expected: type[T]) -> T:
        if self._is_closed:
            raise PlaceLost(f"The node {self._member.name} was let go of.")
        reply = self._fleet.ask(self._actor, request, SILENCE_S)
        if isinstance(reply, (Lost, RequestRefused)):
            raise PlaceLost(f"{self._member.name}: {reply.message}")
        if not isinstance(reply, expected):
            raise PlaceLost(f"{self._member.name}: {UNEXPECTED}")
        return reply


class ClusterBackend:
    """Carries out orders on a fleet. Actors stay until it is closed."""

    def __init__(
        self,
        open_fleet: Callable[[Plan], tuple[Fleet, RunSetup]],
        notify: Callable[[str], None] = lambda _: None,
        *,
        together: bool = False,
    ) -> None:
        """`open_fleet` connects; `notify` hears what users should know; `together` keeps all orders in one place."""
        self._open_fleet = open_fleet
        self._notify = notify
        self._together = together
        self._opened: Dispatcher | None = None

    @property
    def _dispatcher(self) -> Dispatcher:
        assert self._opened is not None
        return self._opened

    @property
    def slots(self) -> int:
        return sum(member.listed.slots for member in self._dispatcher.nodes.usable)

    def open(self, plan: Plan) -> None:
        """Connect, and ask all nodes what they are like. SetupError if none can measure."""
        if self._opened is None:
            self._opened = Dispatcher(*self._open_fleet(plan), self._notify)
        self._opened.open()

    def execute(self, plan: Plan, orders: Sequence[Order], stop: StopRequest) -> Generator[Event, None, None]:
        for report in self._dispatcher.run(BatchQueue(pack(plan, orders, together=self._together)), stop):
            if isinstance(report, (Returned, GivenUp)):
                yield from _list_outcomes(report)
            else:
                yield report

    def race(
        self, races: Sequence[Race], stop: StopRequest, *, alike: bool
    ) -> Generator[tuple[Race, InputTimed], None, None]:
        """Time statements on inputs, each with a node for itself; all on nodes of one kind where that is `alike`."""
        common = KindGroup()
        batch_queue = BatchQueue(Batch(common if alike else KindGroup(), alone=True, request=race) for race in races)
        for report in self._dispatcher.run(batch_queue, stop):
            if isinstance(report, (Returned, GivenUp)):
                assert isinstance(report.batch.request, Race)
                if isinstance(report, GivenUp):
                    failure = Failure(FailureKind.WORKER_DIED, report.message)
                    yield report.batch.request, InputTimed(failure, None, None)
                else:
                    assert isinstance(report.reply, InputTimed)
                    yield report.batch.request, report.reply

    def open_remote_pairs(self, request: PreparePairs) -> list[RemotePairs]:
        """Every node that can measure, to time pairs on: each is for these alone from now on."""
        fleet = self._dispatcher.fleet
        self._dispatcher.clear()
        store = LibraryStore(fleet)
        return [RemotePairs(fleet, member, store, request) for member in self._dispatcher.nodes.usable]

    def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.fleet.close()


def _list_outcomes(report: Returned | GivenUp) -> Iterator[Outcome]:
    """One outcome for each order of the batch, whatever a node has returned."""
    now, orders = time.time(), report.batch.orders
    if isinstance(report, GivenUp):
        failure = Failure(FailureKind.WORKER_DIED, report.message)
    else:
        outcomes = report.reply.outcomes if isinstance(report.reply, Measured) else ()
        if all(isinstance(one, Outcome) for one in outcomes) and [one.order for one in outcomes] == list(orders):
            yield from outcomes
            return
        failure = Failure(FailureKind.NO_RESULT, "The node returned something else than the outcomes of its orders.")
    yield from (Outcome(order, failure, now, now) for order in orders)


OpenFleet = Callable[[Plan], tuple[Fleet, RunSetup]]
Notify = Callable[[str], None]

# Ray's own words for addresses: the cluster that runs on this machine, and a new one.
RUNNING, NEW = "auto", "local"
# A name of a host has 253 characters at most.
LONGEST_ADDRESS = 300
# How long a cluster may take to open a connection.
PROBE_S = 10.0
# A slot keeps workers of up to this size: see docs/clusters.md.
SLOT_BYTES = 2 << 30
# How often, and how long apart, what Ray has left is removed: its processes take some tenths of a second to end.
REMOVALS, REMOVAL_S = 30, 0.1


def open_ray(
    address: str | None,
    environ: Mapping[str, str] = os.environ,
    *,
    aligned: bool = False,
    notify: Notify = lambda _: None,
) -> OpenFleet:
    """How to connect, for a back end; `notify` hears if a cluster is started. SetupError if Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise SetupError("Ray is not installed:", missing="ray", advice="pip install 'torchmark[ray]'.")

    def connect(plan: Plan) -> tuple[Fleet, RunSetup]:
        # Before Ray is loaded: it adds to the path that modules are found by, whose length is counted.
        run_setup = make_run_setup(plan, environ, aligned=aligned)
        found = choose_address(address, environ)
        return (_start(run_setup, notify) if found is None else _join(found, run_setup)), run_setup

    return connect


def make_run_setup(plan: Plan, environ: Mapping[str, str], *, aligned: bool = False) -> RunSetup:
    """What nodes have to know to measure as this process would."""
    variables = tuple(sorted((name, value) for name, value in environ.items() if travels(name)))
    return RunSetup(
        __version__,
        plan.targets,
        plan.sampling,
        folder=os.getcwd(),
        path=tuple(visible_path()),
        variables=variables,
        aligned=aligned,
    )


def choose_address(address: str | None, environ: Mapping[str, str]) -> str | None:
    """The cluster to join; None to start one. SetupError if one that runs here is asked for, and there is none."""
    named = address or environ.get("RAY_ADDRESS")
    if named == NEW:
        return None
    if named and named != RUNNING:
        return named
    # Ray itself would look for it anew, and join whatever cluster anybody runs on this machine.
    noted = _read_note(environ)
    if named == RUNNING:
        if noted is None:
            raise SetupError(
                "There is no Ray cluster to be found on this machine.",
                missing="ray",
                advice=f"Start one with 'ray start --head --resources=...', or give --address {NEW}.",
            )
        return noted
    return None if noted is None or _is_refused(noted) else noted


def _read_note(environ: Mapping[str, str]) -> str | None:
    """Where the cluster is that was started last on this machine, as Ray has noted it; None if there is no note.

    The note lies where every user may write. A cluster can have this process run anything, so only what this user or
    root has noted counts.
    """
    note = Path(environ.get("RAY_TMPDIR") or environ.get("TMPDIR") or "/tmp", "ray", "ray_current_cluster")
    text, is_ours = "", True
    with contextlib.suppress(OSError):
        is_ours = not note.is_symlink()
        with open(os.open(note, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), errors="replace") as file:
            is_ours = is_ours_by(os.fstat(file.fileno()))
            text = file.read(LONGEST_ADDRESS).strip()
    if not is_ours:
        raise SetupError(
            f"Other users may have written {note}, which names the Ray cluster of this machine.",
            missing="ray",
            advice=f"Name the cluster with --address, or start one for this command with --address {NEW}.",
        )
    return text or None


def _is_refused(address: str) -> bool:
    """Whether nothing listens there any more: Ray leaves the note behind when a cluster ends."""
    # Whatever else is wrong with it, joining it says so.
    with contextlib.suppress(OSError):
        try:
            _probe(address)
        except ConnectionRefusedError:
            return True
    return False


def _probe(address: str) -> None:
    """See whether anybody is there: Ray itself waits for minutes until it says that nobody is."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        with socket.create_connection((host.strip("[]"), int(port)), PROBE_S):
            pass


def _join(address: str, run_setup: RunSetup) -> Fleet:
    with _explaining(
        f"There is no Ray cluster to be found at {address}:",
        "Start one with 'ray start --head --resources=...', name another one with --address, "
        f"or start one for this command with --address {NEW}.",
    ):
        if not address.startswith("ray://"):
            _probe(address)
        module = _load()
        module.connect(address)
    return cast(Fleet, module.RayFleet(run_setup))


def _start(run_setup: RunSetup, notify: Notify) -> Fleet:
    """A cluster for this command alone, which ends with the fleet, or else with this process."""
    cores, slots = count_slots()
    size = "1 slot" if slots == 1 else f"{slots} slots"
    notify(
        f"No running Ray cluster is joined: a local one with {size} is started on 127.0.0.1, and stopped at the end."
    )
    # Short, since names of sockets in it may have a hundred letters; and unknown to others, who thus do not join it.
    folder = tempfile.TemporaryDirectory(prefix="tm-ray-", dir="/tmp", ignore_cleanup_errors=True)
    with contextlib.ExitStack() as stack:
        stack.callback(_remove, folder)
        stack.enter_context(
            _explaining(
                "Ray could not be started on this machine:",
                "Measure without --backend ray, or name a cluster with --address.",
            )
        )
        os.environ.update(_make_variables(Path(folder.name)))
        module = _load()
        module.start(folder.name, cores, slots)
        stack.pop_all()
    return cast(Fleet, module.RayFleet(run_setup, at_end=functools.partial(_remove, folder)))


def _remove(folder: tempfile.TemporaryDirectory[str]) -> None:
    """Processes of Ray that are about to end may still make files there."""
    for _ in range(REMOVALS):
        folder.cleanup()
        if not os.path.exists(folder.name):
            return
        time.sleep(REMOVAL_S)


def count_slots() -> tuple[int, int]:
    """How many cores this machine has for us, and on how many of them cases can be counted at once."""
    cores = len(choose_cores())
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return cores, max(1, min(cores, memory_bytes // SLOT_BYTES))


def _make_variables(folder: Path) -> dict[str, str]:
    """What Ray has to find in its environment. None of it is passed on to workers: see `runner/spec.py`."""
    # Every user of this machine can reach loopback, and whoever has this token can run anything. Without a place that
    # is named, Ray would leave one in the user's home.
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32))
    return {
        # Ray takes the machine's address on the network unless it is told that there is no cluster, whatever else it
        # is told; then it keeps to loopback.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
    }


def _load() -> Any:
    # What this program does is nobody else's business, unless the user wants that.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    return importlib.import_module("torchmark.runner.cluster.ray_fleet")


@contextlib.contextmanager
def _explaining(failed: str, advice: str) -> Iterator[None]:
    try:
        yield
    except SetupError:
        raise
    except (RuntimeError, ValueError, OSError) as error:
        line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise SetupError(f"{failed} {line.rstrip('.')}.", missing="ray", advice=advice) from error
