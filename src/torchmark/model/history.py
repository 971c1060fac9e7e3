"""A case over many runs: what each of them says of it, and where that became something else.

Times are told as logarithms of their ratio to one run, the anchor. What the machine was like on either day is in them,
so a change in them says little before something else confirms it; counts are exact.
"""

from __future__ import annotations

import dataclasses
import enum
import math

from torchmark.model.judgement import Spread
from torchmark.model.plan import Case, Metric, Target
from torchmark.model.run import RunInfo


class ShiftStanding(enum.Enum):
    """What is to be held of a shift."""

    CONFIRMED = "confirmed"
    """The case itself became another."""
    ENVIRONMENT = "environment shift"
    """What is around it did."""
    REDEFINED = "redefined"
    """It measures something else from here on."""
    UNCONFIRMED = "unconfirmed"


class Ground(enum.Enum):
    """What it is held for."""

    EXACT = "exact"
    """Counts repeat: another one is another program."""
    INSTRUCTIONS = "instructions"
    """Instructions changed there as well, in the same direction."""
    SOFTWARE = "software"
    """Another torch, Python or commit, and later runs keep the level."""
    OTHER_CASES = "other_cases"
    """Most other cases shifted alike, without other instructions."""
    SETTINGS = "settings"
    """Other environment variables, or another Valgrind."""
    MACHINE = "machine"
    """Another processor, instruction set or hash seed."""
    DEFINITION = "definition"
    NONE = "none"


@dataclasses.dataclass(frozen=True)
class Difference:
    """Something that two runs do not have in common; None where one of them lacks it.

    `what` is one of `cpu`, `capability`, `hash seed`, `definition`, `torch`, `torch commit`, `Python`, `commit`,
    `Valgrind`, `compiler`, `system`, or the name of an environment variable behind a `$`.
    """

    what: str
    before: str | None
    after: str | None


@dataclasses.dataclass(frozen=True)
class Point:
    """What one run says of a case; None for what it did not measure, or what failed."""

    run: RunInfo
    log_ratio: float | None = None
    """Its time against that of its segment's anchor."""
    segment: int | None = None
    """Which of the runs whose times can be compared with each other it belongs to."""
    instructions: Spread | None = None


@dataclasses.dataclass(frozen=True)
class Shift:
    """From the point at `position` on something is different from the one at `previous`.

    `before` and `after` are levels: log-ratios to the anchor, or instructions. They are None where both sides cannot be
    compared.
    """

    metrics: tuple[Metric, ...]
    position: int
    previous: int
    standing: ShiftStanding
    ground: Ground
    before: float | None = None
    after: float | None = None
    p_value: float | None = None
    """Of a change of times: of no change at all, corrected for all places that were looked at."""
    differences: tuple[Difference, ...] = ()
    pythons: tuple[str, str] | None = None
    others: int = 0
    """How many other cases were looked at."""
    common: float | None = None
    """The median log-ratio that their times shifted by."""

    @property
    def share(self) -> float | None:
        """By what part it is more: 0.01 is 1 %."""
        if self.before is None or self.after is None:
            return None
        if self.metrics == (Metric.WALL,):
            return math.expm1(self.after - self.before)
        return (self.after - self.before) / self.before if self.before else None


@dataclasses.dataclass(frozen=True)
class History:
    """A case in one target over all runs that have it, the oldest first."""

    case: Case
    """As it is defined in the newest."""
    target: Target
    points: tuple[Point, ...]
    anchors: tuple[RunInfo, ...]
    shifts: tuple[Shift, ...] = ()
    """In the order of their positions."""

    @property
    def newest(self) -> Point | None:
        return next((point for point in reversed(self.points) if point.log_ratio is not None), None)

    @property
    def anchor(self) -> RunInfo | None:
        """What the newest time is held against."""
        newest = self.newest
        return None if newest is None or newest.segment is None else self.anchors[newest.segment]
