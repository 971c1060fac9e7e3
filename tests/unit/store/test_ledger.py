"""What is remembered of self-tests."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.made_contrasts import count_functions, environment
from tests.random_runs import TEXTS, values_of
from tests.sample_runs import ADD, ODD
from torchmark.analysis.gate import describe_dependencies, make_entry
from torchmark.callgrind.profiles import standardise
from torchmark.errors import StoreError
from torchmark.model.gate import SelfTest
from torchmark.model.plan import Case
from torchmark.store.ledger import (
    FILE,
    MOST_BYTES,
    dump_entry,
    find_path,
    parse_entry,
    read_entry,
    read_selftest,
    write_entry,
    write_selftest,
)

TALLY = count_functions(400, 1000)
ENTRY = make_entry(
    ADD, describe_dependencies("abc", TALLY, environment()), TALLY, standardise, why="Because é.", date="2001-12-31"
)


def test_an_entry_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    assert read_entry(tmp_path / "ledger", ADD) is None
    path = write_entry(tmp_path / "ledger", ADD, ENTRY)
    assert read_entry(tmp_path / "ledger", ADD) == ENTRY
    assert read_entry(tmp_path / "ledger", ODD) is None
    newer = dataclasses.replace(ENTRY, why="Better.")
    assert write_entry(tmp_path / "ledger", ADD, newer) == path
    assert read_entry(tmp_path / "ledger", ADD) == newer
    assert list((tmp_path / "ledger").iterdir()) == [path]


def test_the_text_is_for_diffs(tmp_path: Path) -> None:
    text = dump_entry(ENTRY)
    assert text.endswith("}\n")
    assert text.isascii()
    data = json.loads(text)
    assert list(data) == sorted(data)
    assert data["functions"] == {"_PyEval_EvalFrameDefault": 1000, "loop": 400}
    assert data["depends_on"]["layouts"] == [1, 2, 3]
    assert dump_entry(parse_entry(text.encode())) == text


@settings(max_examples=50)
@given(st.lists(TEXTS | st.sampled_from(["../../etc/passwd", "/", "..", "CON", "a" * 300]), max_size=4))
def test_no_label_leads_out_of_the_folder_or_makes_a_name_that_is_too_long(label: list[str]) -> None:
    case = dataclasses.replace(ADD, label=tuple(label))
    path = find_path(Path("/ledger"), case)
    assert path.resolve().parent == Path("/ledger")
    assert len(path.name.encode()) < 128
    assert path.suffix == ".json"
    assert not path.name.startswith((".", "-"))


@settings(max_examples=50)
@given(values_of(Case), values_of(Case))
def test_cases_have_files_of_their_own(one: Case, other: Case) -> None:
    same = (one.suite, one.key) == (other.suite, other.key)
    assert (find_path(Path(), one) == find_path(Path(), other)) == same


def change(**fields: Any) -> bytes:
    return json.dumps({**json.loads(dump_entry(ENTRY)), **fields}).encode()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "no torchmark.ledger"),
        (b"<<<<<<< HEAD\n", "no JSON"),
        (change(schema="other"), "no torchmark.ledger"),
        (change(total=10**400, totals=[10**400] * 3, rest=10**400 - 1400), "entry.total"),
        (change(allocations=-1), "entry.allocations.*at least 0"),
        (change(functions={"loop": -5}, rest=1405), "entry.functions.*no negative number"),
        (change(schema_version=2), "schema version 2"),
        (change(total="many"), "entry.total"),
        (change(total=1), "'total' among them"),
        (change(totals=[1400]), "one for each layout"),
        (change(functions=[]), "functions"),
        (change(functions={"loop": 1.5}), "functions"),
        (change(functions={"loop": 1}), "add up"),
        (change(more=1), "entry.more"),
        (change(depends_on={}), "is missing"),
        (change(suite="other"), "another case"),
        (b" " * (MOST_BYTES + 1), "bytes"),
    ],
)
def test_garbage_is_refused_with_the_name_of_the_file(tmp_path: Path, content: bytes, words: str) -> None:
    path = find_path(tmp_path, ADD)
    path.write_bytes(content)
    with pytest.raises(StoreError, match=words) as caught:
        read_entry(tmp_path, ADD)
    assert str(path) in str(caught.value)


def test_a_pipe_in_the_place_of_an_entry_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(find_path(tmp_path, ADD))
    with pytest.raises(StoreError, match="not an ordinary file"):
        read_entry(tmp_path, ADD)


def test_a_number_of_runs_below_one_is_refused() -> None:
    depends_on = {**json.loads(dump_entry(ENTRY))["depends_on"], "number": 0}
    with pytest.raises(StoreError, match="at least 1"):
        parse_entry(change(depends_on=depends_on))


def test_what_cannot_be_read_or_written_is_told(tmp_path: Path) -> None:
    find_path(tmp_path, ADD).mkdir()
    with pytest.raises(StoreError, match="Cannot read"):
        read_entry(tmp_path, ADD)
    with pytest.raises(StoreError, match="Cannot write"):
        write_entry(tmp_path, ADD, ENTRY)
    assert list(tmp_path.iterdir()) == [find_path(tmp_path, ADD)]


def test_several_that_write_at_once_leave_one_whole_entry(tmp_path: Path) -> None:
    entries = [dataclasses.replace(ENTRY, why=f"Reason {n}.") for n in range(8)]
    threads = [threading.Thread(target=write_entry, args=(tmp_path / "new", ADD, entry)) for entry in entries]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_entry(tmp_path / "new", ADD) in entries
    assert len(list((tmp_path / "new").iterdir())) == 1


TEST = SelfTest(cpu_model="Zilog Z80", date="2026-01-01", trials=60, false_alarms=1, sd=0.0015)


def test_what_is_written_is_read_again_for_the_same_processor_only(tmp_path: Path) -> None:
    assert write_selftest(tmp_path / "new", TEST) == tmp_path / "new" / FILE
    assert read_selftest(tmp_path / "new", "Zilog Z80") == TEST
    assert read_selftest(tmp_path / "new", "MOS 6502") is None
    assert [path.name for path in (tmp_path / "new").iterdir()] == [FILE]


@pytest.mark.parametrize("text", ["", "{}", "[1]", "no JSON", '{"cpu_model": 3}'])
def test_what_cannot_be_read_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    assert read_selftest(tmp_path, "Zilog Z80") is None
    (tmp_path / FILE).write_text(text)
    assert read_selftest(tmp_path, "Zilog Z80") is None


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be kept"):
        write_selftest(tmp_path / "file", TEST)
