"""What a report page shows."""

from __future__ import annotations

import dataclasses

from torchmark.model.caveats import Incomparable
from torchmark.model.costs import Flame
from torchmark.model.environment import Environment
from torchmark.model.judgement import CaseJudgement, FunctionChange, Side, StageChange
from torchmark.model.plan import Case, Node, NodeKind
from torchmark.model.run import CaseSummary, Host, Source


@dataclasses.dataclass(frozen=True)
class ReportSide:
    """One of those that results are of: a run, an environment of one, a build of torch."""

    name: str
    title: str = ""
    """What tells it from others of its name: when it was measured, the beginning of its id."""
    environments: tuple[Environment, ...] = ()
    """Those that its results were measured in; what is timed and what is counted have their own."""
    host: Host | None = None
    sources: tuple[Source, ...] = ()
    nodes: tuple[Node, ...] = ()
    """The machines that its results are of; none where that is the host alone."""
    count_kinds: tuple[NodeKind, ...] = ()
    """Those among which counts are kept apart; none where all of them are alike."""


@dataclasses.dataclass(frozen=True)
class Breakdown:
    """Where the instructions of a run go. `list_costs` gives those of each side."""

    functions: tuple[FunctionChange, ...]
    """Those that matter: what changed most, then what costs most."""
    rest: FunctionChange | None
    """All others together, so that they add up; None where there are none."""
    others: int
    """How many those are."""
    stages: tuple[StageChange, ...]
    """All of them, in the order in which a call passes through them."""
    only: Side | None = None
    """The only side that was counted; None where both were. The other side has no numbers."""

    def list_costs(self, change: FunctionChange | StageChange) -> tuple[float | None, float | None]:
        """The instructions of base and of head; None for a side that was not counted."""
        return (None if self.only is Side.HEAD else change.base, None if self.only is Side.BASE else change.head)


@dataclasses.dataclass(frozen=True)
class Command:
    """A line for a shell, and what it is for."""

    about: str
    text: str


@dataclasses.dataclass(frozen=True)
class Drawing:
    """An SVG of our own making, which goes into the page as it is, and a sentence on what it shows."""

    caption: str
    svg: str


@dataclasses.dataclass(frozen=True)
class ReportEntry:
    """All that is known of a case."""

    case: Case
    summaries: tuple[CaseSummary | None, ...]
    """What each side has of it, in the order of the sides; None where a side does not have the case."""
    judgement: CaseJudgement | None = None
    """None for a single side, and for what is not comparable."""
    breakdown: Breakdown | None = None
    flames: tuple[Flame, ...] = ()
    """Pruned: what is here is on the page."""
    drawings: tuple[Drawing, ...] = ()
    commands: tuple[Command, ...] = ()
    notes: tuple[str, ...] = ()
    """What else has to be known of it, besides what follows from its results."""
    obstacles: tuple[Incomparable, ...] = ()
    """Why its sides are not compared. Each is shown alone then, without a difference."""


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of the page that only some reports have: sentences, then a table, then drawings."""

    title: str
    paragraphs: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    drawings: tuple[Drawing, ...] = ()


@dataclasses.dataclass(frozen=True)
class ReportData:
    """A report before it is written."""

    title: str
    sides: tuple[ReportSide, ...]
    entries: tuple[ReportEntry, ...]
    created: float
    """When the report was made, in seconds since 1970."""
    torchmark: str
    """The version that made it."""
    method: tuple[str, ...] = ()
    """How it was measured, in a sentence or two."""
    remarks: tuple[str, ...] = ()
    """What has to be known before anything else, such as that the sides are not comparable."""
    sections: tuple[Section, ...] = ()
    commands: tuple[Command, ...] = ()
    """How to get this page, or the results, again."""
