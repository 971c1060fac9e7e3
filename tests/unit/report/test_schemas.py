from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Iterator
from typing import Any

import fastjsonschema
import pytest

from tests.checked_json import check_document, close
from tests.outputs import FOLDER
from torchmark.cli.program import program
from torchmark.cli.startup import COMMANDS
from torchmark.model.schemas import VERSIONS, begin_document
from torchmark.report.schemas import DRAFT, NULL, SCHEMAS, TEXT, describe, fields


@functools.cache
def stored_documents() -> tuple[tuple[str, str], ...]:
    """What commands wrote with --json in the scenes of the stored outputs, with the file that has it."""
    found = []
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix in (".txt", ".json"):
            text = path.read_text()
            for start in re.finditer(r'^(?=\{\n  "schema": "torchmark\.)', text, re.MULTILINE):
                _, end = json.JSONDecoder().raw_decode(text, start.start())
                found.append((str(path.relative_to(FOLDER)), text[start.start() : end]))
    return tuple(found)


@pytest.mark.parametrize("number", range(len(stored_documents())), ids=lambda i: f"{stored_documents()[i][0]}-{i}")
def test_what_json_writes_has_the_fields_of_the_schema_and_no_others(number: int) -> None:
    check_document(stored_documents()[number][1])


def test_every_kind_of_document_is_among_the_stored_outputs() -> None:
    kinds = {json.loads(text)["schema"].removeprefix("torchmark.") for _, text in stored_documents()}
    assert kinds == {*SCHEMAS} - {"run"}, "`run` writes what `show` does"


def test_every_command_with_json_has_a_schema() -> None:
    group: Any = program
    commands = {name: group.get_command(None, name) for name in COMMANDS}
    with_json = {
        name
        for name, command in commands.items()
        for one in (command, *getattr(command, "commands", {}).values())
        if any("--json" in option.opts for option in one.params)
    }
    assert with_json == {*SCHEMAS}


def walk(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from walk(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from walk(value)


@pytest.mark.parametrize("command", SCHEMAS)
def test_a_schema_is_one_and_names_its_draft(command: str) -> None:
    schema = SCHEMAS[command]
    assert schema["$schema"] == DRAFT
    fastjsonschema.compile(schema)
    json.dumps(schema, allow_nan=False)


@pytest.mark.parametrize("command", sorted({*SCHEMAS} - {"overrides"}))
def test_another_version_and_a_missing_field_are_refused(command: str) -> None:
    text = next(text for _, text in stored_documents() if json.loads(text)["schema"] == SCHEMAS[command]["title"])
    check, data = fastjsonschema.compile(SCHEMAS[command]), json.loads(text)
    check({**data, "added_later": 1})
    with pytest.raises(fastjsonschema.JsonSchemaException):
        check({**data, "schema_version": 2})
    for name in data:
        less = copy.copy(data)
        del less[name]
        with pytest.raises(fastjsonschema.JsonSchemaException):
            check(less)


def test_all_versions_are_in_one_list() -> None:
    titles = {one["title"] for schema in SCHEMAS.values() for one in walk(schema) if isinstance(one.get("title"), str)}
    assert titles <= {begin_document(kind)["schema"] for kind in VERSIONS}


def test_types_are_described_as_json_has_them() -> None:
    assert describe(str | None) == {"anyOf": [TEXT, NULL]}
    assert describe(tuple[int, str])["minItems"] == 2
    closed = fastjsonschema.compile(close(fields(a=TEXT)))
    closed({"a": "x"})
    with pytest.raises(fastjsonschema.JsonSchemaException):
        closed({"a": "x", "b": "y"})
