"""Which nodes may measure: those that can, and of each kind those that count alike, which a canary tells."""

from __future__ import annotations

import dataclasses
from collections import Counter

from torchmark.cluster.parcels import Heard, Surveyed
from torchmark.model.environment import Environment

# How long nodes that have been heard wait for the others before they decide without them who is right. Starting what
# counts takes 20 seconds, on a busy machine several times that.
PATIENCE_S = 120.0
# Variables that say where things are. They are each node's own.
PLACES = ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "TORCH_HOME", "TORCH_EXTENSIONS_DIR")


@dataclasses.dataclass(frozen=True)
class Kind:
    """What results depend on besides the case: equal kinds, comparable results."""

    traits: tuple[str, ...]

    def differ(self, other: Kind) -> list[str]:
        """What of this one is not so in the other."""
        return [trait for trait in self.traits if trait not in other.traits]


def classify(surveyed: Surveyed, heard: Heard | None, *, timing: bool) -> Kind:
    """The kind of a node, by those that count there if some do. The processor matters only where anything is timed."""
    environments = surveyed.environments if heard is None else heard.environments
    traits = [
        f"libc {surveyed.libc}",
        f"cache path of {len(surveyed.cache)} letters",
        *(trait for one in environments for trait in _describe(one)),
    ]
    if timing:
        traits.append(f"CPU {surveyed.node.cpu_model}")
        traits += (f"timed with {one.cpu_capability}" for one in surveyed.environments)
    return Kind(tuple(traits))


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


@dataclasses.dataclass(frozen=True)
class Odd:
    """A node that is set aside, for its canary takes other instructions than that of most of its kind."""

    node: str
    counts: tuple[int, ...]
    expected: tuple[int, ...]


class Census:
    """All nodes that have been heard, by kind."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Kind, tuple[int, ...], float]] = {}
        self._expected: dict[Kind, tuple[int, ...]] = {}

    def add(self, node: str, kind: Kind, counts: tuple[int, ...], now: float) -> None:
        """A node has been heard, perhaps not for the first time."""
        *_, since = self._waiting.get(node, (now,))
        self._waiting[node] = kind, counts, since

    def drop(self, node: str) -> None:
        """It is gone."""
        self._waiting.pop(node, None)

    @property
    def is_waiting(self) -> bool:
        """Whether anybody waits to be let in."""
        return bool(self._waiting)

    def settle(self, silent: int, now: float) -> tuple[dict[str, Kind], list[Odd]]:
        """Those that may measure from now on, and those that are set aside.

        While so many are `silent` that may still be heard, it may be open what most of a kind count. Its nodes wait
        then, but not for longer than their patience. Where it is known, nobody waits.
        """
        by_kind: dict[Kind, list[tuple[tuple[int, ...], float]]] = {}
        for kind, counts, since in self._waiting.values():
            by_kind.setdefault(kind, []).append((counts, since))
        for kind, heard in by_kind.items():
            usual, number = Counter(counts for counts, _ in heard).most_common(1)[0]
            is_over = now - min(since for _, since in heard) >= PATIENCE_S
            if kind not in self._expected and (is_over or not silent or 2 * number > len(heard) + silent):
                # Of equally many, the first: somebody has to be believed, and that others differ is told.
                self._expected[kind] = usual
        fit: dict[str, Kind] = {}
        odd: list[Odd] = []
        for node, (kind, counts, _) in list(self._waiting.items()):
            if kind not in self._expected:
                continue
            del self._waiting[node]
            if counts == self._expected[kind]:
                fit[node] = kind
            else:
                odd.append(Odd(node, counts, self._expected[kind]))
        return fit, odd
