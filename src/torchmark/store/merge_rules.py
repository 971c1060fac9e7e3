"""Which runs of several stores are the same run, and which of their outcomes are kept. Reads and writes nothing.

Apart from `merge.py`, so that the rules are tested without files.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from torchmark.errors import UsageError
from torchmark.model.costs import Tally
from torchmark.model.outcome import Failure, Outcome
from torchmark.model.plan import Case, Metric, Node, Order, Plan, Target
from torchmark.model.run import MERGED, SHARD, RunInfo, Shard, ShardPart, read_parts, write_parts
from torchmark.store.plain import content_hash

# Options that do not tell what was asked for: which part of it a run is, and where its files lie.
_APART = (SHARD, MERGED, "folder")
_ID_LENGTH = 32


@dataclasses.dataclass(frozen=True)
class Copy:
    """A run as one of the stores has it; `plan` is a hash of all of the plan that has to be alike."""

    store: Path
    info: RunInfo
    plan: str

    @property
    def parts(self) -> tuple[ShardPart, ...]:
        """The shards in it, if it is not whole."""
        return read_parts(self.info)

    @property
    def options(self) -> dict[str, tuple[str, ...]]:
        """Those that all shards of a run have in common."""
        return {name: values for name, values in self.info.options if name not in _APART}

    @property
    def request(self) -> tuple[object, ...]:
        """All that shards of a run have in common."""
        return self.info.name, self.plan, self.info.seed, tuple(sorted(self.options.items()))


class Mismatch(Exception):
    """Two that seem to be one run, or of one run, and are not."""

    def __init__(self, one: Copy, other: Copy) -> None:
        super().__init__()
        self.one = one
        self.other = other


@dataclasses.dataclass(frozen=True)
class RunGroup:
    """What becomes one run: copies of it, or of its shards, the lowest shard first."""

    copies: tuple[Copy, ...]

    @property
    def parts(self) -> tuple[ShardPart, ...]:
        """All shards that are there; none if the run is whole."""
        return tuple(sorted({part for copy in self.copies for part in copy.parts}))

    @property
    def id(self) -> str:
        """The same for the same shards, in whatever steps they were put together."""
        ids = sorted({part.run_id for part in self.parts} or {copy.info.id for copy in self.copies})
        return ids[0] if len(ids) == 1 else hashlib.sha256(" ".join(ids).encode()).hexdigest()[:_ID_LENGTH]

    def describe(self, outcomes: Sequence[Outcome], *, complete: bool) -> RunInfo:
        """What is known of the run, of which there are these outcomes."""
        first, parts = self.copies[0].info, self.parts
        if len(self.copies) == 1 and not (complete and parts):
            return first
        options = tuple(option for option in first.options if option[0] not in (SHARD, MERGED))
        if not complete:
            options = (*options, write_parts(parts)) if len(parts) > 1 else first.options
        known = [copy.info.finished for copy in self.copies if copy.info.id == self.id]
        ends = [moment for moment in known if moment is not None] or [outcome.ended for outcome in outcomes]
        return dataclasses.replace(
            first,
            id=self.id,
            created=min(copy.info.created for copy in self.copies),
            finished=max(ends, default=first.created) if complete else None,
            options=options,
            # A seal is for one run: that of a shard says nothing of the whole.
            seal=first.seal if self.id == first.id else "",
        )


def bring_together(copies: Sequence[Copy]) -> tuple[RunGroup, ...]:
    """All runs, those together that are one: the same run in several stores, and shards of one run."""
    by_id: dict[str, list[Copy]] = {}
    for copy in copies:
        by_id.setdefault(copy.info.id, []).append(copy)
    by_request: dict[object, list[Copy]] = {}
    for run_id, same in by_id.items():
        is_whole = not any(copy.parts for copy in same)
        by_request.setdefault(run_id if is_whole else same[0].request, []).extend(same)
    by_id = {}
    for found in by_request.values():
        # What these shards are put together to may be there already.
        by_id.setdefault(RunGroup(tuple(found)).id, []).extend(found)
    groups = tuple(RunGroup(tuple(sorted(found, key=_rank))) for found in by_id.values())
    for group in groups:
        _refuse_other_plans(group)
        _refuse_repeated(group)
    _refuse_lookalikes([group for group in groups if group.parts])
    return groups


def _rank(copy: Copy) -> tuple[Shard, float, str]:
    return min((part.shard for part in copy.parts), default=Shard(0, 0)), copy.info.created, copy.info.id


def _refuse_other_plans(group: RunGroup) -> None:
    for copy in group.copies:
        if copy.plan != group.copies[0].plan:
            raise Mismatch(group.copies[0], copy)


def _refuse_repeated(group: RunGroup) -> None:
    """Refuse two runs of one shard in one store: nobody can tell which of them belongs to the other shards."""
    seen: dict[tuple[Path, Shard], ShardPart] = {}
    for copy in group.copies:
        for part in copy.parts:
            other = seen.setdefault((copy.store, part.shard), part)
            if other != part:
                raise UsageError(
                    f"{copy.store}: Shard {part.shard} of {copy.info.name!r} is there twice ({other.run_id[:8]} and "
                    f"{part.run_id[:8]}), and which one belongs to the other shards cannot be told. Remove one with "
                    "torchmark rm. Runs that have names of their own, by --name, are not mistaken for each other."
                )


def _refuse_lookalikes(groups: Sequence[RunGroup]) -> None:
    """Refuse shards that seem to be of one run, and are not. Where no shard is missing, there are simply two runs."""
    seen: dict[tuple[str, int], RunGroup] = {}
    for group in groups:
        for of in {part.shard.of for part in group.parts}:
            other = seen.setdefault((group.copies[0].info.name, of), group)
            if other is not group and not (_has_all(group, of) and _has_all(other, of)):
                raise Mismatch(other.copies[0], group.copies[0])


def _has_all(group: RunGroup, of: int) -> bool:
    return len({part.shard for part in group.parts if part.shard.of == of}) == of


def find_difference(one: Plan, other: Plan) -> str | None:
    """The first thing in which two plans differ that must be alike, in words."""
    for field in dataclasses.fields(one.sampling):
        values = [getattr(plan.sampling, field.name) for plan in (one, other)]
        if field.name != "timeout_s" and values[0] != values[1]:
            return f"{field.name} of the sampling is {values[0]} in one and {values[1]} in the other"
    if one.targets != other.targets:
        return "they measure in other interpreters"
    cases, others = ({(case.suite, case.key): case for case in plan.cases} for plan in (one, other))
    for name in (*cases, *others):
        if name not in cases or name not in others:
            return f"only one has the case {_name_case(cases.get(name) or others[name])}"
        if content_hash(cases[name]) != content_hash(others[name]):
            return f"the case {_name_case(cases[name])} is defined otherwise"
    return "their cases come in another order" if list(cases) != list(others) else None


def find_other_option(one: Copy, other: Copy) -> str:
    """The first option in which two runs of the same plan differ, in words."""
    for name in sorted({*one.options, *other.options}):
        texts = [" ".join(copy.options.get(name, ())) or "not given" for copy in (one, other)]
        if texts[0] != texts[1]:
            return f"the option {name!r} is {texts[0]!r} in one and {texts[1]!r} in the other"
    return "their hash seeds differ"


def _name_case(case: Case) -> str:
    threads = [f"{case.args.num_threads} threads"] if case.args.num_threads > 1 else []
    words = [*filter(None, case.autolabels.as_dict.values()), *threads]
    return f"{' / '.join(case.label)!r} ({', '.join(words)}) of {case.suite!r}"


Place = tuple[str, str, Target, Metric, int]


def identify(order: Order) -> Place:
    """An order by its names: tags of its case may be others."""
    return order.case.suite, order.case.key, order.target, order.metric, order.round


@dataclasses.dataclass(frozen=True)
class Choice:
    """For each order the outcome that is kept, and the number of the copy that has it."""

    kept: dict[Place, tuple[int, Outcome]]
    repeated: int
    """Orders that were carried out more than once."""
    differing: int
    """Of these, orders whose counts differed."""


def choose(found: Iterable[Sequence[Outcome]]) -> Choice:
    """One outcome an order: a result rather than a failure, and of two alike the one that ended first."""
    kept: dict[Place, tuple[int, Outcome]] = {}
    repeated: set[Place] = set()
    differing: set[Place] = set()
    for number, outcomes in enumerate(found):
        for outcome in outcomes:
            place = identify(outcome.order)
            _, other = kept.setdefault(place, (number, outcome))
            if _is_same(outcome, other):
                continue
            repeated.add(place)
            if _have_other_counts(outcome, other):
                differing.add(place)
            if _rank_outcome(outcome) < _rank_outcome(other):
                kept[place] = number, outcome
    return Choice(kept, len(repeated), len(differing))


def _is_same(one: Outcome, other: Outcome) -> bool:
    """Whether this is one outcome, in two copies of a run."""
    return (one.began, one.ended, one.result) == (other.began, other.ended, other.result)


def _rank_outcome(outcome: Outcome) -> tuple[bool, float]:
    return isinstance(outcome.result, Failure), outcome.ended


def _have_other_counts(one: Outcome, other: Outcome) -> bool:
    counts = [
        (result.number, result.totals, result.allocations, result.tensor_allocations)
        for result in (one.result, other.result)
        if isinstance(result, Tally)
    ]
    return len(counts) == 2 and counts[0] != counts[1]


def name_nodes(copies: Sequence[Copy]) -> list[Node | None]:
    """Where the outcomes of each copy were measured; nothing if that was one machine for all."""
    if len({copy.info.host for copy in copies}) == 1:
        return [None] * len(copies)
    return [_name_node(copy) if copy.parts else None for copy in copies]


def _name_node(copy: Copy) -> Node:
    shards = [str(part.shard) for part in copy.parts]
    return Node(f"{'shards' if len(shards) > 1 else 'shard'} {', '.join(shards)}", copy.info.host.cpu_model)


def locate(outcomes: Sequence[Outcome], node: Node | None) -> list[Outcome]:
    """Outcomes with the node that they come from; those that know theirs keep it."""
    if node is None:
        return list(outcomes)
    return [one if one.node is not None else dataclasses.replace(one, node=node) for one in outcomes]


def find_mixtures(outcomes: Iterable[Outcome]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What differs within one target and metric although it changes numbers: what it is, and its values."""
    found: dict[tuple[str, Target, Metric], set[str]] = {}
    for outcome in outcomes:
        for what, value in _describe_environment(outcome):
            found.setdefault((what, outcome.order.target, outcome.order.metric), set()).add(value)
    return tuple(sorted({(what, tuple(sorted(values))) for (what, _, _), values in found.items() if len(values) > 1}))


def _describe_environment(outcome: Outcome) -> Iterator[tuple[str, str]]:
    environment = outcome.environment
    if environment is not None:
        values = {
            "torch": environment.torch_version,
            "Python": environment.python_version,
            "Valgrind": environment.valgrind,
            "CPU capability": environment.cpu_capability,
        }
        yield from ((what, value) for what, value in values.items() if value is not None)
