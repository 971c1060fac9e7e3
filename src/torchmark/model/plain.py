"""Values of dataclasses as plain ones, which JSON can hold, and back, by the types that their fields declare.

All that comes in is checked: types, bounds, fields that are unknown or missing, and the rules of the reader.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

_T = TypeVar("_T")

# What SQLite, compiled programs and floats can hold. No count comes near it: a processor takes decades to get there.
MOST = 2**63 - 1
_MOST_OF = {int: MOST, float: sys.float_info.max}
# In an error a value is shown up to here.
_SHOWN = 40

# Metadata of a field that holds pairs of a name and a value, and is a mapping in JSON.
AS_MAPPING = {"is_mapping": True}

_EXPECTED = {
    str: "a text",
    int: "a whole number of at most 63 bits",
    float: "a finite number",
    bool: "true or false",
    dict: "a mapping",
    list: "a list",
}
_OR_NONE = " | None"


class PlainError(Exception):
    """A plain value is not what it should be. `place` grows on the way out, from the value to the whole."""

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.place = place

    def __str__(self) -> str:
        return f"The field {self.place.lstrip('.')!r} {self.problem}."


class FieldRule(NamedTuple):
    """What types do not say of a value: `holds` is asked of the whole value, `field` is what an error names."""

    field: str
    expected: str
    holds: Callable[[Any], bool]


Rules = Mapping[Any, Sequence[FieldRule]]
"""The rules of each type."""


def every(expected: str, holds: Callable[[Any], bool], *fields: str) -> tuple[FieldRule, ...]:
    """A rule for each number or text in these fields, also in tuples of tuples; None is left out."""
    return tuple(FieldRule(field, expected, functools.partial(_all_hold, holds, field)) for field in fields)


def at_least(least: int, *fields: str) -> tuple[FieldRule, ...]:
    """A rule for each number in these fields.

    >>> [rule.expected for rule in at_least(0, "total", "rest")]
    ['at least 0', 'at least 0']
    """
    return tuple(
        FieldRule(field, f"at least {least}", functools.partial(_is_at_least, least, field)) for field in fields
    )


def _is_at_least(least: int, field: str, value: object) -> bool:
    return _find_least(getattr(value, field)) >= least


def _find_least(value: Any) -> float:
    """The least of numbers that may be in tuples; None is not one. Samples come by the thousand."""
    if not isinstance(value, (tuple, list)):
        return math.inf if value is None else float(value)
    return min(map(_find_least, value) if value and isinstance(value[0], (tuple, list)) else value, default=math.inf)


def _all_hold(holds: Callable[[Any], bool], field: str, value: object) -> bool:
    return all(map(holds, _flatten(getattr(value, field))))


def _flatten(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _flatten(item)
    elif value is not None:
        yield value


def name_kind(kind: type) -> str:
    """The name that tells a class from the others of a union in JSON.

    >>> name_kind(FieldRule)
    'field_rule'
    """
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in kind.__name__).lstrip("_")


class Tagged:
    """A class whose values say in JSON which class they are of."""

    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        cls.kind = name_kind(cls)


def to_plain(value: object, *, sparse: bool = False) -> Any:
    """A value as plain ones; `sparse` leaves out fields that have their defaults. What is plain stays as it is."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (tuple, list)):
        return [to_plain(item, sparse=sparse) for item in value]
    if isinstance(value, enum.Enum):
        return value.name.lower()
    if isinstance(value, frozenset):
        return sorted(map(to_plain, value))
    plain: dict[str, Any] = {"kind": value.kind} if isinstance(value, Tagged) else {}
    if not dataclasses.is_dataclass(value):
        return value
    for field in dataclasses.fields(value):
        content = getattr(value, field.name)
        if not sparse or content != field.default:
            plain[field.name] = dict(content) if field.metadata == AS_MAPPING else to_plain(content, sparse=sparse)
    return plain


def from_plain(kind: type[_T], data: object, name: str, rules: Rules) -> _T:
    """The value that `to_plain` gave this for; PlainError calls the data by this name."""
    try:
        value: _T = _read(kind, data, rules)
    except PlainError as error:
        error.place = f"{name}{error.place}"
        raise
    return value


def _read(kind: Any, data: object, rules: Rules) -> Any:
    if kind in _EXPECTED:
        value = _read_simple(kind, data)
    elif dataclasses.is_dataclass(kind):
        value = _read_fields(kind, data, rules)
    elif isinstance(kind, enum.EnumMeta):
        value = _read_member(kind, data)
    elif kind.__origin__ in (tuple, list, frozenset):
        value = kind.__origin__(_read_items(kind.__args__, data, rules))
    else:
        value = _read_simple(kind.__origin__, data)
    for rule in rules.get(kind, ()):
        if not rule.holds(value):
            place = f".{rule.field}" if rule.field else ""
            raise PlainError(f"is not what it should be; expected {rule.expected}", place)
    return value


def _read_simple(kind: Any, value: Any) -> Any:
    most = _MOST_OF.get(kind)
    # In Python a bool is a number; in a file that is a mistake.
    fits = type(value) is kind or (isinstance(value, kind) and not isinstance(value, bool))
    if fits and (most is None or -most <= value <= most):
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) <= sys.float_info.max:
        return float(value)
    raise PlainError(f"is {_format(value)}; expected {_EXPECTED[kind]}")


def _format(value: object) -> str:
    """The beginning of a value. Python refuses to write numbers of thousands of digits."""
    return "a huge number" if isinstance(value, int) and abs(value) > MOST else repr(value)[:_SHOWN]


def _read_member(kind: Any, name: object) -> Any:
    members = {member.name.lower(): member for member in kind}
    if not isinstance(name, str) or name not in members:
        raise PlainError(f"is {_format(name)}; expected one of {', '.join(members)}")
    return members[name]


def _read_items(kinds: tuple[Any, ...], data: object, rules: Rules) -> list[Any]:
    given = data if isinstance(data, tuple) else _read_simple(list, data)
    if _are_numbers(kinds, given):
        # What is wrong with one of them is found below, with its place.
        with contextlib.suppress(PlainError):
            for extreme in (min(given), max(given)):
                _read(kinds[0], extreme, rules)
            return list(given)
    # A list, a set, or a tuple of any length.
    if len(kinds) == 1 or kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(given)
    if len(given) != len(kinds):
        raise PlainError(f"has {len(given)} values; expected {len(kinds)}")
    items: list[Any] = []
    try:
        for kind, item in zip(kinds, given):
            items.append(_read(kind, item, rules))
    except PlainError as error:
        error.place = f"[{len(items)}]{error.place}"
        raise
    return items


def _are_numbers(kinds: tuple[Any, ...], given: Sequence[Any]) -> bool:
    """Whether these are any number of finite numbers, which come by the thousand: looking at the extremes is enough.

    The rule of a type of numbers is a bound on them. A sum shows what is not a number; comparing does not.
    """
    kind = kinds[0]
    is_alike = kinds[1:] in ((), (Ellipsis,)) and kind in (int, float) and set(map(type, given)) == {kind}
    return is_alike and bool(abs(sum(given)) <= sys.float_info.max)


def _read_fields(kind: Any, data: object, rules: Rules) -> Any:
    if isinstance(data, kind):
        # A reader may have made parts of what it reads.
        return data
    given = _read_simple(dict, data)
    declared = list_fields(kind)
    for name in given:
        if name not in declared:
            raise PlainError("is not known here", f".{str(name)[:_SHOWN]}")
    values = {}
    for name, field in declared.items():
        if name not in given:
            if field.is_required:
                raise PlainError("is missing", f".{name}")
            continue
        try:
            values[name] = _read_field(field, given[name], rules)
        except PlainError as error:
            error.place = f".{name}{error.place}"
            raise
    return kind(**values)


def _read_field(field: _Field, data: object, rules: Rules) -> Any:
    if data is None and field.may_be_none:
        return None
    return _read_pairs(field.kind, data, rules) if field.is_mapping else _read(field.kind, data, rules)


def _read_pairs(kind: Any, data: object, rules: Rules) -> tuple[tuple[str, Any], ...]:
    """The pairs of a mapping, whose type is that of a tuple of pairs."""
    _, item_kind = kind.__args__[0].__args__
    pairs = []
    for name, item in _read_simple(dict, data).items():
        try:
            pairs.append((_read_simple(str, name), _read(item_kind, item, rules)))
        except PlainError as error:
            error.place = f".{str(name)[:_SHOWN]}{error.place}"
            raise
    return tuple(pairs)


class _Field(NamedTuple):
    kind: Any
    may_be_none: bool
    is_required: bool
    is_mapping: bool


@functools.cache
def list_fields(kind: Any) -> dict[str, _Field]:
    """The fields of a dataclass by name, with their types.

    Python 3.9 cannot evaluate `str | None`, so that part of an annotation is read here. The names are looked up where
    the class was made: a zygote has removed our modules from the list of those that it has imported.
    """
    known = kind.__init__.__globals__
    fields = {}
    for field in dataclasses.fields(kind):
        text = str(field.type)
        may_be_none = text.endswith(_OR_NONE)
        is_required = field.default is field.default_factory is dataclasses.MISSING
        expected = eval(text[: -len(_OR_NONE)] if may_be_none else text, known)
        fields[field.name] = _Field(expected, may_be_none, is_required, field.metadata == AS_MAPPING)
    return fields


def list_all_fields(kinds: Sequence[Any]) -> None:
    """List the fields of these classes, and of those within them, ahead of their use."""
    waiting = list(kinds)
    while waiting:
        for field in list_fields(waiting.pop()).values():
            inner = getattr(field.kind, "__args__", (field.kind,))[0]
            if dataclasses.is_dataclass(inner):
                waiting.append(inner)
