"""A run as one JSON document, to hand it on; and back, where everything is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any, TypeVar

from torchmark.errors import StoreError, UsageError
from torchmark.model.case import Case
from torchmark.model.environment import Environment
from torchmark.model.outcome import Activity, Outcome
from torchmark.model.plan import Metric, Order, Plan, Sampling, Target
from torchmark.model.run import Run, RunInfo
from torchmark.store.definitions import content_hash, hash_text
from torchmark.store.fields import check_kind, check_schema, take
from torchmark.store.plain import dump, from_plain, parse, to_plain
from torchmark.store.results import check_order, check_plan, read_outcome, read_part, split_outcome

SCHEMA = "torchmark.run"
SCHEMA_VERSION = 1

# Costs by function are most of a document: 0.1 MB for each result of the standard suite, so this is some thousand of
# its results.
MOST_BYTES = 1 << 30
_AT_ONCE = 1 << 20
# What JSON may begin with; some programs put a byte order mark there.
_BLANK = b" \t\r\n\xef\xbb\xbf"

# What is written with a case for people and other programs; it follows from the rest.
_DERIVED = ("key", "content_hash")

_T = TypeVar("_T")


def export_run(run: Run) -> dict[str, Any]:
    """All of a run. Cases, targets and environments are told by their places in lists, large parts by their hash."""
    environments = dict.fromkeys(outcome.environment for outcome in run.outcomes if outcome.environment is not None)
    parts: dict[str, Any] = {}
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "run": to_plain(run.info),
        "targets": to_plain(run.plan.targets),
        "sampling": to_plain(run.plan.sampling),
        "cases": [{**to_plain(case), "key": case.key, "content_hash": content_hash(case)} for case in run.plan.cases],
        "environments": [to_plain(environment) for environment in environments],
        "outcomes": _plain_outcomes(run, list(environments), parts),
        "activities": to_plain(run.activities),
        "parts": parts,
    }


def _plain_outcomes(run: Run, environments: Sequence[Environment], parts: dict[str, Any]) -> list[dict[str, Any]]:
    """The outcomes; what is large in them goes to `parts`."""
    numbers: dict[object, int] = {}
    for values in (run.plan.cases, run.plan.targets, environments):
        numbers |= {value: number for number, value in enumerate(values)}
    plain = []
    for outcome in run.outcomes:
        body, large = split_outcome(outcome)
        hashes = {role: hash_text(dump(part)) for role, part in large.items()}
        parts |= {hashes[role]: part for role, part in large.items()}
        plain.append(
            {
                "case": numbers[outcome.order.case],
                "target": numbers[outcome.order.target],
                "metric": to_plain(outcome.order.metric),
                "round": outcome.order.round,
                "began": outcome.began,
                "ended": outcome.ended,
                "environment": None if outcome.environment is None else numbers[outcome.environment],
                **body,
                "parts": hashes,
            }
        )
    return plain


def parse_document(stream: IO[bytes]) -> Any:
    """The plain values of a document; StoreError if it is none, or without end."""
    pieces, size = [], 0
    try:
        while piece := stream.read(_AT_ONCE):
            # The first character shows what is something else, such as a device that gives zeros for ever.
            if not size and not piece.lstrip(_BLANK).startswith((b"{", b"[")):
                raise StoreError("This is no JSON: it begins with something else. Give a file that torchmark wrote.")
            pieces.append(piece)
            size += len(piece)
            if size > MOST_BYTES:
                raise StoreError(f"It has more than {MOST_BYTES} bytes, which no run has that torchmark exported.")
        return parse(b"".join(pieces), "run")
    except MemoryError as error:
        pieces.clear()
        raise StoreError(f"It is too large for the memory of this machine: it has more than {size} bytes.") from error


def import_run(data: object) -> Run:
    """The run that `export_run` gave this for; StoreError names the field that is not as it should be."""
    check_schema(data, SCHEMA, SCHEMA_VERSION)
    found: Mapping[str, Any] = check_kind(data, "run", dict)
    plan = Plan(
        tuple(_read_case(case, number) for number, case in enumerate(take(found, "cases", list))),
        tuple(from_plain(Target, target, "targets") for target in take(found, "targets", list)),
        from_plain(Sampling, take(found, "sampling", dict), "sampling"),
    )
    try:
        check_plan(plan)
    except UsageError as error:
        raise StoreError(f"The fields 'cases' and 'targets' are no plan: {error}") from error
    reader = _Outcomes(found, plan)
    outcomes = tuple(reader.read(outcome, number) for number, outcome in enumerate(take(found, "outcomes", list)))
    if len({outcome.order for outcome in outcomes}) < len(outcomes):
        raise StoreError("The field 'outcomes' has two of the same order.")
    return Run(
        from_plain(RunInfo, take(found, "run", dict), "run"),
        plan,
        outcomes,
        tuple(from_plain(Activity, activity, "activities") for activity in take(found, "activities", list)),
    )


def _read_case(data: object, number: int) -> Case:
    name = f"cases[{number}]"
    found = dict(check_kind(data, name, dict))
    derived = {field: take(found, field, str) for field in _DERIVED}
    case = from_plain(Case, {field: value for field, value in found.items() if field not in _DERIVED}, name)
    if derived != {"key": case.key, "content_hash": content_hash(case)}:
        raise StoreError(f"The field {name!r} has been changed: its key and its content_hash do not fit.")
    return case


class _Outcomes:
    """Reads outcomes, and what they share only once."""

    def __init__(self, data: Mapping[str, Any], plan: Plan) -> None:
        self._plan = plan
        self._environments = [
            from_plain(Environment, environment, "environments") for environment in take(data, "environments", list)
        ]
        self._plain_parts: Mapping[str, Any] = take(data, "parts", dict)
        self._parts: dict[tuple[str, str], Any] = {}

    def read(self, data: object, number: int) -> Outcome:
        """One of them."""
        name = f"outcomes[{number}]"
        found: Mapping[str, Any] = check_kind(data, name, dict)
        try:
            return self._read(found)
        except StoreError as error:
            raise StoreError(f"In {name}: {error}") from error

    def _read(self, found: Mapping[str, Any]) -> Outcome:
        case, target = _pick(found, "case", self._plan.cases), _pick(found, "target", self._plan.targets)
        order = Order(case, target, from_plain(Metric, found.get("metric"), "metric"), take(found, "round", int))
        check_order(self._plan, target, order.metric, order.round)
        known = take(found, "environment", int, optional=True) is not None
        rest = {
            "began": take(found, "began", float),
            "ended": take(found, "ended", float),
            "environment": _pick(found, "environment", self._environments) if known else None,
        }
        hashes = take(found, "parts", dict)
        parts = {role: self._find_part(role, take(hashes, role, str)) for role in hashes}
        return read_outcome(found, order, parts, rest)

    def _find_part(self, role: str, name: str) -> Any:
        if (role, name) not in self._parts:
            if name not in self._plain_parts:
                raise StoreError(f"The field 'parts' has no {name:.80}.")
            if hash_text(dump(self._plain_parts[name])) != name:
                raise StoreError(f"The field 'parts' has been changed: {name!r:.80} is not the hash of its content.")
            self._parts[role, name] = read_part(role, self._plain_parts[name])
        return self._parts[role, name]


def _pick(data: Mapping[str, Any], name: str, values: Sequence[_T]) -> _T:
    """The value that a field gives the place of."""
    number: int = take(data, name, int)
    if not 0 <= number < len(values):
        raise StoreError(f"The field {name!r} is {number!r:.40}; there are {len(values)}.")
    return values[number]
