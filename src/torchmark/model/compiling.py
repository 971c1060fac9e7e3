"""What `torch.compile` costs: before the first result is there, and in every call after that."""

from __future__ import annotations

import dataclasses

from torchmark.model.times import Times


@dataclasses.dataclass(frozen=True)
class FirstCall:
    """The first execution of a statement whose model is to be compiled, and what the compiler did in it.

    >>> FirstCall(2.5, 0.5, graphs=1, graph_breaks=0).compile_s
    2.0
    """

    first_s: float
    steady_s: float
    """One execution later on, in the same process."""
    graphs: int
    graph_breaks: int
    abandoned: int = 0
    """Functions that were left to the interpreter, because they could not be compiled or were so too often."""
    cache_hits: int = 0
    """Graphs whose code Inductor found on the disk. Other back ends keep none there."""
    cache_misses: int = 0
    breaks: tuple[str, ...] = ()
    """What broke the graph, and where."""

    @property
    def compile_s(self) -> float:
        """How long compiling took: the first execution without what a later one takes."""
        return max(0.0, self.first_s - self.steady_s)


@dataclasses.dataclass(frozen=True)
class CompileCosts:
    """All that compiling a case costs. Neither of the first calls has to load or initialise the compiler itself."""

    cold: FirstCall
    """With an empty cache."""
    warm: FirstCall
    """In another process, with the cache that the cold one has filled."""
    steady: Times
    """The statement, compiled."""
    call: Times
    """The forward call alone with the results of its graphs at hand: checking guards, the way in and out, and what
    runs between graphs."""

    @property
    def cold_s(self) -> float:
        """Seconds to compile with an empty cache."""
        return self.cold.compile_s

    @property
    def warm_s(self) -> float:
        """Seconds to compile from the cache on the disk."""
        return self.warm.compile_s

    @property
    def graphs(self) -> int:
        """How many graphs the statement was made of."""
        return self.cold.graphs

    @property
    def graph_breaks(self) -> int:
        """How often a graph had to end early."""
        return self.cold.graph_breaks
