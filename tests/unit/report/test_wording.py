from __future__ import annotations

import pytest

from torchmark.model.caveat import Caveat, Drift, FewSamples, HighOverhead, OtherPlaces, TwoModes, Variation
from torchmark.report.caveats import word_caveat


@pytest.mark.parametrize(
    ("caveat", "fact"),
    [
        (FewSamples(1, 6), "1 sample; an interval of the median takes 6."),
        (FewSamples(3, 6), "3 samples; an interval of the median takes 6."),
        (Variation(0.12), "The result is unsteady: the middle half of the samples spans 12% of the median."),
        (Variation(0.3), "The result is unreliable: the middle half of the samples spans 30% of the median."),
        (Drift(0.08), "The statement became 8% slower while it was measured."),
        (Drift(-0.5), "The statement became 50% faster while it was measured."),
        (
            TwoModes(1e-6, 1.9e-6, 0.64),
            "The samples fall into two groups, around 1.00 us and 1.90 us (64% in the slow one).",
        ),
        (
            OtherPlaces(metric="wall", rounds=2, of=5, what=("cpu",), nodes=("n-3", "n-7")),
            "2 of 5 rounds of times are left out, taken with another processor (n-3, n-7).",
        ),
        (
            OtherPlaces("count", 1, 2, ("torch", "valgrind")),
            "1 of 2 rounds of counts is left out, taken with another torch and another Valgrind.",
        ),
        (HighOverhead(0.034), "Starting the loop and reading the clock takes 3.4% of each block."),
    ],
)
def test_every_caveat_is_a_fact_followed_by_advice(caveat: Caveat, fact: str) -> None:
    text = word_caveat(caveat)
    assert text.startswith(fact + " ")
    assert len(text) > len(fact) + 10


def test_options_are_spelt_as_where_they_are_used() -> None:
    assert "min_run_time=" in word_caveat(FewSamples(1, 6), "python")
    assert "--min-run-time" in word_caveat(FewSamples(1, 6), "shell")
    assert "adaptive_autorange()" in word_caveat(Variation(0.2), "python")
    assert "--adaptive" in word_caveat(Variation(0.2), "shell")


def test_what_is_in_use_is_not_advised() -> None:
    assert "--adaptive" not in word_caveat(Variation(0.2), "shell", {"adaptive"})
    assert "Give --number a larger value" in word_caveat(HighOverhead(0.5), "shell", {"number"})
    assert "--number" not in word_caveat(HighOverhead(0.5), "shell")


def test_what_to_do_about_other_places_depends_on_whether_there_are_nodes() -> None:
    assert "nodes of one kind" in word_caveat(OtherPlaces(metric="wall", rounds=1, of=2, what=("cpu",), nodes=("n-3",)))
    assert "--resume" in word_caveat(OtherPlaces("wall", 1, 2, ("torch",)))
    assert word_caveat(OtherPlaces(metric="wall", rounds=1, of=2, what=("cpu",), nodes=("\x1b[31m",))).isprintable()


@pytest.mark.parametrize(
    ("slow_share", "where"), [(0.19, "lies in the fast"), (0.45, "may lie in either"), (0.8, "lies in the slow")]
)
def test_the_median_of_two_groups_is_said_to_lie_where_it_lies(slow_share: float, where: str) -> None:
    assert f"The median {where} group" in word_caveat(TwoModes(1.23e-6, 5.86e-6, slow_share))
