from __future__ import annotations

import pytest

from torchmark.model.outcome import Failure, FailureKind, may_pass_later

SURROUNDINGS = {FailureKind.WORKER_DIED, FailureKind.NO_RESULT, FailureKind.MISSING, FailureKind.OUT_OF_MEMORY}


@pytest.mark.parametrize("kind", FailureKind)
def test_only_what_the_surroundings_have_caused_may_pass_later(kind: FailureKind) -> None:
    assert may_pass_later(Failure(kind, "It failed.")) == (kind in SURROUNDINGS)


@pytest.mark.parametrize(("signal", "expected"), [("SIGKILL", True), ("SIGTERM", True), ("SIGSEGV", False)])
def test_a_kill_from_outside_is_no_fault_of_the_code(signal: str, expected: bool) -> None:
    assert may_pass_later(Failure(FailureKind.CRASHED, f"The process was ended by {signal}.")) == expected
    assert not may_pass_later(Failure(FailureKind.RAISED, f"ValueError: {signal}"))
