"""A run as one JSON document and back, with its results as plain values; all that comes in is checked."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, TypeVar, get_args

from torchmark.errors import StoreError, UsageError
from torchmark.model.costs import INSTRUCTIONS, Call, Costs, Function, Profile, Tally, add_calls
from torchmark.model.environment import Environment
from torchmark.model.outcome import Activity, Outcome, Result
from torchmark.model.plain import name_kind, to_plain
from torchmark.model.plan import Case, Metric, Node, Order, Plan, Sampling, Target
from torchmark.model.run import Run, RunInfo
from torchmark.model.schemas import begin_document
from torchmark.store.plain import check_schema, content_hash, dump, from_plain, hash_text, parse, take

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class _ProfileTables:
    """A profile with each text once, and numbers in place of what is named more than once."""

    events: tuple[str, ...]
    trigger: str | None
    texts: tuple[str, ...]
    functions: tuple[tuple[int, int, int], ...]
    exclusive: tuple[tuple[int, ...], ...]
    calls: tuple[tuple[int, ...], ...]
    inclusive: tuple[tuple[int, ...], ...] | None
    """None where they follow from the rest."""


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
    found = from_plain(_ProfileTables, data, "profile")
    events, size = found.events, len(found.events)
    if INSTRUCTIONS not in events or len(set(events)) < size:
        raise StoreError(f"The field 'events' is not what it should be; expected {INSTRUCTIONS}, and each event once.")
    _check_rows("functions", found.functions, width=3, references=3, known=len(found.texts))
    functions = [Function(*(found.texts[number] for number in row)) for row in found.functions]
    known = len(functions)
    _check_rows("exclusive", found.exclusive, width=size, references=0, known=known)
    if len(found.exclusive) > known:
        raise StoreError("The field 'exclusive' has more rows than there are functions.")
    exclusive: dict[Function, Costs] = dict(zip(functions, found.exclusive, strict=False))
    _check_rows("calls", found.calls, width=3 + size, references=2, known=known)
    calls = {
        (functions[caller], functions[callee]): Call(times, tuple(costs))
        for caller, callee, times, *costs in found.calls
    }
    if found.inclusive is None:
        inclusive = _derive(exclusive, calls)
        if inclusive is None:
            raise StoreError("The field 'calls' has functions without costs of their own.")
    else:
        _check_rows("inclusive", found.inclusive, width=1 + size, references=1, known=known)
        inclusive = {functions[number]: tuple(costs) for number, *costs in found.inclusive}
    return Profile(events, exclusive, inclusive, calls, trigger=found.trigger)


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


def _check_rows(name: str, rows: Sequence[Sequence[int]], *, width: int, references: int, known: int) -> None:
    """Refuse rows of whole numbers unless the first ones of each point at something that is known."""
    for row in rows:
        if len(row) != width or min(row) < 0 or any(number >= known for number in row[:references]):
            raise StoreError(f"The field {name!r} has a row {row!r:.40} that does not fit the others.")


_KINDS: dict[str, type[Result]] = {name_kind(kind): kind for kind in get_args(Result)}

# Fields of a tally that are split off, how to write and how to read them.
_ROLES: dict[str, tuple[Callable[[Any], Any], Callable[[object], Any]]] = {
    "noisy": (list, lambda data: from_plain(tuple[str, ...], data, "noisy")),
    "profile": (to_json_profile, read_profile),
    "baseline_profile": (to_json_profile, read_profile),
    "text": (str, lambda data: from_plain(str, data, "text")),
}
# Those that are read in any case.
LIGHT_ROLES = ("noisy",)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OutcomeBody:
    """What an outcome says besides its order, its moments and its environment."""

    result: dict[str, Any]
    """By its kind: plain values without the large parts."""
    cores: tuple[int, ...]
    unchecked: str | None
    node: Node | None = None


def split_outcome(outcome: Outcome) -> tuple[dict[str, Any], dict[str, Any]]:
    """What an outcome says besides its order, its moments and its environment; and its large parts by their roles."""
    result, parts = outcome.result, {}
    if isinstance(result, Tally):
        found = {role: getattr(result, role) for role in _ROLES}
        parts = {role: _ROLES[role][0](value) for role, value in found.items() if value is not None}
        result = dataclasses.replace(result, noisy=None, profile=None, baseline_profile=None, text=None)
    plain = {name: value for name, value in to_plain(result).items() if name not in _ROLES}
    body = OutcomeBody(
        result={name_kind(type(result)): plain}, cores=outcome.cores, unchecked=outcome.unchecked, node=outcome.node
    )
    return to_plain(body), parts


def read_part(role: str, part: object) -> Any:
    if role not in _ROLES:
        raise StoreError(f"The field 'parts' has {role!r:.40}; expected one of {', '.join(_ROLES)}.")
    return _ROLES[role][1](part)


def join_result(tagged: Mapping[str, Any], parts: Mapping[str, Any]) -> Result:
    """The result, with those parts that are at hand: what `read_part` gave, by role."""
    if len(tagged) != 1 or not _KINDS.keys() & tagged.keys():
        raise StoreError(f"The field 'result' has {', '.join(tagged)!r:.40}; expected one of {', '.join(_KINDS)}.")
    ((kind, plain),) = tagged.items()
    given = from_plain(dict, plain, f"result.{kind}")
    for role in _ROLES:
        if role in given:
            raise StoreError(f"The field 'result.{kind}.{role}' is not where it belongs.")
    result = from_plain(_KINDS[kind], plain, f"result.{kind}")
    if not parts:
        return result
    if not isinstance(result, Tally):
        raise StoreError(f"The field 'parts' has {', '.join(parts)!r:.40}, which a result of this kind has not.")
    return dataclasses.replace(result, **parts)


def join_outcome(
    body: OutcomeBody,
    order: Order,
    parts: Mapping[str, Any],
    moments: tuple[float, float],
    environment: Environment | None,
) -> Outcome:
    # The end may be before the beginning: clocks are set back.
    for name, moment in zip(("began", "ended"), moments, strict=True):
        if from_plain(float, moment, name) < 0:
            raise StoreError(f"The field {name!r} is {moment!r}; expected at least 0.")
    return Outcome(
        order=order,
        result=join_result(body.result, parts),
        began=float(moments[0]),
        ended=float(moments[1]),
        environment=environment,
        cores=body.cores,
        unchecked=body.unchecked,
        node=body.node,
    )


def check_order(plan: Plan, target: Target, metric: Metric, number: int) -> None:
    """Refuse what no order of the plan has."""
    sampling = plan.sampling
    if target not in plan.targets or metric not in sampling.metrics or not 0 <= number < sampling.repeat:
        raise StoreError(f"An outcome belongs to no order: {metric.value} of round {number} in {target.name!r:.40}.")


def check_plan(plan: Plan) -> None:
    """Refuse a plan in which two cases or two targets could not be told apart."""
    seen: set[tuple[str, str]] = set()
    for case in plan.cases:
        if (case.suite, case.key) in seen:
            raise UsageError(f"Two cases of {case.suite!r} have the same name: {case.key}. Rename one of them.")
        seen.add((case.suite, case.key))
    if len(set(plan.targets)) < len(plan.targets):
        raise UsageError("The same target is there twice. Name each once.")


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
        **begin_document("run"),
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class _OutcomeEntry(OutcomeBody):
    """An outcome of a document; numbers are places in the document's lists."""

    case: int
    target: int
    metric: Metric
    round: int
    began: float
    ended: float
    environment: int | None
    parts: dict[str, Any]
    """Hashes by role."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Document:
    """All of a document besides its schema."""

    run: RunInfo
    targets: tuple[Target, ...]
    sampling: Sampling
    cases: tuple[dict[str, Any], ...]
    environments: tuple[Environment, ...]
    outcomes: tuple[_OutcomeEntry, ...]
    activities: tuple[Activity, ...]
    parts: dict[str, Any]


def import_run(data: object) -> Run:
    """The run that `export_run` gave this for; StoreError names the field that is not as it should be."""
    document = from_plain(_Document, check_schema(data, "run"), "")
    plan = Plan(tuple(map(_read_case, document.cases, itertools.count())), document.targets, document.sampling)
    try:
        check_plan(plan)
    except UsageError as error:
        raise StoreError(f"The fields 'cases' and 'targets' are no plan: {error}") from error
    find_part = functools.cache(functools.partial(_find_part, document.parts))
    outcomes = []
    for number, entry in enumerate(document.outcomes):
        try:
            outcomes.append(_read_entry(entry, document, plan, find_part))
        except StoreError as error:
            raise StoreError(f"In outcomes[{number}]: {error}") from error
    if len({outcome.order for outcome in outcomes}) < len(outcomes):
        raise StoreError("The field 'outcomes' has two of the same order.")
    return Run(document.run, plan, tuple(outcomes), document.activities)


def _read_case(data: Mapping[str, Any], number: int) -> Case:
    name = f"cases[{number}]"
    derived = {field: take(data, field, str) for field in _DERIVED}
    case = from_plain(Case, {field: value for field, value in data.items() if field not in _DERIVED}, name)
    if derived != {"key": case.key, "content_hash": content_hash(case)}:
        raise StoreError(f"The field {name!r} has been changed: its key and its content_hash do not fit.")
    return case


def _read_entry(
    entry: _OutcomeEntry, document: _Document, plan: Plan, find_part: Callable[[str, str], object]
) -> Outcome:
    case, target = _pick("case", entry.case, plan.cases), _pick("target", entry.target, plan.targets)
    check_order(plan, target, entry.metric, entry.round)
    where = entry.environment
    return join_outcome(
        entry,
        Order(case, target, entry.metric, entry.round),
        {role: find_part(role, take(entry.parts, role, str)) for role in entry.parts},
        (entry.began, entry.ended),
        None if where is None else _pick("environment", where, document.environments),
    )


def _find_part(parts: Mapping[str, Any], role: str, name: str) -> Any:
    if name not in parts:
        raise StoreError(f"The field 'parts' has no {name:.80}.")
    if hash_text(dump(parts[name])) != name:
        raise StoreError(f"The field 'parts' has been changed: {name!r:.80} is not the hash of its content.")
    return read_part(role, parts[name])


def _pick(name: str, number: int, values: Sequence[_T]) -> _T:
    if not 0 <= number < len(values):
        raise StoreError(f"The field {name!r} is {number}; there are {len(values)}.")
    return values[number]
