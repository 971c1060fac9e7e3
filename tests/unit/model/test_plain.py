from __future__ import annotations

import dataclasses
import enum
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random_runs import values_of
from torchmark.model.caveats import FewSamples
from torchmark.model.environment import Environment
from torchmark.model.outcome import CompileCosts
from torchmark.model.plain import (
    AS_MAPPING,
    MOST,
    FieldRule,
    PlainError,
    at_least,
    every,
    from_plain,
    list_all_fields,
    list_fields,
    to_plain,
)
from torchmark.model.plan import Case


class Colour(enum.Enum):
    RED = "r"
    DARK_BLUE = "b"


@dataclasses.dataclass(frozen=True)
class Inner:
    text: str
    sizes: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Outer:
    inner: Inner
    colour: Colour = Colour.RED
    share: float | None = None
    pair: tuple[str, float] | None = None
    parts: tuple[Inner, ...] = ()
    words: frozenset[str] = frozenset()
    named: tuple[tuple[str, int], ...] = dataclasses.field(default=(), metadata=AS_MAPPING)
    anything: dict[str, Any] | None = None
    steps: list[float] = dataclasses.field(default_factory=list)


WHOLE = Outer(
    inner=Inner("a", (1, 2)),
    colour=Colour.DARK_BLUE,
    share=0.5,
    pair=("b", 1.0),
    parts=(Inner("c"),),
    words=frozenset("zyx"),
    named=(("n", 1), ("m", 2)),
    anything={"x": [1]},
    steps=[1.0],
)


def read(data: object, kind: type[Any] = Outer, **rules: Any) -> Any:
    return from_plain(kind, data, "whole", rules.get("rules", {}))


def test_a_value_is_plain_by_its_fields_in_their_order() -> None:
    assert json.dumps(to_plain(WHOLE)) == (
        '{"inner": {"text": "a", "sizes": [1, 2]}, "colour": "dark_blue", "share": 0.5, "pair": ["b", 1.0], '
        '"parts": [{"text": "c", "sizes": []}], "words": ["x", "y", "z"], "named": {"n": 1, "m": 2}, '
        '"anything": {"x": [1]}, "steps": [1.0]}'
    )


def test_what_has_its_default_can_be_left_out() -> None:
    assert to_plain(Outer(Inner("a")), sparse=True) == {"inner": {"text": "a"}, "steps": []}


def test_a_value_of_a_union_says_of_which_class_it_is() -> None:
    assert to_plain((FewSamples(3, 6),)) == [{"kind": "few_samples", "samples": 3, "wanted": 6}]


def test_a_value_comes_back_from_json() -> None:
    assert read(json.loads(json.dumps(to_plain(WHOLE)))) == WHOLE
    assert read({"inner": {"text": "a"}}) == Outer(Inner("a"))


@given(st.one_of(values_of(Case), values_of(CompileCosts), values_of(Environment)))
def test_any_value_of_the_model_comes_back_from_json(value: object) -> None:
    assert from_plain(type(value), json.loads(json.dumps(to_plain(value))), "value", {}) == value


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"more": 1}, "'whole.more' is not known here"),
        ({"inner": {}}, "'whole.inner.text' is missing"),
        ({"inner": None}, "'whole.inner' is None; expected a mapping"),
        ({"inner": {"text": 5}}, "'whole.inner.text' is 5; expected a text"),
        ({"inner": {"text": "a", "sizes": [1, 2.0]}}, "'whole.inner.sizes[1]' is 2.0; expected a whole number"),
        ({"inner": {"text": "a", "sizes": [True]}}, "'whole.inner.sizes[0]' is True"),
        ({"inner": {"text": "a", "sizes": [MOST + 1]}}, "sizes[0]' is a huge number; expected a whole number of at"),
        ({"inner": {"text": "a", "sizes": "12"}}, "'whole.inner.sizes' is '12'; expected a list"),
        ({"colour": "green"}, "'whole.colour' is 'green'; expected one of red, dark_blue"),
        ({"colour": None}, "'whole.colour' is None; expected one of"),
        ({"colour": []}, "'whole.colour' is []; expected one of"),
        ({"share": math.nan}, "'whole.share' is nan; expected a finite number"),
        ({"share": -math.inf}, "'whole.share' is -inf"),
        ({"share": 10**400}, "'whole.share' is a huge number; expected a finite number"),
        ({"share": False}, "'whole.share' is False"),
        ({"pair": ["a"]}, "'whole.pair' has 1 values; expected 2"),
        ({"pair": ["a", "b"]}, "'whole.pair[1]' is 'b'"),
        ({"parts": [{"text": "a"}, {"text": 1}]}, "'whole.parts[1].text' is 1"),
        ({"words": [1]}, "'whole.words[0]' is 1"),
        ({"named": {"n": "x"}}, "'whole.named.n' is 'x'; expected a whole number"),
        ({"named": [["n", 1]]}, "'whole.named' is [['n', 1]]; expected a mapping"),
        ({"anything": []}, "'whole.anything' is []; expected a mapping"),
        ({"steps": [None]}, "'whole.steps[0]' is None"),
        ({"x" * 1000: 1}, f"'whole.{'x' * 40}' is not known"),
        ({"inner": {"text": ["y" * 1000]}}, f"is ['{'y' * 38}; expected a text"),
    ],
)
def test_anything_else_is_refused_with_its_place(change: dict[str, object], told: str) -> None:
    with pytest.raises(PlainError) as caught:
        read({**to_plain(WHOLE), **change})
    assert told in str(caught.value)


def test_a_part_may_have_been_made_already() -> None:
    assert read({"inner": Inner("a")}) == Outer(Inner("a"))


def test_whole_numbers_are_taken_for_numbers() -> None:
    assert isinstance(read({"inner": {"text": "a"}, "share": 1}).share, float)


RULES = {
    float: (FieldRule("", "at most 2", lambda number: number <= 2),),
    Inner: (*at_least(1, "sizes"), *every("short", lambda text: len(text) < 3, "text")),
    Outer: (FieldRule("parts", "fewer than two", lambda outer: len(outer.parts) < 2),),
}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"share": 2.5}, "'whole.share' is not what it should be; expected at most 2"),
        ({"steps": [1, 3]}, "'whole.steps[1]' is not what it should be"),
        ({"parts": [{"text": "a", "sizes": [3, 0]}]}, "'whole.parts[0].sizes' is not what it should be; expected at"),
        ({"inner": {"text": "long"}}, "'whole.inner.text' is not what it should be; expected short"),
        ({"parts": [{"text": "a"}] * 2}, "'whole.parts' is not what it should be; expected fewer than two"),
    ],
)
def test_rules_hold_wherever_a_class_is_found(change: dict[str, object], told: str) -> None:
    assert read(to_plain(WHOLE), rules=RULES) == WHOLE
    with pytest.raises(PlainError) as caught:
        read({**to_plain(WHOLE), **change}, rules=RULES)
    assert told in str(caught.value)


def test_fields_of_inner_classes_can_be_listed_ahead() -> None:
    list_fields.cache_clear()
    list_all_fields((Outer,))
    assert list_fields.cache_info().currsize == 2
