"""Functions by what is spent in themselves, and by how much that changed."""

from __future__ import annotations

from hypothesis import given, settings

from tests.made_flames import ADD, HOOK, LOOP, MALLOC, OLD, RUN, compared_flame, flames, plain_flame
from torchmark.model.flame import Flame
from torchmark.report.flame.page import rank_growth, rank_own


def test_a_function_counts_at_all_places_together_and_without_what_it_calls() -> None:
    ranked = [(spent.frame, spent.head) for spent in rank_own(plain_flame())]
    assert ranked == [
        (LOOP, 40_000),
        (HOOK, 20_000),
        (MALLOC, 14_000),
        (OLD, 11_000),
        (RUN, 10_000),
        (ADD, 5_050),
    ]


def test_what_grew_itself_comes_first_and_its_callers_not_at_all() -> None:
    ranked = [(spent.frame, spent.change) for spent in rank_growth(compared_flame())]
    assert ranked == [(HOOK, 12_000), (LOOP, -3_000), (OLD, -11_000)]


def test_nothing_grew_where_nothing_is_compared_but_for_what_there_is() -> None:
    assert [spent.base for spent in rank_own(plain_flame())] == [0] * 6


@settings(max_examples=30)
@given(flames())
def test_all_that_was_spent_is_spent_in_functions(flame: Flame) -> None:
    assert sum(spent.head for spent in rank_own(flame)) == flame.root.value
    assert sum(spent.change for spent in rank_growth(flame)) == flame.root.value - (flame.root.base_value or 0)
