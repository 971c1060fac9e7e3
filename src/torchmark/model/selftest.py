"""What comparing a build with itself, or with a known slowdown, has shown on a machine."""

from __future__ import annotations

import dataclasses

from torchmark.model.judgement import Verdict


@dataclasses.dataclass(frozen=True)
class Trial:
    """One comparison whose true answer is known: head takes so much longer."""

    injected_s: float
    """What was put in; 0 for nothing."""
    verdict: Verdict
    log_ratio: float
    seconds: float


@dataclasses.dataclass(frozen=True)
class SelfTest:
    """What is remembered of a self-test, for the floor below which nothing is called a change."""

    cpu_model: str | None
    date: str
    trials: int
    """Comparisons of a build with itself."""
    false_alarms: int
    sd: float
    """How far their log-ratios spread."""
