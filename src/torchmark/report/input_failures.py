"""What went wrong on inputs: failures that differ only in numbers, such as sizes, are told once."""

from __future__ import annotations

import re
from collections.abc import Sequence

from torchmark.model.outcome import Failure
from torchmark.report.failures import describe_failure, sum_up_failure
from torchmark.report.printable import count

# Statements that fail on so many inputs from the first on, all in the same way, will fail on the others too.
HOPELESS = 10
# The numbers of so many inputs that failed are told.
NUMBERS_SHOWN = 8
# So many kinds of failures are told, the most frequent ones: each may be as long as a traceback.
KINDS_SHOWN = 5

# Also several of them, as in a size.
_NUMBERS = re.compile(r"-?\d[\d.]*(, ?-?\d[\d.]*)*,?")
_FIRST_PLACE = re.compile(r'File "(<[^"]*>)"')


def sort_of(failure: Failure) -> tuple[str, str, str]:
    """What is the same for failures of the same sort: messages often have sizes of the input in them.

    >>> from torchmark.model.outcome import FailureKind
    >>> sort_of(Failure(FailureKind.RAISED, "ValueError: no [3, 4]")) == sort_of(Failure(FailureKind.RAISED,
    ... "ValueError: no [12]"))
    True
    """
    place = _FIRST_PLACE.search(failure.traceback or "")
    return failure.kind.value, place[1] if place else "", _NUMBERS.sub("0", sum_up_failure(failure))


def is_hopeless(failures: Sequence[Failure], tried: int, total: int) -> bool:
    """Whether all that were tried failed, with the same words, and are enough to give up.

    Words that differ in a number depend on the input, so others may succeed.
    """
    if len(failures) < min(HOPELESS, total) or len(failures) < tried:
        return False
    return len({(failure.kind, failure.message) for failure in failures}) == 1


def word_failures(failures: Sequence[tuple[int, Failure]], tried: int, total: int) -> list[str]:
    """Each sort once, with the numbers of the inputs it went wrong on."""
    lines: list[str] = []
    by_sort: dict[tuple[str, str, str], list[tuple[int, str]]] = {}
    for index, failure in failures:
        by_sort.setdefault(sort_of(failure), []).append((index, describe_failure(failure)))
    sorts = sorted(by_sort.values(), key=len, reverse=True)
    for alike in sorts[:KINDS_SHOWN]:
        lines += [_head(alike), alike[0][1]]
    if len(sorts) > KINDS_SHOWN:
        hidden = sum(map(len, sorts[KINDS_SHOWN:]))
        lines.append(f"Failed in other ways: {count(hidden, 'input')}. With --json, all are written.")
    if tried < total and is_hopeless([failure for _, failure in failures], tried, total):
        lines.append(f"The other {total - tried} were not tried: the first {tried} all failed in the same way.")
    return lines


def _head(alike: Sequence[tuple[int, str]]) -> str:
    numbers = ", ".join(str(index) for index, _ in alike[:NUMBERS_SHOWN])
    more = ", ..." if len(alike) > NUMBERS_SHOWN else ""
    same = len({text for _, text in alike}) == 1
    return f"Failed on {count(len(alike), 'input')} ({numbers}{more}){'' if same else ', the first of them so'}:"
