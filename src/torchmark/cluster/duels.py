"""Duels on a node: the arena there, and what both sides run, made ready on the spot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torchmark.cluster.parcels import LayoutsStarted, Outfit, PrepareBouts, VisitBout, Visited
from torchmark.cluster.wares import Shelf, Supply
from torchmark.model.bout import Bout, Gauge, Part
from torchmark.model.case import Case
from torchmark.model.judgement import Side, SideFailure
from torchmark.model.outcome import Failure
from torchmark.model.plan import Target
from torchmark.runner.arena import Arena, Corner, Failures
from torchmark.runner.artefacts import Models
from torchmark.runner.lab import Lab
from torchmark.runner.parts import make_parts


class Ring:
    """Where two targets are held against each other on this node."""

    def __init__(
        self,
        asked: PrepareBouts,
        labs: Mapping[Target, Lab],
        models: Models,
        environ: Mapping[str, str],
        cores: Sequence[int],
    ) -> None:
        self._targets = asked.base, asked.head
        self._labs = labs
        self._models = models
        self._environ = environ
        self._timeout_s = asked.timeout_s
        base, head = (Corner(target.python) for target in self._targets)
        self._arena = Arena(base, head, cores, environ, together=asked.together, timeout_s=asked.timeout_s)

    def prepare(
        self, pairs: Sequence[tuple[Case, Case]], shelf: Shelf, outfits: Sequence[Outfit]
    ) -> tuple[Bout | Failures, ...]:
        """What both sides of each pair run, or which of them cannot."""
        sides: list[dict[Case, Part | Failure]] = []
        for number, target in enumerate(self._targets):
            cases = list(dict.fromkeys(pair[number] for pair in pairs))
            supply = Supply(shelf, target, outfits, self._environ)
            made = make_parts(cases, self._labs[target], self._models, self._environ, self._timeout_s, supply.build)
            sides.append(made)
        return tuple(_match(sides[0][base], sides[1][head]) for base, head in pairs)

    def start(self, layouts: Sequence[int]) -> LayoutsStarted:
        """Have more layouts."""
        self._arena.start(layouts)
        return LayoutsStarted(self._arena.layouts, self._arena.match)

    def gauge(self, bout: Bout) -> Gauge | Failures:
        """How long a run takes on each side."""
        return self._arena.gauge(bout)

    def visit(self, asked: VisitBout) -> Visited:
        """Both sides in turns."""
        return Visited(self._arena.visit(asked.layout, asked.bout, asked.pace))

    def close(self) -> None:
        """End all workers, at once."""
        self._arena.close()


def _match(base: Part | Failure, head: Part | Failure) -> Bout | Failures:
    if isinstance(base, Part) and isinstance(head, Part):
        return Bout(base, head)
    return tuple(
        SideFailure(side, one) for side, one in zip(Side, (base, head), strict=True) if isinstance(one, Failure)
    )
