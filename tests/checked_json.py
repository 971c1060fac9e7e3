"""JSON held to a schema."""

from __future__ import annotations

import json
from typing import Any

import fastjsonschema


def read_checked(text: str, schema: dict[str, Any]) -> Any:
    """The values in a text; an exception if the schema does not admit them."""
    data = json.loads(text)
    fastjsonschema.compile(schema)(data)
    return data
