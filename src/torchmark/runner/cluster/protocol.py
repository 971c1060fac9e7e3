"""What is sent to nodes and back, the interface of a fleet, and which nodes are admitted to a run."""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from torchmark.model.environment import Environment
from torchmark.model.inputs import FuzzedInput
from torchmark.model.job import RaceJob
from torchmark.model.outcome import Failure, Outcome
from torchmark.model.plan import Case, Node, Order, Sampling, Target
from torchmark.model.task import Snippet, Times
from torchmark.runner.spec import Match


@dataclasses.dataclass(frozen=True)
class RunSetup:
    """What whoever measures for a run has to know from the start. A node has its own programs and caches."""

    torchmark: str
    """The version, which has to be the same everywhere."""
    targets: tuple[Target, ...]
    sampling: Sampling
    folder: str
    """The working folder, if the node has one by this name."""
    path: tuple[str, ...]
    """Where modules are found, for an interpreter like the program's own."""
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables that change what torch does, or how long the environment is."""
    aligned: bool = False
    """Whether two targets are counted under names of one length."""


# --- what is asked for -------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Survey:
    """What is this node like?"""


@dataclasses.dataclass(frozen=True)
class Canary:
    """Start those that count, and have them count what is counted everywhere."""


@dataclasses.dataclass(frozen=True)
class Build:
    """Compile the C++ of these cases in every target."""

    cases: tuple[Case, ...]


@dataclasses.dataclass(frozen=True)
class Measure:
    """Carry out these orders. `cases` are theirs and those that they are held to."""

    orders: tuple[Order, ...]
    cases: tuple[Case, ...]
    library_sets: tuple[object, ...] = ()
    """What the fleet has given for shared `LibrarySet` values, which have compiled C++."""


@dataclasses.dataclass(frozen=True)
class Race:
    """Time statements in turns on an input."""

    input: FuzzedInput
    job: RaceJob
    timeout_s: float


@dataclasses.dataclass(frozen=True)
class PreparePairs:
    """Make what both sides of these pairs of cases run. Makes the workers that they are timed by."""

    pairs: tuple[tuple[Case, Case], ...]
    base: Target
    head: Target
    together: bool
    timeout_s: float
    library_sets: tuple[object, ...] = ()


@dataclasses.dataclass(frozen=True)
class TimePairs:
    """Call this method of the `PairedWorkers` that there are since pairs were prepared."""

    method: Literal["start", "gauge", "visit"]
    arguments: tuple[Any, ...]


Request: TypeAlias = Survey | Canary | Build | Measure | Race | PreparePairs | TimePairs


# --- what is answered --------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Surveyed:
    """What a node is like before anything is counted there."""

    node: Node
    torchmark: str
    libc: str
    """The system's C library and processor architecture, which compiled code depends on."""
    environments: tuple[Environment, ...]
    """Of those that time, in the order of the targets."""
    cache: str = ""
    """The folder of the cache. Libraries are loaded from there, and the lengths of their paths are counted."""
    compiles: bool = True


@dataclasses.dataclass(frozen=True)
class CanaryCounted:
    """What the canary takes here, and where it was counted, in the order of the targets."""

    counts: tuple[int, ...]
    environments: tuple[Environment, ...]


@dataclasses.dataclass(frozen=True)
class PackedLibrary:
    """A compiled snippet: the key that its symbols are named by, and the hash of the library that has it."""

    key: str
    content: str


@dataclasses.dataclass(frozen=True)
class Built:
    """What became of the C++ of some cases, by target; and the libraries by the hash of their content."""

    by_target: tuple[tuple[Target, Mapping[Snippet, PackedLibrary | Failure]], ...]
    contents: Mapping[str, bytes]


@dataclasses.dataclass(frozen=True)
class LibrarySet:
    """The same as it is sent to those who measure: `contents` are what the fleet has given for shared libraries."""

    by_target: tuple[tuple[Target, Mapping[Snippet, PackedLibrary | Failure]], ...]
    contents: Mapping[str, object]


@dataclasses.dataclass(frozen=True)
class Measured:
    """One outcome for each order."""

    outcomes: tuple[Outcome, ...]


@dataclasses.dataclass(frozen=True)
class InputTimed:
    """The times of each statement on an input, or why there are none."""

    result: tuple[Times, ...] | Failure
    environment: Environment | None
    node: Node | None


@dataclasses.dataclass(frozen=True)
class PairsTimed:
    """What the `PairedWorkers` returned, which layouts they have, and whether both sides are laid out alike."""

    result: object
    layouts: tuple[int, ...]
    match: Match


@dataclasses.dataclass(frozen=True)
class RequestRefused:
    """It cannot be done here, in the words of the error that says so."""

    message: str


NodeReply: TypeAlias = Surveyed | CanaryCounted | Built | Measured | InputTimed | PairsTimed | RequestRefused


@dataclasses.dataclass(frozen=True)
class Listed:
    """A node that is there."""

    id: str
    name: str
    slots: int


class Loss(enum.Enum):
    """What is gone."""

    ACTOR = "actor"
    """The process that measured, as far as can be told."""
    NODE = "node"
    OBJECT = "object"
    """Something that was sent or shared; whoever should have had it is well."""
    REFUSAL = "refusal"
    """Nothing: the node cannot do it."""


@dataclasses.dataclass(frozen=True)
class Replied:
    """The answer to the request with this id."""

    request_id: int
    reply: NodeReply


@dataclasses.dataclass(frozen=True)
class Lost:
    """There will be no answer to the request with this id."""

    request_id: int
    loss: Loss
    message: str


Notice: TypeAlias = Replied | Lost


class Fleet(Protocol):
    """Machines that come and go. Nothing here waits but `wait`."""

    def now(self) -> float:
        """Seconds by its clock."""

    def list_nodes(self) -> Sequence[Listed]:
        """Those that are there."""

    def open_actor(self, node: str, *, alone: bool) -> int:
        """Start a process that measures on a node: in one of its slots, or with the node for itself."""

    def close_actor(self, actor: int) -> None:
        """End it at once. What it was sent has no answer then, and no notice either."""

    def send(self, actor: int, request: Request) -> int:
        """Ask an actor for something; the id that its answer will have. An actor does one thing after the other."""

    def ask(self, actor: int, request: Request, timeout_s: float) -> NodeReply | Lost:
        """Ask an actor for something, and wait for the answer, but no longer than that. For any thread."""

    def share(self, value: object) -> object:
        """Make something large available to all actors; what stands for it in what is sent."""

    def wait(self, timeout_s: float) -> Sequence[Notice]:
        """What has happened, as soon as anything has, or nothing after so long."""

    def close(self) -> None:
        """End everything, at once."""


def share_libraries(fleet: Fleet, built: Built) -> object:
    """What the fleet has given for the `LibrarySet` of what was compiled."""
    contents = {name: fleet.share(content) for name, content in built.contents.items()}
    return fleet.share(LibrarySet(built.by_target, contents))


# How long nodes whose canary was counted wait for the others, before it is decided without them what is right. Starting
# what counts takes 20 seconds, on a busy machine several times that.
PATIENCE_S = 120.0
# Variables that say where things are. They are each node's own.
PLACES = ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "TORCH_HOME", "TORCH_EXTENSIONS_DIR")


MachineKind: TypeAlias = tuple[str, ...]
"""What results depend on besides the case: equal kinds, comparable results."""


def classify(surveyed: Surveyed, canary: CanaryCounted | None, *, timing: bool) -> MachineKind:
    """The kind of a node, by those that count there if some do. The processor matters only where anything is timed."""
    environments = surveyed.environments if canary is None else canary.environments
    traits = [f"libc {surveyed.libc}", f"cache path of {len(surveyed.cache)} letters"]
    for one in environments:
        traits += _describe(one)
    if timing:
        traits.append(f"CPU {surveyed.node.cpu_model}")
        traits += (f"timed with {one.cpu_capability}" for one in surveyed.environments)
    return tuple(traits)


def _describe(environment: Environment) -> tuple[str, ...]:
    variables = " ".join(f"{name}={value}" for name, value in environment.variables if name not in PLACES)
    return (
        f"Python {environment.python_version} at {environment.python}",
        f"torch {environment.torch_version} of {environment.torch_commit}, {environment.torch_build}",
        f"CPU capability {environment.cpu_capability}",
        f"Valgrind {environment.valgrind}",
        f"hash seed {environment.hash_seed}",
        f"variables {variables}",
    )


class Admission:
    """All nodes that have counted the canary, by kind."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[MachineKind, tuple[int, ...], float]] = {}
        self._expected: dict[MachineKind, tuple[int, ...]] = {}

    def add(self, node: str, kind: MachineKind, counts: tuple[int, ...], now: float) -> None:
        *_, since = self._waiting.get(node, (now,))
        self._waiting[node] = kind, counts, since

    def drop(self, node: str) -> None:
        self._waiting.pop(node, None)

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def settle(self, silent: int, now: float) -> tuple[dict[str, MachineKind], dict[str, tuple[int, ...]]]:
        """Those that may measure from now on; and those that are set aside, with what most of their kind count.

        While so many are `silent` that may still count it, it may be open what most of a kind count. Its nodes wait
        then, but not for longer than their patience. Where it is known, nobody waits.
        """
        by_kind: dict[MachineKind, list[tuple[tuple[int, ...], float]]] = {}
        for kind, counts, since in self._waiting.values():
            by_kind.setdefault(kind, []).append((counts, since))
        for kind, counted in by_kind.items():
            usual, number = Counter(counts for counts, _ in counted).most_common(1)[0]
            is_over = now - min(since for _, since in counted) >= PATIENCE_S
            if kind not in self._expected and (is_over or not silent or 2 * number > len(counted) + silent):
                # Of equally many, the first: one has to be taken as right, and that others differ is reported.
                self._expected[kind] = usual
        fit: dict[str, MachineKind] = {}
        odd: dict[str, tuple[int, ...]] = {}
        for node, (kind, counts, _) in list(self._waiting.items()):
            if kind not in self._expected:
                continue
            del self._waiting[node]
            if counts == self._expected[kind]:
                fit[node] = kind
            else:
                odd[node] = self._expected[kind]
        return fit, odd
