"""From trials with known answers to what can be trusted."""

from __future__ import annotations

import pytest

from torchmark.analysis.verdict.sequential import NORMAL_IQR, sum_up
from torchmark.model.judgement import Verdict
from torchmark.model.selftest import Trial


def trial(injected_s: float, verdict: Verdict, log_ratio: float = 0.0, seconds: float = 1.0) -> Trial:
    return Trial(injected_s, verdict, log_ratio, seconds)


def test_false_alarms_are_those_of_a_build_against_itself() -> None:
    trust = sum_up(
        [
            trial(0.0, Verdict.SLOWER, 0.04, 1.0),
            trial(0.0, Verdict.FASTER, -0.02, 2.0),
            trial(0.0, Verdict.SAME, 0.00, 3.0),
            trial(0.0, Verdict.UNDECIDED, 0.02, 4.0),
            trial(0.0, Verdict.SAME, 0.01, 5.0),
            trial(1e-8, Verdict.SLOWER, 0.01, 9.0),
        ]
    )
    assert (trust.trials, trust.false_alarms, trust.same) == (5, 2, 2)
    # Quartiles of -0.02, 0, 0.01, 0.02, 0.04 are 0 and 0.02.
    assert trust.sd == pytest.approx(0.02 / NORMAL_IQR)
    assert trust.seconds == 3.0
    assert trust.most_false > 2 / 5


def test_power_is_told_by_size_and_the_wrong_way_is_not_found() -> None:
    trials = [trial(2e-8, Verdict.SLOWER)] * 9 + [trial(2e-8, Verdict.FASTER)] + [trial(1e-8, Verdict.UNDECIDED)] * 4
    small, large = sum_up(trials).powers
    assert (small.injected_s, small.found, small.share) == (1e-8, 0, 0.0)
    assert (large.found, large.wrong_way, large.share) == (9, 1, 0.9)
    assert large.low < 0.9 < large.high


def test_the_smallest_that_is_seen_has_no_larger_one_that_is_not() -> None:
    seen, missed = Verdict.SLOWER, Verdict.SAME
    assert sum_up([trial(1.0, seen), trial(2.0, missed), trial(3.0, seen)]).smallest_seen_s == 3.0
    assert sum_up([trial(1.0, missed), trial(2.0, seen), trial(3.0, seen)]).smallest_seen_s == 2.0
    assert sum_up([trial(1.0, seen), trial(2.0, missed)]).smallest_seen_s is None
    assert sum_up([trial(0.0, missed)]).smallest_seen_s is None
