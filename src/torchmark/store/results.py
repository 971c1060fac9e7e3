"""Results and outcomes as plain values. What is large is split off by its role, to be kept once and read at need."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from torchmark.errors import StoreError, UsageError
from torchmark.model.compiling import CompileCosts
from torchmark.model.costs import Tally
from torchmark.model.node import Node
from torchmark.model.outcome import Failure, Outcome, Result
from torchmark.model.plan import Metric, Order, Plan, Target
from torchmark.model.times import Times
from torchmark.store.fields import check_kind, take, take_integers
from torchmark.store.plain import check_moment, from_plain, to_plain
from torchmark.store.profiles import plain_profile, read_profile

_KINDS: dict[str, type[Times] | type[CompileCosts] | type[Tally] | type[Failure]] = {
    "times": Times,
    "compile_costs": CompileCosts,
    "tally": Tally,
    "failure": Failure,
}


def _read_labels(data: object) -> tuple[str, ...]:
    return tuple(check_kind(label, "noisy", str) for label in check_kind(data, "noisy", list))


def _read_text(data: object) -> str:
    text: str = check_kind(data, "text", str)
    return text


# Fields of a tally that are split off, how to write and how to read them.
_ROLES: dict[str, tuple[Callable[[Any], Any], Callable[[object], Any]]] = {
    "noisy": (list, _read_labels),
    "profile": (plain_profile, read_profile),
    "baseline_profile": (plain_profile, read_profile),
    "text": (str, _read_text),
}
# Those that are read in any case.
LIGHT_ROLES = ("noisy",)
ROLES = tuple(_ROLES)


def split_outcome(outcome: Outcome) -> tuple[dict[str, Any], dict[str, Any]]:
    """What an outcome says besides its order, its moments and its environment; and its large parts by their roles."""
    result, parts = outcome.result, {}
    if isinstance(result, Tally):
        found = {role: getattr(result, role) for role in ROLES}
        parts = {role: _ROLES[role][0](value) for role, value in found.items() if value is not None}
        result = dataclasses.replace(result, noisy=None, profile=None, baseline_profile=None, text=None)
    plain = to_plain(result)
    for role in ROLES:
        plain.pop(role, None)
    kind = next(name for name, kind in _KINDS.items() if isinstance(result, kind))
    body = {"result": {kind: plain}, "cores": list(outcome.cores), "unchecked": outcome.unchecked}
    return {**body, "node": to_plain(outcome.node)}, parts


def read_part(role: str, part: object) -> Any:
    """A large part of a result by itself, from its plain values."""
    if role not in _ROLES:
        raise StoreError(f"The field 'parts' has {role!r:.40}; expected one of {', '.join(ROLES)}.")
    return _ROLES[role][1](part)


def join_result(body: Mapping[str, Any], parts: Mapping[str, Any]) -> Result:
    """The result, with those parts that are at hand: what `read_part` gave, by role."""
    tagged = take(body, "result", dict)
    if len(tagged) != 1 or not _KINDS.keys() & tagged.keys():
        raise StoreError(f"The field 'result' has {', '.join(tagged)!r:.40}; expected one of {', '.join(_KINDS)}.")
    ((kind, plain),) = tagged.items()
    for role in ROLES:
        if role in check_kind(plain, f"result.{kind}", dict):
            raise StoreError(f"The field 'result.{kind}.{role}' is not where it belongs.")
    result = from_plain(_KINDS[kind], plain, f"result.{kind}")
    if not parts:
        return result
    if not isinstance(result, Tally):
        raise StoreError(f"The field 'parts' has {', '.join(parts)!r:.40}, which a result of this kind has not.")
    return dataclasses.replace(result, **parts)


def read_outcome(body: Mapping[str, Any], order: Order, parts: Mapping[str, Any], rest: Mapping[str, Any]) -> Outcome:
    """The outcome of an order; `rest` has its moments and its environment."""
    for name in ("began", "ended"):
        check_moment(rest[name], name)
    return Outcome(
        order=order,
        result=join_result(body, parts),
        cores=tuple(take_integers(body, "cores")),
        unchecked=take(body, "unchecked", str, optional=True),
        # Older files do not have it.
        node=None if body.get("node") is None else from_plain(Node, body["node"], "node"),
        **rest,
    )


def check_order(plan: Plan, target: Target, metric: Metric, number: int) -> None:
    """Refuse what no order of the plan has."""
    sampling = plan.sampling
    if target not in plan.targets or metric not in sampling.metrics or not 0 <= number < sampling.repeat:
        raise StoreError(f"An outcome belongs to no order: {metric.value} of round {number} in {target.name!r:.40}.")


def count_orders(plan: Plan) -> int:
    """How many orders a plan has, without making them."""
    sampling = plan.sampling
    return len(plan.cases) * len(plan.targets) * len(sampling.metrics) * sampling.repeat


def check_plan(plan: Plan) -> None:
    """Refuse a plan in which two cases or two targets could not be told apart."""
    seen: set[tuple[str, str]] = set()
    for case in plan.cases:
        if (case.suite, case.key) in seen:
            raise UsageError(f"Two cases of {case.suite!r} have the same name: {case.key}. Rename one of them.")
        seen.add((case.suite, case.key))
    if len(set(plan.targets)) < len(plan.targets):
        raise UsageError("The same target is there twice. Name each once.")
