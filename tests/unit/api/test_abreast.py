"""Several stages at once: what they give, how far they are together, and how they end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from torchmark.compare.confirm import JointProgress, Note, Stage, be_silent, run_concurrently


def never() -> None:
    raise AssertionError("nobody is to leave")


def giving(*values: int) -> Stage[int]:
    return lambda note: iter(values)


def test_all_that_is_given_arrives_in_the_order_of_each() -> None:
    given = list(run_concurrently([giving(*range(100)), giving(*range(1000, 1100)), giving()], be_silent, never))
    assert sorted(given) == [*range(100), *range(1000, 1100)]
    assert [one for one in given if one < 1000] == list(range(100))


def test_nothing_and_one_need_no_thread() -> None:
    def where(note: Note) -> Iterator[threading.Thread]:
        yield threading.current_thread()

    assert list(run_concurrently([], be_silent, never)) == []
    assert list(run_concurrently([where], be_silent, never)) == [threading.current_thread()]


def test_an_error_has_the_others_leave_and_is_raised() -> None:
    left = threading.Event()

    def wait(note: Note) -> Iterator[int]:
        assert left.wait(60)
        yield 1

    def fail(note: Note) -> Iterator[int]:
        raise ValueError("this one")
        yield 0

    with pytest.raises(ValueError, match="this one"):
        list(run_concurrently([wait, fail], be_silent, left.set))
    assert left.is_set()


def test_how_far_they_are_is_told_of_all_together() -> None:
    both = threading.Barrier(2, timeout=60)

    def work(note: Note) -> Iterator[int]:
        note("look 1", 3, 10)
        both.wait()
        note("look 1", 4, 10)
        yield from ()

    heard: list[tuple[str, int, int]] = []
    list(run_concurrently([work, work], lambda *told: heard.append(told), never))
    assert heard[:2] == [("look 1", 3, 10), ("look 1", 6, 20)]
    assert {of for _, _, of in heard[1:]} == {20}


def test_what_was_told_of_several_adds_up() -> None:
    heard: list[tuple[str, int, int]] = []
    sums = JointProgress(lambda *told: heard.append(told))
    sums.add(0, "layouts", 1, 12)
    sums.add(1, "layouts", 2, 12)
    sums.add(0, "look 1", 0, 5)
    sums.add(1, "look 1", 3, 6)
    sums.add(0, "layouts", 4, 12)
    sums.add(0, "confirming", 1, 2)
    sums.end(1)
    sums.end(0)
    assert heard == [
        ("layouts", 1, 12),
        ("layouts", 3, 24),
        # Who is ahead has done all of what the other is at.
        ("layouts", 14, 24),
        ("look 1", 3, 11),
        # What is done for the second time is another thing.
        ("look 1", 8, 11),
        ("look 1", 8, 11),
        ("confirming", 1, 2),
    ]
