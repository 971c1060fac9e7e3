from __future__ import annotations

import pytest

from torchmark.analysis.summarise import find_caveats
from torchmark.model.caveat import Caveat, Drift, FewSamples, HighOverhead, TwoModes, Variation
from torchmark.model.times import Times

STEADY = (1.0, 1.01, 0.99, 1.0, 1.02, 0.98)


def kinds(times: Times) -> list[type[Caveat]]:
    return [type(caveat) for caveat in find_caveats(times)]


def test_a_steady_result_has_no_caveats() -> None:
    assert find_caveats(Times(10, STEADY, 1e-6)) == ()


def test_five_samples_are_few_and_six_are_not() -> None:
    assert find_caveats(Times(1, STEADY[:5])) == (FewSamples(5, 6),)
    assert find_caveats(Times(1, STEADY[:6])) == ()


def test_no_samples_at_all_are_few() -> None:
    assert find_caveats(Times(1, ())) == (FewSamples(0, 6),)


def test_variation_begins_at_a_tenth_of_the_median() -> None:
    # quartiles at positions 1.5 and 4.5 of seven values
    (caveat,) = find_caveats(Times(1, (9.5, 9.5, 9.5, 10.0, 10.5, 10.5, 10.5)))
    assert caveat == Variation(0.1)
    assert find_caveats(Times(1, (9.6, 9.6, 9.6, 10.0, 10.5, 10.5, 10.5))) == ()


def test_a_drift_carries_its_size() -> None:
    (caveat,) = find_caveats(Times(2, tuple(10 + i / 10 for i in range(12))))
    assert isinstance(caveat, Drift)
    assert caveat.change == pytest.approx(10.95 / 10.15 - 1)


def test_two_modes_are_told_in_seconds_per_run() -> None:
    caveats = find_caveats(Times(100, (1.0,) * 12 + (2.0,) * 8 + (1.0,) * 10))
    modes = next(c for c in caveats if isinstance(c, TwoModes))
    assert (modes.fast_s, modes.slow_s) == (0.01, 0.02)
    assert modes.slow_share == pytest.approx(8 / 30)


def test_overhead_is_a_share_of_a_block_and_not_of_a_run() -> None:
    assert kinds(Times(1000, STEADY, overhead_s=0.009)) == []
    (caveat,) = find_caveats(Times(1000, STEADY, overhead_s=0.01))
    assert caveat == HighOverhead(0.01)


def test_overhead_is_never_more_than_all_of_a_block() -> None:
    (caveat,) = find_caveats(Times(1, STEADY, overhead_s=5.0))
    assert caveat == HighOverhead(1.0)


def test_unknown_overhead_is_not_doubted() -> None:
    assert kinds(Times(1, STEADY, overhead_s=None)) == []


def test_times_of_zero_are_no_reason_to_fail() -> None:
    assert kinds(Times(1, (0.0,) * 30, overhead_s=1e-9)) == []
