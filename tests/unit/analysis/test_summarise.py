from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.analysis.summarise import count_significant_figures, find_median_interval, summarise
from torchmark.errors import UsageError
from torchmark.model.summary import Interval


def test_a_summary_by_hand() -> None:
    summary = summarise([4.0, 1.0, 3.0, 2.0, 5.0])
    assert (summary.samples, summary.median, summary.mean) == (5, 3.0, 3.0)
    assert (summary.p25, summary.p75, summary.iqr, summary.iqr_share) == (2.0, 4.0, 2.0, 2 / 3)
    assert (summary.minimum, summary.maximum) == (1.0, 5.0)
    assert summary.std == pytest.approx(2.5**0.5)


def test_a_single_sample_has_a_median_and_no_spread() -> None:
    summary = summarise([3.0])
    assert (summary.median, summary.mean, summary.iqr, summary.std) == (3.0, 3.0, 0.0, None)


def test_no_samples_are_refused_with_a_sentence() -> None:
    with pytest.raises(UsageError, match="without samples"):
        summarise([])


@pytest.mark.parametrize(
    ("times", "figures"),
    [
        ([1.0] * 5, 4),  # 1 s / 25 ns would be 7 figures: capped
        ([1e-6] * 5, 1),  # 1 us / 25 ns = 40
        ([2.5e-6] * 5, 2),  # exactly 100 times the floor
        ([20e-9], 1),  # below the floor: at least one
        ([0.0, 5e-324, 5.0], 1),  # the smallest number there is, divided by 2.2 s, is zero
        # middle half of eight: 2..6; population std of (98, 100, 100, 102) = sqrt(2); 1.645 * sqrt(2) / 2 = 1.163
        ([90.0, 95.0, 98.0, 100.0, 100.0, 102.0, 105.0, 110.0], 1),
        # the same with a tenth of the scatter: 100 / 0.1163 = 860
        ([99.0, 99.5, 99.8, 100.0, 100.0, 100.2, 100.5, 101.0], 2),
    ],
)
def test_significant_figures_by_hand(times: list[float], figures: int) -> None:
    ordered = sorted(times)
    assert count_significant_figures(ordered, ordered[len(ordered) // 2]) == figures


@pytest.mark.parametrize("median", [0.0, -1.0])
def test_a_median_that_is_not_positive_has_one_figure(median: float) -> None:
    assert count_significant_figures([median], median) == 1


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=50))
def test_a_summary_is_in_order(times: list[float]) -> None:
    s = summarise(times)
    assert s.minimum <= s.p25 <= s.median <= s.p75 <= s.maximum
    assert 1 <= s.significant_figures <= 4


def test_the_interval_of_the_median_is_made_of_samples() -> None:
    times = [9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0]
    assert find_median_interval(times, 0.95) == Interval(2.0, 8.0, 1 - 20 / 512)


def test_too_few_samples_have_no_interval() -> None:
    assert find_median_interval([], 0.95) is None
    assert find_median_interval([1.0] * 5, 0.95) is None


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95])
def test_a_confidence_that_is_none_is_refused(confidence: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        find_median_interval([1.0] * 9, confidence)
