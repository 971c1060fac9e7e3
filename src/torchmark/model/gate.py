"""What a gate lets through and what it stops, accepted counts, and what a self-test has shown."""

from __future__ import annotations

import dataclasses
import enum

from torchmark.model.judgement import Verdict
from torchmark.model.plain import AS_MAPPING
from torchmark.model.plan import Case


class Quantity(enum.Enum):
    """What a limit is for, by the name it has on the command line."""

    INSTRUCTIONS = "Ir"
    TIME = "time"
    ALLOCATIONS = "allocations"


class FailOn(enum.Enum):
    """What stops at the gate."""

    SLOWER = "slower"
    UNDECIDED = "undecided"
    FAILED = "failed"
    """It could not be measured in head."""
    MISSING = "missing"
    """Base has it and head does not."""


# Numbers of one run are quotients, each off by up to 1.1e-16 of itself; their difference, and a share of one, by a few
# times that. One instruction in a hundred runs is more than this up to a million million instructions a run.
ROUNDING = 1e-14


@dataclasses.dataclass(frozen=True)
class Limit:
    """How much more is let through: a share of what there was, or else so many; of cases that fit the pattern, or all.

    >>> limits = Limit(Quantity.INSTRUCTIONS, share=0.003), Limit(Quantity.INSTRUCTIONS, amount=0)
    >>> limits[0].admits(1000, 1003), limits[1].admits(5, 6)
    (True, False)
    """

    quantity: Quantity
    share: float | None = None
    amount: float = 0.0
    pattern: str | None = None

    def admits(self, base: float, head: float) -> bool:
        allowed = self.amount if self.share is None else base * self.share
        return head - base <= allowed + ROUNDING * max(abs(base), abs(head))


@dataclasses.dataclass(frozen=True)
class Policy:
    """What stops, and how much is let through.

    Of several limits that fit a case those with a pattern come first, and of these the last one.
    """

    fail_on: frozenset[FailOn] = frozenset()
    limits: tuple[Limit, ...] = ()


@dataclasses.dataclass(frozen=True)
class Growth:
    """A function, and how many instructions more it takes."""

    function: str
    delta: float


@dataclasses.dataclass(frozen=True)
class Regression:
    """Why a case stops. `base` and `head` are what the quantity says, seconds or a number; None where there is none."""

    case: Case
    reason: FailOn
    quantity: Quantity | None = None
    base: float | None = None
    head: float | None = None
    limit: Limit | None = None
    """The one that it is above, where there is one."""
    accepted: bool = False
    """Whether `base` is the count that the ledger has, and not that of the other side."""
    functions: tuple[Growth, ...] = ()
    """Those whose instructions grew, the largest growth first; none where costs by function are not known."""


@dataclasses.dataclass(frozen=True)
class Improvement:
    """A case that takes fewer instructions than the ledger accepts, which should be accepted in its turn."""

    case: Case
    accepted: float
    head: float


@dataclasses.dataclass(frozen=True)
class StaleEntry:
    """A case whose entry in the ledger says nothing of the count at hand: what differs, accepted and now."""

    case: Case
    differences: tuple[tuple[str, str, str], ...]


@dataclasses.dataclass(frozen=True)
class LedgerStanding:
    """A count beside the one that the ledger accepts, under the same conditions."""

    case: Case
    accepted: float
    head: float
    functions: tuple[Growth, ...] = ()
    """Those that take more, the largest growth first, as far as the ledger tells."""


@dataclasses.dataclass(frozen=True)
class GateResult:
    """What a gate says of all cases together, and the code that a program ends with."""

    regressions: tuple[Regression, ...] = ()
    improvements: tuple[Improvement, ...] = ()
    stale: tuple[StaleEntry, ...] = ()
    accepted: tuple[Case, ...] = ()
    """Those that take more instructions than base, as the ledger accepts."""
    exit_code: int = 0
    nothing_compared: bool = False
    """No case has evidence of both sides."""
    lost: tuple[Case, ...] = ()
    """Those that head failed, or has no result of, where base has one. Only a gate that is asked for looks for them."""
    idle_limits: tuple[Limit, ...] = ()
    """Limits of such a gate that no case could be held to, because nothing has evidence of that kind."""


@dataclasses.dataclass(frozen=True)
class Dependencies:
    """All that a count depends on besides the code: a count under other conditions is another count."""

    definition: str
    """The hash of what is measured."""
    python: str
    torch: str
    cpu_capability: str | None
    valgrind: str | None
    hash_seed: str | None
    layouts: tuple[int, ...]
    number: int
    """How many runs were counted in each layout."""


@dataclasses.dataclass(frozen=True)
class LedgerEntry:
    """What was accepted of one case. Counts are of all runs together, so that they are whole numbers."""

    suite: str
    key: str
    depends_on: Dependencies
    total: int
    """Instructions of the layout that stands for all."""
    totals: tuple[int, ...]
    """Instructions in each layout."""
    allocations: int
    tensor_allocations: int
    functions: tuple[tuple[str, int], ...] = dataclasses.field(metadata=AS_MAPPING)
    """Instructions by function, in alphabetical order: those with most of them."""
    rest: int
    """Instructions of all other functions."""
    why: str
    date: str
    """The day on which it was accepted, as 2001-12-31."""


@dataclasses.dataclass(frozen=True)
class Trial:
    """One comparison whose true answer is known: head takes so much longer."""

    injected_s: float
    """What was put in; 0 for nothing."""
    verdict: Verdict
    log_ratio: float
    seconds: float


@dataclasses.dataclass(frozen=True)
class SelfTest:
    """What is remembered of a self-test, for the floor below which nothing is called a change."""

    cpu_model: str | None
    date: str
    trials: int
    """Comparisons of a build with itself."""
    false_alarms: int
    sd: float
    """How far their log-ratios spread."""
