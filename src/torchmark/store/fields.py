"""Reading stored values: each field is there and of its kind, or the error names it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from torchmark.errors import StoreError
from torchmark.model.environment import Environment
from torchmark.model.task import TaskSpec

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
        raise StoreError(f"The field {name!r} is {_show(value)}; expected {_KINDS[kind]}.")
    return float(value) if kind is float else value  # type: ignore[arg-type]


def take_times(data: Mapping[str, Any], name: str) -> list[float]:
    """A list of finite numbers."""
    values = take(data, name, list)
    for value in values:
        if not _is_a(value, float):
            raise StoreError(f"The field {name!r} contains {_show(value)}; expected finite numbers.")
    return [float(value) for value in values]


def take_integers(data: Mapping[str, Any], name: str) -> list[int]:
    """A list of whole numbers."""
    values: list[int] = take(data, name, list)
    for value in values:
        if not _is_a(value, int):
            raise StoreError(f"The field {name!r} contains {_show(value)}; expected whole numbers of at most 63 bits.")
    return values


def take_task(data: Mapping[str, Any]) -> TaskSpec:
    """The task in the field `task_spec`."""
    spec = take(data, "task_spec", dict)
    texts = {name: take(spec, name, str) for name in ("stmt", "setup", "global_setup")}
    labels = {name: take(spec, name, str, optional=True) for name in ("label", "sub_label", "description", "env")}
    return TaskSpec(**texts, **labels, num_threads=take(spec, "num_threads", int))


def plain_environment(environment: Environment) -> dict[str, Any]:
    """An environment as plain values for JSON."""
    return {**dataclasses.asdict(environment), "variables": dict(environment.variables)}


def read_environment(data: Mapping[str, Any]) -> Environment:
    """The environment that `plain_environment` gave this for."""
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


def _show(value: object) -> str:
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
