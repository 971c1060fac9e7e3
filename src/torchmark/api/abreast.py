"""Runs several stages at once, each in a thread of its own, and gives what they give as it comes.

Threads only put what they have into a queue; all else is done by whoever takes it out. A single stage has no thread.
"""

from __future__ import annotations

import dataclasses
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar

# Visits take some 25 ms. What takes longer than this is ended by whoever closes the place where it runs.
PARTING_S = 1.0

T = TypeVar("T")

Note: TypeAlias = Callable[[str, int, int], None]
"""Hears what is being done, how much of it is done, and of how much."""

Stage: TypeAlias = Callable[[Note], Iterator[T]]


def be_silent(what: str, done: int, of: int) -> None:
    """For whoever need not hear how far things are."""


@dataclasses.dataclass(frozen=True)
class _Given(Generic[T]):
    what: T


class _Noted(NamedTuple):
    number: int
    told: tuple[str, int, int]


class _Ended(NamedTuple):
    number: int
    error: BaseException | None = None


def run_abreast(stages: Sequence[Stage[T]], note: Note, leave: Callable[[], None]) -> Generator[T, None, None]:
    """All that the stages give. `note` hears, in the caller's thread, how far they are together.

    The first error of a stage is raised at once. Where some still run when this ends, by an error or because it is
    closed, `leave` is called, which has to have them end soon; they are then waited for, but not for long.
    """
    if len(stages) == 1:
        yield from stages[0](note)
        return
    heard: queue.SimpleQueue[_Given[T] | _Noted | _Ended] = queue.SimpleQueue()
    sums = Sums(note)
    threads = [
        threading.Thread(target=_run, args=(number, stage, heard), daemon=True) for number, stage in enumerate(stages)
    ]
    running = 0
    try:
        for thread in threads:
            running += 1
            thread.start()
        while running:
            message = heard.get()
            if isinstance(message, _Given):
                yield message.what
            elif isinstance(message, _Noted):
                sums.add(message.number, *message.told)
            else:
                running -= 1
                sums.end(message.number)
                if message.error is not None:
                    raise message.error
    finally:
        if running:
            leave()
            _wait_for(threads)


def _run(number: int, stage: Stage[T], heard: queue.SimpleQueue[_Given[T] | _Noted | _Ended]) -> None:
    try:
        for one in stage(lambda *told: heard.put(_Noted(number, told))):
            heard.put(_Given(one))
    except BaseException as error:
        heard.put(_Ended(number, error))
    else:
        heard.put(_Ended(number))


def _wait_for(threads: Sequence[threading.Thread]) -> None:
    end = time.monotonic() + PARTING_S
    for thread in threads:
        if thread.ident is not None:
            thread.join(max(0.0, end - time.monotonic()))


class Sums:
    """How far several are together: at the step where the last of them is, with those that are beyond it.

    >>> sums = Sums(print)
    >>> sums.add(0, "look 1", 5, 10)
    look 1 5 10
    >>> sums.add(1, "look 1", 2, 10)
    look 1 7 20
    >>> sums.add(0, "look 2", 0, 3)
    look 1 12 20
    >>> sums.end(1)
    look 2 0 3
    """

    def __init__(self, note: Note) -> None:
        self._note = note
        self._steps: dict[tuple[str, int], dict[int, tuple[int, int]]] = {}
        """Steps in the order in which they were heard of; one that is taken again is another one."""
        self._at: dict[int, tuple[str, int]] = {}
        self._taken: Counter[tuple[int, str]] = Counter()

    def add(self, number: int, what: str, done: int, of: int) -> None:
        """One of them has come so far."""
        if number not in self._at or self._at[number][0] != what:
            self._complete(number)
            self._at[number] = what, self._taken[number, what]
            self._taken[number, what] += 1
        self._steps.setdefault(self._at[number], {})[number] = done, of
        self._tell()

    def end(self, number: int) -> None:
        """One of them is done with everything."""
        if self._complete(number) and self._at:
            self._tell()

    def _complete(self, number: int) -> bool:
        """Leave the step that it is at, if there is one."""
        step = self._at.pop(number, None)
        if step is None:
            return False
        _, of = self._steps[step][number]
        self._steps[step][number] = of, of
        return True

    def _tell(self) -> None:
        last = next(step for step in self._steps if step in self._at.values())
        done, of = (sum(numbers) for numbers in zip(*self._steps[last].values(), strict=True))
        self._note(last[0], done, of)
