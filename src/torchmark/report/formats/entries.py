"""What all formats are written from: the results of each case in each target, under a name of their own.

Names depend on the case alone wherever they can, so that files of two runs can be compared by name. Nothing that is
not a finite number leaves this module.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence

from torchmark.analysis.places import choose_rounds
from torchmark.analysis.results import steady_times, summarise_run
from torchmark.errors import StoreError, UsageError
from torchmark.model.case import Case
from torchmark.model.compiling import CompileCosts
from torchmark.model.costs import Tally
from torchmark.model.outcome import Outcome
from torchmark.model.plan import Metric, Target
from torchmark.model.run import Host, Run
from torchmark.model.summary import CaseSummary
from torchmark.model.times import Times
from torchmark.report.printable import count, printable

WHAT = {Metric.WALL: "times", Metric.COUNT: "counts"}
NS_PER_S = 1e9


@dataclasses.dataclass(frozen=True)
class Round:
    """One repetition of a case: what was timed in it, or what was counted."""

    outcome: Outcome
    times: Times | None = None
    tally: Tally | None = None


@dataclasses.dataclass(frozen=True)
class Entry:
    """The results of a case in a target that its summary is of, and a name that no other entry of the run has."""

    name: str
    summary: CaseSummary
    rounds: tuple[Round, ...]

    @property
    def timed(self) -> tuple[tuple[Outcome, Times], ...]:
        """The rounds that have times, with at least one block each."""
        return tuple((r.outcome, r.times) for r in self.rounds if r.times is not None and r.times.raw_times)

    @property
    def counted(self) -> tuple[tuple[Outcome, Tally], ...]:
        """The rounds that have counts."""
        return tuple((r.outcome, r.tally) for r in self.rounds if r.tally is not None)


def list_entries(run: Run) -> tuple[Entry, ...]:
    """Every case in every target, also those that have no result, in the order of the plan."""
    rounds: dict[tuple[Case, Target], list[Round]] = {}
    for outcome in sorted(run.outcomes, key=lambda outcome: outcome.order.round):
        rounds.setdefault((outcome.order.case, outcome.order.target), []).append(_read(outcome))
    summaries = summarise_run(run)
    return tuple(
        Entry(name, summary, _leave_out_others(rounds.get((summary.case, summary.target), ()), run.info.host))
        for name, summary in zip(_name_all(run, summaries), summaries, strict=True)
    )


def _leave_out_others(rounds: Sequence[Round], host: Host) -> tuple[Round, ...]:
    """Without those that are not in the summary, because they are from places of another kind."""
    kept = {one.order for one in choose_rounds((one.outcome for one in rounds), host).outcomes}
    return tuple(one for one in rounds if one.outcome.order in kept)


def require(run: Run, entries: Sequence[Entry], *metrics: Metric) -> None:
    """Refuse a run that has none of the results that a format can hold."""
    there = {Metric.WALL: any(e.timed for e in entries), Metric.COUNT: any(e.counted for e in entries)}
    if any(there[metric] for metric in metrics):
        return
    wanted = " or ".join(WHAT[metric] for metric in metrics)
    others = [WHAT[metric] for metric in there if there[metric]]
    rest = f" It has {others[0]}, which this format has no place for." if others else ""
    raise UsageError(f"Run {run.info.name or run.info.id} has no {wanted} to export.{rest}")


def one_line(text: str) -> str:
    """A text as one line without anything that cannot be seen.

    >>> one_line(" a\\tb\\n c")
    'a b c'
    """
    return " ".join(printable(text).split())


def shorten(name: str, most_bytes: int) -> str:
    """A name for programs that take only so long a one; what is cut off is still told apart.

    >>> shorten("short", 20), len(shorten("x" * 50, 20))
    ('short', 20)
    """
    encoded = name.encode()
    if len(encoded) <= most_bytes:
        return name
    digest = hashlib.sha256(encoded).hexdigest()[:8]
    return f"{encoded[: most_bytes - 9].decode(errors='ignore')} {digest}"


def per_run(total: int, number: int) -> int | float:
    """What one of several runs costs; a whole number where it is one.

    >>> per_run(300, 100), per_run(250, 100)
    (3, 2.5)
    """
    return total // number if total % number == 0 else total / number


def name_case(case: Case, *, suite: bool = False, target: Target | None = None) -> str:
    """A case in one line: label, variant and threads, and what else is asked for.

    >>> from torchmark.model.case import AutogradMode, AutoLabels, RuntimeMode, TimerArgs
    >>> from torchmark.model.task import Language
    >>> labels = AutoLabels(RuntimeMode.EAGER, AutogradMode.FORWARD, Language.CPP)
    >>> name_case(Case(("Pointwise", "add"), labels, TimerArgs("x + 1;")))
    'Pointwise / add / Eager / Forward / C++ / 1 thread'
    """
    parts = (
        case.suite if suite else "",
        *case.label,
        *case.autolabels.as_dict.values(),
        count(case.args.num_threads, "thread"),
        target.name if target else "",
    )
    return " / ".join(filter(None, map(one_line, parts)))


def _name_all(run: Run, summaries: Sequence[CaseSummary]) -> list[str]:
    suites = len({case.suite for case in run.plan.cases}) > 1
    targets = len(run.plan.targets) > 1
    return make_unique(name_case(s.case, suite=suites, target=s.target if targets else None) for s in summaries)


def make_unique(names: Iterable[str]) -> list[str]:
    """Names in their order; what has been there gets a number.

    >>> make_unique(["a", "a", "b", "a #2"])
    ['a', 'a #2', 'b', 'a #2 #2']
    """
    taken: set[str] = set()
    seen: Counter[str] = Counter()
    unique = []
    for name in names:
        chosen = name
        while chosen in taken:
            seen[name] += 1
            chosen = f"{name} #{seen[name] + 1}"
        taken.add(chosen)
        unique.append(chosen)
    return unique


def _read(outcome: Outcome) -> Round:
    result = outcome.result
    if isinstance(result, Tally):
        return Round(outcome, tally=result)
    if not isinstance(result, (Times, CompileCosts)):
        return Round(outcome)
    times = steady_times(result)
    if not all(map(math.isfinite, times.raw_times)):
        raise StoreError(f"A time of {name_case(outcome.order.case)} is no finite number: the run cannot be exported.")
    return Round(outcome, times=times)
