"""Frozen values of the model as plain JSON, and back: by the types that their classes declare.

Whatever comes back is checked; an error names the field. A field that has a default may be missing: older files do not
have it. One that is not known is refused, because it may change what the others mean.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import types
from collections.abc import Iterable
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from torchmark.errors import StoreError
from torchmark.model.compiling import FirstCall
from torchmark.model.costs import INSTRUCTIONS, Tally
from torchmark.model.environment import Environment
from torchmark.model.outcome import Activity
from torchmark.model.plan import Sampling
from torchmark.model.run import RunInfo
from torchmark.model.times import Times
from torchmark.store.fields import check_kind, plain_environment, read_environment

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
        return plain_environment(value)
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
        return tuple(_read(kinds[0], item, f"{name}[{i}]") for i, item in enumerate(items))
    if len(items) != len(kinds):
        raise StoreError(f"The field {name!r} has {len(items)} values; expected {len(kinds)}.")
    return tuple(_read(kind, item, f"{name}[{i}]") for i, (kind, item) in enumerate(zip(kinds, items, strict=True)))


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
