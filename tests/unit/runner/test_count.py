from __future__ import annotations

import pytest

from torchmark.model.costs import Counts
from torchmark.model.job import CountJob, Place
from torchmark.model.outcome import Failure, FailureKind
from torchmark.runner.jobs import count
from torchmark.runner.worker import Reply
from torchmark.wire.messages import Counted

JOB = CountJob("x", "", Place("/"), layouts=(0,))
PROFILE = """version: 1
desc: Trigger: Client Request: layout 0
events: Ir
fl=(1) a.c
fn=(1) f
1 5
totals: 5
"""


class FakeWorker:
    """Has a profile ready."""

    def __init__(self, text: str) -> None:
        self._text = text

    def run(self, *arguments: object) -> Reply:
        return Reply(Counted(), (self._text,))


def count_from(text: str) -> Counts | Failure:
    return count(FakeWorker(text), JOB, baseline=False)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["f", "f\x0cg", "f\u2028g", "f\x1cg", "f\x85g"])
def test_a_profile_is_read_whatever_names_are_in_it(name: str) -> None:
    counts = count_from(PROFILE.replace("(1) f", f"(1) {name}"))
    assert isinstance(counts, Counts)
    assert [function.name for function in counts.layouts[0].exclusive] == [name]


@pytest.mark.parametrize(
    "text",
    [
        PROFILE.replace("events: Ir", "events: Dr"),
        PROFILE.replace("1 5", f"1 {2**63}").replace("totals: 5", f"totals: {2**63}"),
        PROFILE.replace("1 5", "1 -5").replace("totals: 5", "totals: -5"),
        PROFILE.replace("totals: 5\n", ""),
        PROFILE.replace("layout 0", "layout 1"),
        "",
    ],
)
def test_something_else_than_the_profile_is_no_result(text: str) -> None:
    failure = count_from(text)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.NO_RESULT
