"""How far comparing in turns has come."""

from __future__ import annotations

import pytest

from torchmark.report.progress import PairedAdvance


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (("layouts", 3, 12), "starting processes: 3 of 12"),
        (("look 2", 5, 86), "timing in turns, look 2: 5 of 86"),
        (("confirming", 0, 4), "seeing changes again on fresh layouts: 0 of 4"),
        (("waiting", 0, 0), "waiting for another run of torchmark here"),
    ],
)
def test_what_is_under_way_is_said(told: tuple[str, int, int], words: str) -> None:
    advance = PairedAdvance(86, lambda: 0.0)
    assert advance.describe() == "timing in turns: 0 of 86"
    assert advance.add(told) is None
    assert advance.describe() == words
    assert advance.draw(200, fancy=False).endswith(words)
    assert advance.describe_current(80) == ""


def test_the_end_tells_how_long_it_took() -> None:
    clock = iter([10.0, 75.0])
    assert PairedAdvance(1, lambda: next(clock)).conclude() == "timed in turns, in 65 s"
