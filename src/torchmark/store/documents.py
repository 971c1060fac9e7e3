"""A run as one JSON document and back, with its results as plain values; all that comes in is checked."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, TypeVar

from torchmark.errors import StoreError, UsageError
from torchmark.model.costs import INSTRUCTIONS, Call, Costs, Function, Profile, Tally, add_calls
from torchmark.model.environment import Environment
from torchmark.model.outcome import Activity, CompileCosts, Failure, Outcome, Result
from torchmark.model.plan import Case, Metric, Node, Order, Plan, Sampling, Target
from torchmark.model.run import Run, RunInfo
from torchmark.model.task import Times
from torchmark.store.plain import (
    check_kind,
    check_moment,
    check_schema,
    content_hash,
    dump,
    from_plain,
    hash_text,
    parse,
    take,
    take_integers,
    to_plain,
)

# Costs by function of a case of the standard suite are a text of 0.1 MB, those of a whole training step with
# torch.compile below 1 MB.
MOST_PROFILE_BYTES = 32 << 20
# Such texts are 3 to 13 times as long as what they are compressed to. zlib could claim a thousand, so that a small file
# could fill the memory: values of JSON take up to 26 times as much of it as their text.
MOST_RATIO = 50
# Below this, anything may be as regular as it likes.
SMALL = 64 << 10


def pack(part: object) -> tuple[str, bytes]:
    """The hash of plain values, and their compressed text."""
    text = dump(part)
    if len(text) > MOST_PROFILE_BYTES:
        raise StoreError(f"A profile of {len(text)} bytes is too large to be kept.")
    content = text.encode("ascii")
    body = zlib.compress(content)
    # What is more regular than `unpack` believes is kept as it is.
    return hash_text(text), body if len(content) <= _bound(body) else zlib.compress(content, 0)


def _bound(body: bytes) -> int:
    """How long the text may be that this was compressed from."""
    return min(MOST_PROFILE_BYTES, SMALL + MOST_RATIO * len(body))


def unpack(name: str, body: bytes) -> Any:
    """The plain values that `pack` gave this for, if the bytes are still the same."""
    reader = zlib.decompressobj()
    try:
        text = reader.decompress(body, _bound(body))
    except zlib.error as error:
        raise StoreError(f"It is damaged: what was compressed cannot be read: {error}.") from error
    if not reader.eof:
        raise StoreError(f"It is damaged: a compressed text is cut off, or longer than {_bound(body)} bytes.")
    if not text.isascii() or hash_text(text.decode("ascii")) != name:
        raise StoreError("It is damaged: a compressed text has another content than it had.")
    return parse(text, "blob")


def to_json_profile(profile: Profile) -> dict[str, Any]:
    """A profile with each text once. Inclusive costs are derived from the rest, unless they are something else."""
    functions = list(
        dict.fromkeys([*profile.exclusive, *profile.inclusive, *(f for pair in profile.calls for f in pair)])
    )
    numbers = {function: number for number, function in enumerate(functions)}
    texts = {text: number for number, text in enumerate(dict.fromkeys(text for f in functions for text in f))}
    derived = _derive(profile.exclusive, profile.calls)
    return {
        "events": list(profile.events),
        "trigger": profile.trigger,
        "texts": list(texts),
        "functions": [[texts[text] for text in function] for function in functions],
        "exclusive": [list(costs) for costs in profile.exclusive.values()],
        "calls": [[numbers[one], numbers[two], c.times, *c.costs] for (one, two), c in profile.calls.items()],
        "inclusive": None
        if derived == profile.inclusive
        else [[numbers[function], *costs] for function, costs in profile.inclusive.items()],
    }


def read_profile(data: object) -> Profile:
    """The profile that `to_json_profile` gave this for."""
    found: Mapping[str, Any] = check_kind(data, "profile", dict)
    events = tuple(check_kind(event, "events", str) for event in take(found, "events", list))
    if INSTRUCTIONS not in events or len(set(events)) < len(events):
        raise StoreError(f"The field 'events' is not what it should be; expected {INSTRUCTIONS}, and each event once.")
    texts = [check_kind(text, "texts", str) for text in take(found, "texts", list)]
    rows = _take_rows(found, "functions", width=3, references=3, known=len(texts))
    functions = [Function(*(texts[number] for number in row)) for row in rows]
    known, size = len(functions), len(events)
    own = _take_rows(found, "exclusive", width=size, references=0, known=known)
    if len(own) > known:
        raise StoreError("The field 'exclusive' has more rows than there are functions.")
    exclusive: dict[Function, Costs] = {function: tuple(row) for function, row in zip(functions, own, strict=False)}
    calls = {
        (functions[caller], functions[callee]): Call(times, tuple(costs))
        for caller, callee, times, *costs in _take_rows(found, "calls", width=3 + size, references=2, known=known)
    }
    if take(found, "inclusive", list, optional=True) is None:
        inclusive = _derive(exclusive, calls)
        if inclusive is None:
            raise StoreError("The field 'calls' has functions without costs of their own.")
    else:
        given = _take_rows(found, "inclusive", width=1 + size, references=1, known=known)
        inclusive = {functions[number]: tuple(costs) for number, *costs in given}
    return Profile(
        events=events,
        exclusive=exclusive,
        inclusive=inclusive,
        calls=calls,
        trigger=take(found, "trigger", str, optional=True),
    )


def _derive(
    exclusive: Mapping[Function, Costs], calls: Mapping[tuple[Function, Function], Call]
) -> dict[Function, Costs] | None:
    """Inclusive costs as the parser of profiles computes them; None where a function has no costs of its own."""
    numbers = {function: number for number, function in enumerate(exclusive)}
    if not all(function in numbers for pair in calls for function in pair):
        return None
    edges = ((numbers[caller], numbers[callee], call.costs) for (caller, callee), call in calls.items())
    totals = add_calls(list(exclusive.values()), edges)
    return {function: tuple(costs) for function, costs in zip(exclusive, totals, strict=True)}


def _take_rows(
    data: Mapping[str, Any], name: str, *, width: int, references: int, known: int
) -> Sequence[Sequence[int]]:
    """Rows of whole numbers, the first of which point at something that is known."""
    rows: list[list[int]] = take(data, name, list)
    for row in rows:
        take_integers({name: row}, name)
        fits = len(row) == width and all(number < known for number in row[:references])
        if not fits or any(number < 0 for number in row):
            raise StoreError(f"The field {name!r} has a row {row!r:.40} that does not fit the others.")
    return rows


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
    "profile": (to_json_profile, read_profile),
    "baseline_profile": (to_json_profile, read_profile),
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
        "outcomes": _to_json_outcomes(run, list(environments), parts),
        "activities": to_plain(run.activities),
        "parts": parts,
    }


def _to_json_outcomes(run: Run, environments: Sequence[Environment], parts: dict[str, Any]) -> list[dict[str, Any]]:
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
    reader = _DocumentOutcomes(found, plan)
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


class _DocumentOutcomes:
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
