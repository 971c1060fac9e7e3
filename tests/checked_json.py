"""JSON held to a schema."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import fastjsonschema

from torchmark.report.schemas import SCHEMAS


def read_checked(text: str, schema: dict[str, Any]) -> Any:
    """The values in a text; an exception if the schema does not admit them."""
    data = json.loads(text)
    fastjsonschema.compile(schema)(data)
    return data


def close(schema: Any) -> Any:
    """The same schema, but no object may have fields that it does not name."""
    if isinstance(schema, list):
        return [close(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(schema.get("properties"), dict) and "required" in schema:
        properties = {name: close(one) for name, one in schema["properties"].items()}
        return {**schema, "properties": properties, "additionalProperties": False}
    return {name: close(one) for name, one in schema.items()}


@functools.cache
def _compile(command: str) -> Callable[[Any], Any]:
    check: Callable[[Any], Any] = fastjsonschema.compile(close(SCHEMAS[command]))
    return check


def check_document(text: str) -> str:
    """Hold what a command wrote with --json to its schema, and give the document's kind."""
    data = json.loads(text, parse_constant=_refuse)
    kind = str(data["schema"]).removeprefix("torchmark.")
    _compile(kind)(data)
    return kind


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")
