from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from tests.stored_runs import ADD_CASE, COMPILED_CASE, CPP_CASE
from torchmark.errors import StoreError
from torchmark.model.plain import to_plain
from torchmark.model.plan import Artefact, Case, Check, CompileMode, CompileParts, Metric, RuntimeMode, Sampling, Target
from torchmark.model.task import Times
from torchmark.store.plain import (
    check_schema,
    content_hash,
    dump,
    from_plain,
    parse,
    read_case,
    take,
    write_definition,
)


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


@pytest.mark.parametrize(
    ("value", "kind"),
    [("x", str), (2**63 - 1, int), (5, int), (5.5, float), (5, float), ({}, dict), ([], list), ("", str)],
)
def test_a_field_of_its_kind_is_taken(value: Any, kind: type) -> None:
    assert take({"f": value}, "f", kind) == value


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (2**63, int),
        (-(2**63), int),
        (10**400, int),
        (10**400, float),
        (5, str),
        ("5", int),
        (5.0, int),
        (True, int),
        (False, float),
        (math.inf, float),
        (None, str),
        ([], dict),
    ],
)
def test_a_field_of_another_kind_is_named(value: Any, kind: type) -> None:
    with pytest.raises(StoreError, match="The field 'f' is"):
        take({"f": value}, "f", kind)


def test_a_number_that_python_does_not_write_out_is_named_too() -> None:
    with pytest.raises(StoreError, match="The field 'f' is a huge number; expected a whole number of at most 63 bits"):
        take({"f": 1 << 20_000}, "f", int)


def test_none_is_taken_only_where_it_may_be() -> None:
    assert from_plain(Target, {"name": "", "python": None}, "t") == Target()
    with pytest.raises(StoreError, match=r"'t\.name' is None; expected a text"):
        from_plain(Target, {"name": None, "python": None}, "t")


def test_times_are_finite_numbers() -> None:
    assert take({"t": [1, 2.5]}, "t", list[float]) == [1.0, 2.5]
    for wrong in (None, "1", math.nan, True):
        with pytest.raises(StoreError, match=r"The field 't\[1\]' is"):
            take({"t": [1.0, wrong]}, "t", list[float])


def test_schema_and_version() -> None:
    check_schema({"schema": "torchmark.run", "schema_version": 1}, "run")
    with pytest.raises(StoreError, match="version 3; this torchmark reads version 1"):
        check_schema({"schema": "torchmark.run", "schema_version": 3}, "run")


def test_enums_are_told_by_name() -> None:
    assert to_plain(Sampling())["metrics"] == ["wall", "count"]
    assert from_plain(Metric, "wall", "m") is Metric.WALL


def test_a_field_with_a_default_may_be_missing_and_no_other() -> None:
    assert from_plain(Times, {"number_per_run": 1, "raw_times": [0.5]}, "t") == Times(1, (0.5,))
    with pytest.raises(StoreError, match=r"'t\.raw_times' is missing"):
        from_plain(Times, {"number_per_run": 1}, "t")


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(StoreError, match=r"'t\.unit' is not known"):
        from_plain(Times, {"number_per_run": 1, "raw_times": [], "unit": "ms"}, "t")


@pytest.mark.parametrize(("number", "blocks"), [(0, 1), (1, 0), (1, None), (None, 1), (-1, -1)])
def test_a_number_of_runs_and_of_blocks_belong_together(number: int | None, blocks: int | None) -> None:
    fixed = Sampling(number=5, blocks=7)
    assert from_plain(Sampling, to_plain(fixed), "s") == fixed
    with pytest.raises(StoreError, match=r"'s\.number' is not what it should be"):
        from_plain(Sampling, {**to_plain(fixed), "number": number, "blocks": blocks}, "s")


def test_sparse_leaves_out_defaults() -> None:
    assert to_plain(Times(1, (0.5,)), sparse=True) == {"number_per_run": 1, "raw_times": [0.5]}


def test_a_tuple_has_as_many_values_as_it_should() -> None:
    assert from_plain(tuple[str, str], ["a", "b"], "t") == ("a", "b")
    with pytest.raises(StoreError, match="'t' has 3 values; expected 2"):
        from_plain(tuple[str, str], ["a", "b", "c"], "t")


def test_numbers_that_no_float_can_hold_are_refused() -> None:
    with pytest.raises(StoreError, match="finite"):
        from_plain(Times, {"number_per_run": 1, "raw_times": [10**400]}, "t")


def test_what_is_not_finite_cannot_be_written() -> None:
    assert dump([0.1]) == "[0.1]"
    with pytest.raises(StoreError, match="not finite"):
        dump([math.nan])


@pytest.mark.parametrize("text", ["{", "", None, 5, "[" * 100_000])
def test_what_is_no_json_is_named(text: object) -> None:
    with pytest.raises(StoreError, match="'f'"):
        parse(text, "f")
