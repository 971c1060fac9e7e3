from __future__ import annotations

import dataclasses

import pytest

from tests.stored_runs import ADD_CASE, COMPILED_CASE, CPP_CASE
from torchmark.errors import StoreError
from torchmark.model.case import Artefact, Case, Check, CompileMode, CompileParts, RuntimeMode
from torchmark.store.plain import content_hash, parse, read_case, write_definition


@pytest.mark.parametrize(
    "changed",
    [
        dataclasses.replace(ADD_CASE, label=("add",)),
        dataclasses.replace(ADD_CASE, autolabels=dataclasses.replace(ADD_CASE.autolabels, runtime=RuntimeMode.JIT)),
        dataclasses.replace(ADD_CASE, args=dataclasses.replace(ADD_CASE.args, stmt="x + 2")),
        dataclasses.replace(ADD_CASE, args=dataclasses.replace(ADD_CASE.args, num_threads=2)),
        dataclasses.replace(ADD_CASE, artefact=Artefact("f", "s")),
        dataclasses.replace(ADD_CASE, parts=CompileParts("s", "c", CompileMode())),
        dataclasses.replace(ADD_CASE, check=None),
        dataclasses.replace(ADD_CASE, check=Check("other", "s")),
    ],
)
def test_whatever_decides_what_is_measured_changes_the_hash(changed: Case) -> None:
    assert content_hash(changed) != content_hash(ADD_CASE)


def test_tags_and_the_file_do_not_change_the_hash() -> None:
    moved = dataclasses.replace(ADD_CASE, tags=("other",), suite="elsewhere.py")
    assert content_hash(moved) == content_hash(ADD_CASE)


def test_the_hash_stays_what_it_was() -> None:
    # Runs of earlier versions are compared by it: if this fails, they are all different from now on.
    assert content_hash(ADD_CASE) == "a5c7247a76fb87d3a1e16203df0bcc612991d2ef3b82e338514ae95167c3ce5e"


@pytest.mark.parametrize("case", [ADD_CASE, CPP_CASE, COMPILED_CASE])
def test_a_case_comes_back_from_its_definition(case: Case) -> None:
    assert read_case(parse(write_definition(case), "d"), case.suite, case.tags) == case


def test_a_definition_has_neither_tags_nor_a_file() -> None:
    with pytest.raises(StoreError, match=r"case\.suite"):
        read_case({**parse(write_definition(ADD_CASE), "d"), "suite": "x"}, "y", ())
