"""Random values of the model, for claims that must hold for all of them."""

from __future__ import annotations

import dataclasses
import enum
import types
from typing import Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from torchmark.model.costs import Call, Function, Profile, Tally
from torchmark.model.environment import Environment
from torchmark.model.outcome import Activity, CompileCosts, Failure, Outcome, Result
from torchmark.model.plain import MOST
from torchmark.model.plan import Case, Metric, Order, Plan, Sampling, Target
from torchmark.model.run import Run, RunInfo
from torchmark.model.task import Times
from torchmark.store.plain import MOST_SECONDS

# Also what SQLite or UTF-8 would not take as it is.
TEXTS = st.text(st.sampled_from('ab "\\\n\0\x1bé😀\udcff'), max_size=5)
NUMBERS = st.integers(0, MOST)
FLOATS = st.floats(0, MOST_SECONDS)
SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    int: NUMBERS,
    float: FLOATS,
    bool: st.booleans(),
}


def values_of(kind: Any, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Any value of a type; of a dataclass, with these fields."""
    if kind in SIMPLE:
        return SIMPLE[kind]
    if get_origin(kind) in (Union, types.UnionType):
        return st.one_of(*(st.none() if one is types.NoneType else values_of(one) for one in get_args(kind)))
    if get_origin(kind) is tuple:
        kinds = get_args(kind)
        if kinds[-1] is Ellipsis:
            return st.lists(values_of(kinds[0]), max_size=3).map(tuple)
        return st.tuples(*map(values_of, kinds))
    if issubclass(kind, enum.Enum):
        return st.sampled_from(list(kind))
    hints = get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    return st.builds(kind, **{name: fields[name] if name in fields else values_of(hints[name]) for name in names})


FUNCTIONS = st.builds(Function, TEXTS, TEXTS, TEXTS)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """A profile, whose inclusive costs need not be those that follow from the others."""
    events = ("Ir", "Dr")[: draw(st.integers(1, 2))]
    costs = st.tuples(*[NUMBERS] * len(events))
    exclusive = draw(st.dictionaries(FUNCTIONS, costs, max_size=4))
    among = st.sampled_from(list(exclusive)) if exclusive else FUNCTIONS
    calls = draw(st.dictionaries(st.tuples(among, among), st.builds(Call, NUMBERS, costs), max_size=4))
    return Profile(
        events=events,
        exclusive=exclusive,
        inclusive=draw(st.dictionaries(among, costs, max_size=3)),
        calls=calls,
        trigger=draw(st.none() | TEXTS),
    )


SIMPLE[Environment] = values_of(
    Environment, variables=st.dictionaries(TEXTS, TEXTS, max_size=3).map(lambda found: tuple(found.items()))
)
SIMPLE[Times] = values_of(Times, number_per_run=st.integers(1, MOST))
SIMPLE[Profile] = profiles()
SIMPLE[Tally] = st.integers(1, 3).flatmap(
    lambda layouts: values_of(
        Tally,
        number=st.integers(1, 1000),
        events=NUMBERS.map(lambda total: (("Dr", 1), ("Ir", total))),
        **dict.fromkeys(("seeds", "totals"), st.tuples(*[NUMBERS] * layouts)),
    )
)
RESULTS: st.SearchStrategy[Result] = st.one_of(
    SIMPLE[Times], SIMPLE[Tally], values_of(CompileCosts), values_of(Failure)
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A plan in which each case and each target is there once."""
    cases = draw(st.lists(values_of(Case), max_size=3, unique_by=lambda case: (case.suite, case.key)))
    targets = draw(st.lists(values_of(Target), min_size=1, max_size=2, unique=True))
    metrics = st.lists(st.sampled_from(Metric), unique=True).map(tuple)
    sampling = draw(values_of(Sampling, metrics=metrics, repeat=st.integers(0, 2), number=st.none(), blocks=st.none()))
    return Plan(tuple(cases), tuple(targets), sampling)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """A run of such a plan, some orders of which have outcomes."""
    plan = draw(plans())
    orders: list[Order] = draw(st.permutations(plan.orders))
    done = orders[: draw(st.integers(0, 4))]
    outcomes = tuple(draw(values_of(Outcome, order=st.just(order), result=RESULTS)) for order in done)
    info = draw(values_of(RunInfo, id=st.from_regex(r"[0-9a-f]{32}", fullmatch=True)))
    counted = dataclasses.replace(
        info,
        orders=len(orders),
        outcomes=len(outcomes),
        failures=sum(isinstance(outcome.result, Failure) for outcome in outcomes),
    )
    return Run(counted, plan, outcomes, draw(values_of(tuple[Activity, ...])))
