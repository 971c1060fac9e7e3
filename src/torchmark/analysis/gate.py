"""The gate: which judgements stop a change, the limits that apply to them, and counts compared with the ledger."""

from __future__ import annotations

import dataclasses
import fnmatch
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from torchmark.analysis.verdict.explain import explain
from torchmark.analysis.verdict.judge import is_instruction_change
from torchmark.analysis.verdict.stored import CaseId, identify
from torchmark.errors import ExitCode, UsageError
from torchmark.model.costs import Tally
from torchmark.model.environment import Environment
from torchmark.model.gate import (
    Dependencies,
    FailOn,
    GateResult,
    Growth,
    Improvement,
    LedgerEntry,
    LedgerStanding,
    Limit,
    Policy,
    Quantity,
    Regression,
    StaleEntry,
)
from torchmark.model.judgement import CaseJudgement, Side, Verdict
from torchmark.model.plan import Case

_LIMIT = re.compile(
    r"(?P<quantity>\w+):(?P<number>\d+(?:\.\d*)?|\.\d+)(?P<percent>\s*%)?(?:@(?P<pattern>.+))?", re.ASCII
)
# Nobody lets through more, and a number with hundreds of digits is none.
MOST = 1e15
_EXAMPLES = "Say for instance Ir:0.3%, Ir:50 or time:2%@training/*."


def parse_limit(text: str) -> Limit:
    """A quantity, how much more of it is let through, and for which cases if not for all.

    >>> parse_limit("time:2%@training/*")
    Limit(quantity=<Quantity.TIME: 'time'>, share=0.02, amount=0.0, pattern='training/*')
    >>> parse_limit("Ir:50").amount
    50.0
    """
    match = _LIMIT.fullmatch(text.strip())
    quantities = {one.value.casefold(): one for one in Quantity}
    if match is None or match["quantity"].casefold() not in quantities or float(match["number"]) > MOST:
        names = ", ".join(one.value for one in Quantity)
        raise UsageError(
            f"{text!r:.80} is no limit: it has one of {names} before a colon, and how much more. {_EXAMPLES}"
        )
    quantity, number = quantities[match["quantity"].casefold()], float(match["number"])
    if match["percent"]:
        return Limit(quantity, share=number / 100, pattern=match["pattern"])
    if quantity is Quantity.TIME:
        # Seconds of one machine say nothing on another.
        raise UsageError(f"{text!r:.80} is no limit: of time a share is let through. {_EXAMPLES}")
    return Limit(quantity, amount=number, pattern=match["pattern"])


def parse_fail_on(text: str) -> frozenset[FailOn]:
    """What stops, separated by commas.

    >>> sorted(one.value for one in parse_fail_on("slower, failed"))
    ['failed', 'slower']
    """
    known = {one.value: one for one in FailOn}
    names = [name.strip().lower() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise UsageError(
                f"--fail-on takes {', '.join(known)}, or several of them separated by commas, not {name!r:.80}."
            )
    return frozenset(known[name] for name in names)


def find_limit(limits: Sequence[Limit], quantity: Quantity, case: Case) -> Limit | None:
    """The limit that holds for a case: of those that fit, the last one with a pattern, or else the last one."""
    fitting = [
        limit
        for limit in limits
        if limit.quantity is quantity
        and (limit.pattern is None or fnmatch.fnmatchcase("/".join(case.label), limit.pattern))
    ]
    special = [limit for limit in fitting if limit.pattern is not None]
    return next(reversed(special or fitting), None)


def hold_gate(
    judgements: Sequence[CaseJudgement],
    missing: Sequence[Case],
    ledger: Mapping[CaseId, LedgerStanding | StaleEntry],
    policy: Policy,
) -> GateResult:
    """What stops. Where the ledger has a standing, a count is held against what was accepted, and not against base."""
    standings = {key: one for key, one in ledger.items() if isinstance(one, LedgerStanding)}
    regressions = [
        regression
        for judgement in judgements
        for regression in _check(judgement, standings.get(identify(judgement.case)), policy)
    ]
    if FailOn.MISSING in policy.fail_on:
        regressions += [Regression(case, FailOn.MISSING) for case in missing]
    return GateResult(
        tuple(regressions),
        tuple(Improvement(one.case, one.accepted, one.head) for one in standings.values() if one.head < one.accepted),
        tuple(one for one in ledger.values() if isinstance(one, StaleEntry)),
        tuple(one.case for one in judgements if _is_accepted(one, standings.get(identify(one.case)))),
        exit_code=ExitCode.REGRESSED if regressions else 0,
    )


def look_for_gaps(
    result: GateResult,
    judgements: Sequence[CaseJudgement],
    unmeasured: Sequence[Case],
    ledger: Mapping[CaseId, LedgerStanding | StaleEntry],
    policy: Policy,
) -> GateResult:
    """The same, with what a gate could not look at: it lets nothing through that was not compared.

    `unmeasured` are cases that base has results of and head has not, though it should.
    """
    nothing = all(one.time is None and one.count is None for one in judgements)
    if not policy.fail_on:
        return dataclasses.replace(result, nothing_compared=nothing)
    told = {identify(one.case) for one in result.regressions}
    found = {identify(case): case for case in (*(one.case for one in judgements if _is_lost(one)), *unmeasured)}
    lost = tuple(case for key, case in found.items() if key not in told)
    idle = () if nothing else tuple(_find_idle_limits(judgements, ledger, policy))
    code = ExitCode.FAILED if nothing or lost or idle else 0
    return dataclasses.replace(
        result, exit_code=result.exit_code or code, nothing_compared=nothing, lost=lost, idle_limits=idle
    )


def _is_lost(judgement: CaseJudgement) -> bool:
    """Whether head failed where base did not, or cannot be compared although nothing failed in base."""
    failed = {one.side for one in judgement.failures}
    return Side.BASE not in failed and (Side.HEAD in failed or (judgement.time is None and judgement.count is None))


def _find_idle_limits(
    judgements: Sequence[CaseJudgement], ledger: Mapping[CaseId, LedgerStanding | StaleEntry], policy: Policy
) -> Iterator[Limit]:
    counted = any(one.count is not None for one in judgements)
    known = {
        Quantity.TIME: any(one.time is not None for one in judgements),
        Quantity.ALLOCATIONS: counted,
        Quantity.INSTRUCTIONS: counted or any(isinstance(one, LedgerStanding) for one in ledger.values()),
    }
    if FailOn.SLOWER in policy.fail_on:
        yield from (limit for limit in policy.limits if not known[limit.quantity])


def _is_accepted(judgement: CaseJudgement, standing: LedgerStanding | None) -> bool:
    has_more = judgement.count is not None and judgement.count.delta > 0
    return has_more and standing is not None and standing.head == standing.accepted


def _check(judgement: CaseJudgement, standing: LedgerStanding | None, policy: Policy) -> Iterator[Regression]:
    """Every reason for which a case stops."""
    if FailOn.SLOWER in policy.fail_on:
        yield from _check_slower(judgement, standing, policy.limits)
    if FailOn.UNDECIDED in policy.fail_on and judgement.verdict is Verdict.UNDECIDED:
        yield Regression(judgement.case, FailOn.UNDECIDED)
    # What failed in base alone has become better.
    if FailOn.FAILED in policy.fail_on and any(one.side is Side.HEAD for one in judgement.failures):
        yield Regression(judgement.case, FailOn.FAILED)


def _check_slower(
    judgement: CaseJudgement, standing: LedgerStanding | None, limits: Sequence[Limit]
) -> list[Regression]:
    limit_of = {quantity: find_limit(limits, quantity, judgement.case) for quantity in Quantity}
    checked = (
        _check_instructions(judgement, standing, limit_of[Quantity.INSTRUCTIONS]),
        _check_time(judgement, standing, limit_of[Quantity.TIME]),
        _check_allocations(judgement, limit_of[Quantity.ALLOCATIONS]),
    )
    found = [regression for regression in checked if regression is not None]
    is_bounded = standing is not None or any(limit_of.values())
    if judgement.verdict is Verdict.SLOWER and not found and not is_bounded:
        return [Regression(judgement.case, FailOn.SLOWER, functions=_grown(judgement))]
    return found


def _check_instructions(
    judgement: CaseJudgement, standing: LedgerStanding | None, limit: Limit | None
) -> Regression | None:
    """More than the limit allows; without a limit, whatever the verdict rests on alone."""
    count, quantity = judgement.count, Quantity.INSTRUCTIONS
    if standing is not None:
        limit = limit or Limit(quantity)
        if limit.admits(standing.accepted, standing.head):
            return None
        found = _regress(judgement, quantity, standing.accepted, standing.head, limit)
        return dataclasses.replace(found, accepted=True, functions=standing.functions)
    if count is None:
        return None
    if limit is None:
        stops = judgement.verdict is Verdict.SLOWER and not _is_slower_by_clock(judgement) and count.delta > 0
    else:
        stops = not limit.admits(count.base.value, count.head.value)
    return _regress(judgement, quantity, count.base.value, count.head.value, limit) if stops else None


def _regress(judgement: CaseJudgement, quantity: Quantity, base: float, head: float, limit: Limit | None) -> Regression:
    """More of a quantity in head than in base, with the functions that grew."""
    return Regression(
        judgement.case, FailOn.SLOWER, quantity, base=base, head=head, limit=limit, functions=_grown(judgement)
    )


def _is_slower_by_clock(judgement: CaseJudgement) -> bool:
    """What the clock alone calls slower may be another verdict in the end, and is none of the gate's business then."""
    time = judgement.time
    return judgement.verdict is Verdict.SLOWER and time is not None and time.verdict is Verdict.SLOWER


def _check_time(judgement: CaseJudgement, standing: LedgerStanding | None, limit: Limit | None) -> Regression | None:
    time, count = judgement.time, judgement.count
    if time is None or not _is_slower_by_clock(judgement):
        return None
    if standing is not None and count is not None and is_instruction_change(count) > 0:
        # Whoever accepts instructions accepts the time they take.
        return None
    ratio = math.exp(time.log_ratio)
    if limit is not None and limit.admits(1.0, ratio):
        return None
    return _regress(judgement, Quantity.TIME, time.base_s, time.base_s * ratio, limit)


def _check_allocations(judgement: CaseJudgement, limit: Limit | None) -> Regression | None:
    count = judgement.count
    if limit is None or count is None or limit.admits(count.base_allocations, count.head_allocations):
        return None
    found = _regress(judgement, Quantity.ALLOCATIONS, count.base_allocations, count.head_allocations, limit)
    # Functions are told of instructions, not of allocations.
    return dataclasses.replace(found, functions=())


def _grown(judgement: CaseJudgement) -> tuple[Growth, ...]:
    """By name, because two functions of one name are one to whoever reads it."""
    if judgement.explanation is None:
        return ()
    deltas: defaultdict[str, float] = defaultdict(float)
    for change in judgement.explanation.functions:
        deltas[change.function] += change.delta
    return _list_growth(deltas, 1)


def _list_growth(deltas: Mapping[str, float], number: int) -> tuple[Growth, ...]:
    """Those that grew, the largest growth first; `deltas` are of so many runs."""
    grown = sorted((-delta, name) for name, delta in deltas.items() if delta > 0)
    return tuple(Growth(name, -delta / number) for delta, name in grown)


# Entries are committed and read by people. A call of a small operator passes through some 150 functions; these are
# nearly all of its instructions.
MOST_FUNCTIONS = 60
# What stands for all functions that an entry does not list.
REST = "other functions"
# A torch that is built anew for each commit has the commit in its version: that is what changes, not a condition.
_COMMIT = re.compile(r"(?<=\+git)[0-9a-f]+$")

Standardise = Callable[[str], str]


def describe_dependencies(definition: str, tally: Tally, environment: Environment) -> Dependencies:
    """What a count depends on; `definition` is the hash of the case's."""
    return Dependencies(
        definition=definition,
        python=environment.python_version,
        torch=_COMMIT.sub("", environment.torch_version),
        cpu_capability=environment.cpu_capability,
        valgrind=environment.valgrind,
        hash_seed=environment.hash_seed,
        layouts=tally.seeds,
        number=tally.number,
    )


def make_entry(
    case: Case, depends_on: Dependencies, tally: Tally, standardise: Standardise, *, why: str, date: str
) -> LedgerEntry:
    costs = sum_by_function(tally, standardise)
    kept = sorted(costs, key=lambda name: (-costs[name], name))[:MOST_FUNCTIONS]
    return LedgerEntry(
        suite=case.suite,
        key=case.key,
        depends_on=depends_on,
        total=tally.total,
        totals=tally.totals,
        allocations=tally.allocations,
        tensor_allocations=tally.tensor_allocations,
        functions=tuple((name, costs[name]) for name in sorted(kept)),
        rest=tally.total - sum(costs[name] for name in kept),
        why=why,
        date=date,
    )


def sum_by_function(tally: Tally, standardise: Standardise) -> dict[str, int]:
    """Instructions of all runs by function, under the names that explanations have; nothing where they are not kept."""
    found = explain(tally, tally, standardise)
    costs: Counter[str] = Counter()
    for function in found.functions if found is not None else ():
        # What one run takes is a quotient of whole numbers, and goes back to them.
        costs[function.function] += round(function.head * tally.number)
    return costs


def hold_against(
    entry: LedgerEntry, case: Case, now: Dependencies, tally: Tally, standardise: Standardise
) -> LedgerStanding | StaleEntry:
    """The count beside the accepted one, or why that says nothing of it."""
    facts = [
        (field.name, getattr(entry.depends_on, field.name), getattr(now, field.name))
        for field in dataclasses.fields(Dependencies)
    ]
    if differences := tuple((name, _format_fact(a), _format_fact(b)) for name, a, b in facts if a != b):
        return StaleEntry(case, differences)
    number = tally.number
    return LedgerStanding(case, entry.total / number, tally.total / number, _find_growth(entry, tally, standardise))


def _format_fact(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "unknown" if value is None else str(value)


def _find_growth(entry: LedgerEntry, tally: Tally, standardise: Standardise) -> tuple[Growth, ...]:
    """Those of the functions that the entry lists which take more now, and all others together if they do."""
    costs = sum_by_function(tally, standardise)
    if not costs:
        return ()
    listed = dict(entry.functions)
    deltas = {name: costs.get(name, 0) - before for name, before in listed.items()}
    deltas[REST] = tally.total - sum(costs.get(name, 0) for name in listed) - entry.rest
    return _list_growth(deltas, tally.number)
