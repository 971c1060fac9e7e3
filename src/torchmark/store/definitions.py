"""What decides what a case measures, and what has the same definition has the same hash."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

from torchmark.errors import StoreError
from torchmark.model.case import Case
from torchmark.store.plain import dump, from_plain, to_plain

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
