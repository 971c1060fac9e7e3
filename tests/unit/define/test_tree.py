from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.define.expand import flatten
from torchmark.define.groups import GroupedStmts
from torchmark.errors import DefinitionError
from torchmark.model.case import TimerArgs

LEAF = TimerArgs("x")
KEYS = st.one_of(st.none(), st.text(max_size=2), st.tuples(st.text(max_size=1), st.text(max_size=1)), st.just(()))
TREES = st.recursive(st.just(LEAF), lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=8)
STRANGE = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(), st.just(LEAF)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(tuple),
        st.dictionaries(st.one_of(KEYS, st.integers(), st.tuples(st.integers())), inner, max_size=3),
    ),
)


def test_labels_of_all_levels_are_one_tuple_in_the_order_of_the_definition() -> None:
    group = GroupedStmts("x")
    flat = flatten({"b": {None: LEAF, ("c", "d"): {(): group}}, ("a",): LEAF, "empty": {}})
    assert list(flat.items()) == [(("b",), LEAF), (("b", "c", "d"), group), (("a",), LEAF)]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ([LEAF], "A definition is a dictionary of labels and benchmarks, not <class 'list'>."),
        ({"a": {None: LEAF}, ("a",): LEAF}, "duplicate key: ('a',)"),
        ({"a": {"b": LEAF}, ("a", "b"): LEAF}, "duplicate key: ('a', 'b')"),
        ({3: LEAF}, "A label is a text, a tuple of texts, or None, not 3."),
        ({("a", 3): LEAF}, "A label is a text, a tuple of texts, or None, not ('a', 3)."),
        ({("a", None): LEAF}, "A label is a text, a tuple of texts, or None, not ('a', None)."),
        ({"a": {"b": "x"}}, "What stands at a / b is <class 'str'>, not TimerArgs, "),
        ({"a": (LEAF,)}, "A comma behind a group makes a tuple of it."),
        ({None: None}, "What stands at the top is <class 'NoneType'>"),
    ],
)
def test_what_is_no_definition_is_told_with_its_label(schema: Any, message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        flatten(schema)
    assert message in str(caught.value)


@given(st.dictionaries(KEYS, TREES, max_size=4))
def test_flattening_a_second_time_changes_nothing(schema: dict[Any, Any]) -> None:
    try:
        flat = flatten(schema)
    except DefinitionError as error:
        if "duplicate key" not in str(error):
            raise
        return
    assert list(flatten(flat).items()) == list(flat.items())


@given(STRANGE)
def test_anything_is_a_definition_or_a_definition_error(schema: Any) -> None:
    try:
        flat = flatten(schema)
    except DefinitionError:
        return
    assert all(value is LEAF for value in flat.values())
