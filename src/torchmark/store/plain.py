"""Values of the model as plain JSON and back, by the types that their classes declare."""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import json
import math
import types
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from torchmark.errors import StoreError
from torchmark.model.costs import INSTRUCTIONS, Tally
from torchmark.model.environment import Environment
from torchmark.model.outcome import Activity, FirstCall
from torchmark.model.plan import Case, Sampling
from torchmark.model.run import RunInfo
from torchmark.model.task import TaskSpec, Times

# What SQLite, compiled programs and floats can hold. No count comes near it: a processor takes decades to get there.
MOST = 2**63 - 1

_KINDS = {
    str: "a text",
    int: "a whole number of at most 63 bits",
    float: "a finite number",
    bool: "true or false",
    dict: "a mapping",
    list: "a list",
}


def check_schema(data: object, schema: str, version: int) -> None:
    """Refuse what is something else, or was written by a newer program."""
    if not isinstance(data, Mapping) or data.get("schema") != schema:
        found = data.get("schema") if isinstance(data, Mapping) else type(data).__name__
        raise StoreError(f"This is no {schema}: its schema is {found!r}.")
    if data.get("schema_version") != version:
        raise StoreError(
            f"This {schema} has schema version {data.get('schema_version')!r}; this torchmark reads version {version}. "
            "Read it with the torchmark that wrote it, or a newer one."
        )


def take(data: Mapping[str, Any], name: str, kind: type, *, optional: bool = False) -> Any:
    """The field of that name, if it is of that kind, or None where it is optional."""
    if name not in data:
        raise StoreError(f"The field {name!r} is missing.")
    value = data[name]
    return None if value is None and optional else check_kind(value, name, kind)


def check_kind(value: object, name: str, kind: type) -> Any:
    """A value of that kind, for the field of that name."""
    if not _is_a(value, kind):
        raise StoreError(f"The field {name!r} is {_format_value(value)}; expected {_KINDS[kind]}.")
    return float(value) if kind is float else value  # type: ignore[arg-type]


def take_times(data: Mapping[str, Any], name: str) -> list[float]:
    """A list of finite numbers."""
    values = take(data, name, list)
    for value in values:
        if not _is_a(value, float):
            raise StoreError(f"The field {name!r} contains {_format_value(value)}; expected finite numbers.")
    return [float(value) for value in values]


def take_integers(data: Mapping[str, Any], name: str) -> list[int]:
    """A list of whole numbers."""
    values: list[int] = take(data, name, list)
    for value in values:
        if not _is_a(value, int):
            raise StoreError(
                f"The field {name!r} contains {_format_value(value)}; expected whole numbers of at most 63 bits."
            )
    return values


def take_task(data: Mapping[str, Any]) -> TaskSpec:
    """The task in the field `task_spec`."""
    spec = take(data, "task_spec", dict)
    texts = {name: take(spec, name, str) for name in ("stmt", "setup", "global_setup")}
    labels = {name: take(spec, name, str, optional=True) for name in ("label", "sub_label", "description", "env")}
    return TaskSpec(**texts, **labels, num_threads=take(spec, "num_threads", int))


def to_json_environment(environment: Environment) -> dict[str, Any]:
    """An environment as plain values for JSON."""
    return {**dataclasses.asdict(environment), "variables": dict(environment.variables)}


def read_environment(data: Mapping[str, Any]) -> Environment:
    """The environment that `to_json_environment` gave this for."""
    variables = take(data, "variables", dict)
    optional = ("cpu_capability", "native_capability", "valgrind", "hash_seed")
    # What older files do not have.
    later = [name for name in ("torch_commit", "torch_build") if name in data]
    return Environment(
        **{name: take(data, name, str) for name in ("python", "python_version", "torch_version")},
        **{name: take(data, name, str, optional=True) for name in (*optional, *later)},
        debug_symbols=take(data, "debug_symbols", bool),
        variables=tuple((name, take(variables, name, str)) for name in variables),
    )


def _format_value(value: object) -> str:
    """The beginning of a value. Python refuses to write numbers of thousands of digits."""
    return "a huge number" if isinstance(value, int) and abs(value) > MOST else f"{value!r:.40}"


def _is_a(value: object, kind: type) -> bool:
    # In Python a bool is a number; in a file that is a mistake.
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    if kind is float:
        return isinstance(value, (int, float)) and _is_finite(value)
    if kind is int:
        return isinstance(value, int) and abs(value) <= MOST
    return isinstance(value, kind)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


_T = TypeVar("_T")

# More than anybody repeats; a plan of a stranger's file has to end.
MOST_ROUNDS = 100_000
# All numbers with a fraction are seconds, or shares of something. Calendars and sums of squares take this many, about
# nineteen centuries.
MOST_SECONDS = 6e10
_ID_LENGTH = 32


def dump(data: object, *, canonical: bool = False) -> str:
    """Plain values as JSON in ASCII; `canonical` gives the same text whatever order fields are in."""
    try:
        return json.dumps(data, sort_keys=canonical, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise StoreError(f"A number that is not finite cannot be kept: {error}.") from error


def parse(text: object, name: str) -> Any:
    """The plain values of a JSON text."""
    if not isinstance(text, (str, bytes)):
        raise StoreError(f"The field {name!r} is {text!r:.40}; expected JSON.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"The field {name!r} is no JSON: {error}.") from error


def to_plain(value: object, *, sparse: bool = False) -> Any:
    """Values of the model as plain ones; `sparse` leaves out fields that have their defaults."""
    if isinstance(value, Environment):
        return to_json_environment(value)
    if dataclasses.is_dataclass(value):
        kept = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {
            field.name: to_plain(content, sparse=sparse)
            for field, content in kept
            if not sparse or content != field.default
        }
    if isinstance(value, enum.Enum):
        return value.name.lower()
    if isinstance(value, (tuple, list)):
        return [to_plain(item, sparse=sparse) for item in value]
    return value


def from_plain(kind: type[_T], data: object, name: str) -> _T:
    """A value of that class; `name` is what errors call it by."""
    value: _T = _read(kind, data, name)
    return value


def _read(kind: Any, data: object, name: str) -> Any:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        # The only unions that are read like this are with None.
        (inner,) = (one for one in get_args(kind) if one is not types.NoneType)
        return None if data is None else _read(inner, data, name)
    if origin is tuple:
        return _read_tuple(get_args(kind), data, name)
    if kind is Environment:
        return read_environment(check_kind(data, name, dict))
    if dataclasses.is_dataclass(kind):
        return _read_fields(kind, data, name)
    if issubclass(kind, enum.Enum):
        by_name = {member.name.lower(): member for member in kind}
        if not isinstance(data, str) or data not in by_name:
            raise StoreError(f"The field {name!r} is {data!r:.40}; expected one of {', '.join(by_name)}.")
        return by_name[data]
    value = check_kind(data, name, kind)
    if kind is float:
        check_seconds(value, name)
    return value


def check_seconds(seconds: float, name: str) -> None:
    """Refuse what nobody can have measured."""
    _demand(abs(seconds) <= MOST_SECONDS, name, f"at most {MOST_SECONDS:.0e} seconds")


def check_moment(seconds: float, name: str) -> None:
    """Refuse what no clock shows. An end before the beginning is possible: clocks are set back."""
    check_seconds(seconds, name)
    _demand_counts((seconds,), name)


def _read_tuple(kinds: tuple[Any, ...], data: object, name: str) -> tuple[Any, ...]:
    items = check_kind(data, name, list)
    if kinds[-1] is Ellipsis:
        if _are_plain_numbers(items, kinds[0]):
            return tuple(items)
        return tuple(_read(kinds[0], item, f"{name}[{i}]") for i, item in enumerate(items))
    if len(items) != len(kinds):
        raise StoreError(f"The field {name!r} has {len(items)} values; expected {len(kinds)}.")
    return tuple(_read(kind, item, f"{name}[{i}]") for i, (kind, item) in enumerate(zip(kinds, items, strict=True)))


def _are_plain_numbers(items: list[Any], kind: Any) -> bool:
    """Whether all are numbers of this kind and within bounds. Asked of all at once, as samples come by the thousand."""
    if kind not in (int, float) or set(map(type, items)) != {kind}:
        return False
    most = MOST if kind is int else MOST_SECONDS
    # A sum shows what is no number; comparing does not.
    return -most <= min(items) and max(items) <= most and math.isfinite(sum(items))


def _read_fields(kind: Any, data: object, name: str) -> Any:
    found = check_kind(data, name, dict)
    kinds = _list_fields(kind)
    for unknown in set(found) - set(kinds):
        raise StoreError(f"The field {f'{name}.{unknown}':.80} is not known here.")
    values = {}
    for field, (field_kind, optional) in kinds.items():
        if field in found:
            values[field] = _read(field_kind, found[field], f"{name}.{field}")
        elif not optional:
            raise StoreError(f"The field {f'{name}.{field}'!r} is missing.")
    value = kind(**values)
    _check(value, name)
    return value


@functools.cache
def _list_fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    """The type of each field of a class, and whether it has a default."""
    hints = get_type_hints(kind)
    return {
        field.name: (hints[field.name], field.default is not dataclasses.MISSING) for field in dataclasses.fields(kind)
    }


def _check(value: object, name: str) -> None:
    """What types do not tell, as far as something would break on it."""
    if isinstance(value, Times):
        _demand(value.number_per_run > 0, f"{name}.number_per_run", "at least 1")
        # A coarse clock may give zero.
        _demand_counts(value.raw_times, f"{name}.raw_times")
        _demand_counts((value.overhead_s or 0.0,), f"{name}.overhead_s")
    elif isinstance(value, FirstCall):
        for field in ("first_s", "steady_s", "graphs", "graph_breaks", "abandoned", "cache_hits", "cache_misses"):
            _demand_counts((getattr(value, field),), f"{name}.{field}")
    elif isinstance(value, Tally):
        _check_tally(value, name)
    elif isinstance(value, Sampling):
        _demand(0 <= value.repeat <= MOST_ROUNDS, f"{name}.repeat", f"at most {MOST_ROUNDS}")
        sizes = [size for size in (value.number, value.blocks) if size is not None]
        _demand(len(sizes) != 1 and all(size > 0 for size in sizes), f"{name}.number", "at least 1, as blocks")
        for field in ("min_run_time_s", "timeout_s"):
            _demand_counts((getattr(value, field),), f"{name}.{field}")
    elif isinstance(value, RunInfo):
        proper = len(value.id) == _ID_LENGTH and set(value.id) <= set("0123456789abcdef")
        _demand(proper, f"{name}.id", f"{_ID_LENGTH} hexadecimal digits")
        _demand_counts((value.created, value.finished or 0.0), f"{name}.created")
    elif isinstance(value, Activity):
        _demand_counts((value.began, value.ended), f"{name}.began")


def _check_tally(value: Tally, name: str) -> None:
    _demand(value.number > 0, f"{name}.number", "at least 1")
    events = dict(value.events)
    _demand(len(events) == len(value.events), f"{name}.events", "each event once")
    _demand(INSTRUCTIONS in events, f"{name}.events", f"a number of {INSTRUCTIONS}")
    _demand(len(value.totals) == len(value.seeds) > 0, f"{name}.totals", "one for each of the seeds")
    _demand_counts(value.totals, f"{name}.totals")
    _demand_counts(events.values(), f"{name}.events")
    for field in ("allocations", "tensor_allocations", "baseline"):
        _demand_counts((getattr(value, field) or 0,), f"{name}.{field}")


def _demand_counts(values: Iterable[float], name: str) -> None:
    _demand(all(value >= 0 for value in values), name, "no negative number")


def _demand(condition: bool, name: str, expected: str) -> None:
    if not condition:
        raise StoreError(f"The field {name!r} is not what it should be; expected {expected}.")


# What a case is called by, in which file it is and what else a person has given it: none of that is measured.
_NOT_MEASURED = ("tags", "suite")


def content_hash(case: Case) -> str:
    """SHA-256 of all that decides what is measured.

    Fields with their defaults are no part of it, so that it stays the same when another is added.
    """
    return hash_text(write_definition(case))


def write_definition(case: Case) -> str:
    """The text that the hash is of."""
    plain = to_plain(dataclasses.replace(case, tags=(), suite=""), sparse=True)
    return dump({name: value for name, value in plain.items() if name not in _NOT_MEASURED}, canonical=True)


def read_case(definition: Mapping[str, Any], suite: str, tags: tuple[str, ...]) -> Case:
    """The case of a definition."""
    for name in _NOT_MEASURED:
        if name in definition:
            raise StoreError(f"The field 'case.{name}' is no part of a definition.")
    return dataclasses.replace(from_plain(Case, definition, "case"), suite=suite, tags=tags)


def hash_text(text: str) -> str:
    """SHA-256 of a text in ASCII, in hexadecimal digits."""
    return hashlib.sha256(text.encode("ascii")).hexdigest()
