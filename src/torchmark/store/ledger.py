"""The ledger of accepted counts, one JSON file for each case; and the record of the last self-test."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import re
from pathlib import Path

from torchmark.errors import StoreError
from torchmark.files import open_plain, write_whole
from torchmark.model.gate import LedgerEntry, SelfTest
from torchmark.model.plain import to_plain
from torchmark.model.plan import Case
from torchmark.model.schemas import begin_document
from torchmark.store.plain import check_schema, from_plain, parse

# Hundreds of times what an entry takes.
MOST_BYTES = 4_000_000
# File systems allow names of 255 bytes; people read the first few words.
_READABLE = 80


def find_path(folder: Path, case: Case) -> Path:
    """Where the entry of a case is: under a name that can be read, and that no other case has.

    >>> from torchmark.model.plan import AutogradMode, AutoLabels, RuntimeMode, TimerArgs
    >>> from torchmark.model.task import Language
    >>> labels = AutoLabels(RuntimeMode.EAGER, AutogradMode.FORWARD, Language.CPP)
    >>> find_path(Path("ledger"), Case(("../nn", "Linear"), labels, TimerArgs("f();"), suite="standard")).name
    'nn-Linear-Eager-Forward-C-fb65bae38f.json'
    """
    digits = hashlib.sha256(json.dumps([case.suite, case.key]).encode("ascii")).hexdigest()[:10]
    words = " ".join((*case.label, *case.autolabels.as_dict.values()))
    readable = re.sub(r"[^0-9A-Za-z_]+", "-", words).strip("-")[:_READABLE].strip("-")
    return folder / f"{f'{readable}-' if readable else ''}{digits}.json"


def read_entry(folder: Path, case: Case) -> LedgerEntry | None:
    path = find_path(folder, case)
    try:
        with open_plain(path) as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"Cannot read {path}: {error.strerror}.") from error
    try:
        if len(content) > MOST_BYTES:
            raise StoreError(f"It has more than {MOST_BYTES} bytes, and is no entry of a ledger.")
        entry = parse_entry(content)
        if (entry.suite, entry.key) != (case.suite, case.key):
            raise StoreError(f"It is of another case: {entry.key:.200} of {entry.suite:.80}.")
    except StoreError as error:
        raise StoreError(f"{path}: {error}") from error
    return entry


def write_entry(folder: Path, case: Case, entry: LedgerEntry) -> Path:
    """Put an entry in place of what was there; the folder is made where there is none."""
    path = find_path(folder, case)
    return _write(path, dump_entry(entry), f"Cannot write {path}")


def _write(path: Path, text: str, failing: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode("ascii"))
    except OSError as error:
        raise StoreError(f"{failing}: {error.strerror}.") from error
    return path


def dump_entry(entry: LedgerEntry) -> str:
    """An entry as text that is the same for the same entry, a fact a line, so that changes can be read in a diff."""
    return json.dumps({**begin_document("ledger"), **to_plain(entry)}, indent=1, sort_keys=True) + "\n"


def parse_entry(content: bytes) -> LedgerEntry:
    """The entry of a text; StoreError names the field that is not as it should be."""
    entry = from_plain(LedgerEntry, check_schema(parse(content, "entry"), "ledger"), "entry")
    return dataclasses.replace(entry, functions=tuple(sorted(entry.functions)))


FILE = "selftest.json"


def write_selftest(folder: Path, test: SelfTest) -> Path:
    text = json.dumps(to_plain(test), indent=2, sort_keys=True) + "\n"
    return _write(folder / FILE, text, f"The result of the self-test cannot be kept in {folder}")


def read_selftest(folder: Path, cpu_model: str | None) -> SelfTest | None:
    """What is known of machines with this processor."""
    with contextlib.suppress(OSError, ValueError, RecursionError, StoreError):
        test = from_plain(SelfTest, json.loads((folder / FILE).read_text()), "selftest")
        return test if test.cpu_model == cpu_model else None
    return None
