"""Plain values of stored files: which rules they have to keep to, JSON texts of them, and the hash of a definition."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from torchmark.errors import StoreError
from torchmark.model import plain
from torchmark.model.costs import INSTRUCTIONS, Tally
from torchmark.model.gate import Dependencies, LedgerEntry
from torchmark.model.outcome import Activity, FirstCall
from torchmark.model.plain import FieldRule, PlainError, Rules, at_least, every, to_plain
from torchmark.model.plan import Case, Sampling
from torchmark.model.run import RunInfo
from torchmark.model.schemas import VERSIONS
from torchmark.model.task import Times

_T = TypeVar("_T")

# More than anybody repeats; a plan of a stranger's file has to end.
MOST_ROUNDS = 100_000
# All numbers with a fraction are seconds, or shares of something. Calendars and sums of squares take this many, about
# nineteen centuries.
MOST_SECONDS = 6e10
_ID = re.compile("[0-9a-f]{32}")


def _are_sizes(sampling: Sampling) -> bool:
    sizes = [size for size in (sampling.number, sampling.blocks) if size is not None]
    return len(sizes) != 1 and all(size > 0 for size in sizes)


def _add_up(entry: LedgerEntry) -> bool:
    return sum(cost for _, cost in entry.functions) + entry.rest == entry.total


# What types do not say of stored values, as far as something would break on it.
RULES: Rules = {
    float: (FieldRule("", f"at most {MOST_SECONDS:.0e} seconds", lambda seconds: abs(seconds) <= MOST_SECONDS),),
    # A coarse clock may give zero.
    Times: (*at_least(1, "number_per_run"), *at_least(0, "raw_times", "overhead_s")),
    FirstCall: at_least(0, "first_s", "steady_s", "graphs", "graph_breaks", "abandoned", "cache_hits", "cache_misses"),
    Tally: (
        *at_least(1, "number"),
        FieldRule("events", "each event once", lambda tally: len(dict(tally.events)) == len(tally.events)),
        FieldRule("events", f"a number of {INSTRUCTIONS}", lambda tally: INSTRUCTIONS in dict(tally.events)),
        FieldRule("events", "at least 0", lambda tally: all(number >= 0 for _, number in tally.events)),
        FieldRule("totals", "one for each of the seeds", lambda tally: len(tally.totals) == len(tally.seeds) > 0),
        *at_least(0, "totals", "allocations", "tensor_allocations", "baseline"),
    ),
    Sampling: (
        *every(f"0 to {MOST_ROUNDS}", lambda repeat: bool(0 <= repeat <= MOST_ROUNDS), "repeat"),
        FieldRule("number", "at least 1, as blocks", _are_sizes),
        *at_least(0, "min_run_time_s", "timeout_s"),
    ),
    RunInfo: (
        *every("32 hexadecimal digits", lambda text: _ID.fullmatch(text) is not None, "id"),
        *at_least(0, "created", "finished"),
    ),
    # An end before the beginning is possible: clocks are set back.
    Activity: at_least(0, "began", "ended"),
    Dependencies: at_least(1, "number"),
    # A file that was merged by hand may be neither of the two.
    LedgerEntry: (
        *at_least(0, "total", "totals", "allocations", "tensor_allocations", "rest"),
        FieldRule("functions", "no negative number", lambda entry: all(cost >= 0 for _, cost in entry.functions)),
        FieldRule(
            "totals",
            "one for each layout, and 'total' among them",
            lambda entry: entry.total in entry.totals and len(entry.totals) == len(entry.depends_on.layouts),
        ),
        FieldRule("functions", "costs that add up to 'total' with 'rest'", _add_up),
    ),
}


def from_plain(kind: type[_T], data: object, name: str, rules: Rules = RULES) -> _T:
    """A value of that class; `name` is what errors call it by."""
    try:
        return plain.from_plain(kind, data, name, rules)
    except PlainError as error:
        raise StoreError(str(error)) from None


def check_schema(data: object, kind: str) -> dict[str, Any]:
    """The fields of a document besides its schema; refuse another kind, and what a newer program wrote."""
    schema, version = f"torchmark.{kind}", VERSIONS[kind]
    if not isinstance(data, Mapping) or data.get("schema") != schema:
        found = data.get("schema") if isinstance(data, Mapping) else type(data).__name__
        raise StoreError(f"This is no {schema}: its schema is {found!r}.")
    if data.get("schema_version") != version:
        raise StoreError(
            f"This {schema} has schema version {data.get('schema_version')!r}; this torchmark reads version {version}. "
            "Read it with the torchmark that wrote it, or a newer one."
        )
    return {name: value for name, value in data.items() if name not in ("schema", "schema_version")}


def pick_fields(kind: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a file that a class has; what else is there was derived from them."""
    return {field.name: data[field.name] for field in dataclasses.fields(kind) if field.name in data}


def take(data: Mapping[str, Any], name: str, kind: type[_T]) -> _T:
    if name not in data:
        raise StoreError(f"The field {name!r} is missing.")
    return from_plain(kind, data[name], name)


def dump(data: object, *, canonical: bool = False) -> str:
    """Plain values as JSON in ASCII; `canonical` gives the same text whatever order fields are in."""
    try:
        return json.dumps(data, sort_keys=canonical, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise StoreError(f"A number that is not finite cannot be kept: {error}.") from error


def parse(text: object, name: str) -> Any:
    if not isinstance(text, (str, bytes)):
        raise StoreError(f"The field {name!r} is {text!r:.40}; expected JSON.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"The field {name!r} is no JSON: {error}.") from error


# What a case is called by, in which file it is and what else a person has given it: none of that is measured.
_NOT_MEASURED = ("tags", "suite")


def content_hash(case: Case) -> str:
    """SHA-256 of all that decides what is measured.

    Fields with their defaults are no part of it, so that it stays the same when another is added.
    """
    return hash_text(write_definition(case))


def write_definition(case: Case) -> str:
    plain = to_plain(dataclasses.replace(case, tags=(), suite=""), sparse=True)
    return dump({name: value for name, value in plain.items() if name not in _NOT_MEASURED}, canonical=True)


def read_case(definition: Mapping[str, Any], suite: str, tags: tuple[str, ...]) -> Case:
    for name in _NOT_MEASURED:
        if name in definition:
            raise StoreError(f"The field 'case.{name}' is no part of a definition.")
    return dataclasses.replace(from_plain(Case, definition, "case"), suite=suite, tags=tags)


def hash_text(text: str) -> str:
    """SHA-256 of a text in ASCII, in hexadecimal digits."""
    return hashlib.sha256(text.encode("ascii")).hexdigest()
