"""Stacks for other programs."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import fastjsonschema
import pytest
from hypothesis import given, settings

from tests.checked_json import read_checked
from tests.made_flames import BASE, HEAD, HOSTILE, MALLOC, RUN, make_stacks, stacks
from torchmark.model.costs import Frame, FrameKind, Stacks
from torchmark.report.flame.formats import as_collapsed, as_speedscope

WHOLE = {"type": "integer", "minimum": 0}
# From speedscope's description of its file format, version 0.6.0 and later; ours is of sampled profiles only.
SPEEDSCOPE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["$schema", "shared", "profiles"],
    "properties": {
        "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"},
        "name": {"type": "string"},
        "exporter": {"type": "string"},
        "activeProfileIndex": WHOLE,
        "shared": {
            "type": "object",
            "required": ["frames"],
            "properties": {
                "frames": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string"},
                            "file": {"type": "string"},
                            "line": WHOLE,
                            "col": WHOLE,
                        },
                        "additionalProperties": False,
                    },
                }
            },
        },
        "profiles": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["type", "name", "unit", "startValue", "endValue", "samples", "weights"],
                "properties": {
                    "type": {"const": "sampled"},
                    "name": {"type": "string"},
                    "unit": {"enum": ["none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"]},
                    "startValue": {"type": "number"},
                    "endValue": {"type": "number"},
                    "samples": {"type": "array", "items": {"type": "array", "items": WHOLE}},
                    "weights": {"type": "array", "items": {"type": "number"}},
                },
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}


def check(file: dict[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = read_checked(json.dumps(file, allow_nan=False), SPEEDSCOPE_SCHEMA)
    for profile in read["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] == sum(profile["weights"])
        for sample in profile["samples"]:
            assert all(number < len(read["shared"]["frames"]) for number in sample)
    return read


def test_collapsed_stacks_are_lines_in_order() -> None:
    assert as_collapsed(BASE) == (
        "run 10000\n"
        "run;Sub.__torch_function__ 20000\n"
        "run;Sub.__torch_function__;at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&) 5050\n"
        "run;Sub.__torch_function__;at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&);"
        "at::native::vectorized_loop<float>(char**, long) 40000\n"
        "run;Sub.__torch_function__;at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&);malloc 4000\n"
        "run;at::old_path() 11000\n"
        "run;malloc 10000\n"
    )


def test_collapsed_differences_have_base_and_head_of_equally_many_runs() -> None:
    twice = make_stacks(((RUN,), 60), ((RUN, MALLOC), 8), number=200)
    once = make_stacks(((RUN,), 40), number=100)
    assert as_collapsed(once, twice) == "run 6000 8000\nrun;malloc 800 0\n"
    assert as_collapsed(HEAD, BASE).splitlines()[1] == "run;Sub.__torch_function__ 20000 32000"
    assert as_collapsed(HEAD, BASE).splitlines()[-2] == "run;at::old_path() 11000 0"


def test_names_cannot_break_a_line() -> None:
    frames = [Frame(text) for text in HOSTILE]
    text = as_collapsed(make_stacks(*(((RUN, frame), 7) for frame in frames), ((), 3)))
    assert "all 3\n" in text
    assert "run;a,b,c 12 7\n" in text
    for line in text.splitlines():
        assert line.isprintable()
        assert line.count(";") <= 1
        assert int(line.rpartition(" ")[2]) >= 3


@settings(max_examples=30)
@given(stacks())
def test_lines_add_up_to_the_total(made: Stacks) -> None:
    lines = as_collapsed(made).splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == made.total
    assert len({line.rpartition(" ")[0] for line in lines}) == len(lines)


def test_speedscope_has_each_frame_once_with_its_file() -> None:
    file = check(as_speedscope(BASE, name="add"))
    assert [frame["name"].split("(")[0] for frame in file["shared"]["frames"]] == [
        "run",
        "Sub.__torch_function__",
        "at::_ops::add_Tensor::call",
        "at::native::vectorized_loop<float>",
        "malloc",
        "at::old_path",
    ]
    assert file["shared"]["frames"][0] == {"name": "run", "file": "bench.py", "line": 3}
    assert file["shared"]["frames"][4] == {"name": "malloc", "file": "libc.so.6"}
    (profile,) = file["profiles"]
    assert profile["samples"] == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 4], [0, 4], [0, 5]]
    assert (profile["name"], profile["unit"], profile["endValue"]) == ("add, 100 runs", "none", 100_050)


def test_speedscope_of_a_difference_has_two_profiles_and_shows_head() -> None:
    file = check(as_speedscope(HEAD, dataclasses.replace(BASE, number=200), name="add"))
    assert [(profile["name"], profile["endValue"]) for profile in file["profiles"]] == [
        ("base, 20000 runs", 100_050 * 100),
        ("head, 20000 runs", 98_050 * 200),
    ]
    assert file["activeProfileIndex"] == 1


@pytest.mark.parametrize("origin", ["x.py", "x.py:", "x.py:y", "x.py:²"])
def test_an_origin_without_a_line_is_a_file(origin: str) -> None:
    file = check(as_speedscope(make_stacks(((Frame("f", FrameKind.PYTHON, origin),), 1))))
    assert file["shared"]["frames"] == [{"name": "f", "file": origin}]


@settings(max_examples=30)
@given(stacks(), stacks())
def test_all_stacks_make_a_valid_file(head: Stacks, base: Stacks) -> None:
    check(as_speedscope(head))
    check(as_speedscope(head, base))


def test_the_schema_refuses_what_is_none() -> None:
    file = as_speedscope(BASE)
    del file["profiles"][0]["weights"]
    with pytest.raises(fastjsonschema.JsonSchemaValueException):
        check(file)
