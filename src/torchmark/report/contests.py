"""Statements against each other over many inputs, as text: the extremes, the middle, and what explains them."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence

from torchmark.analysis.contest import NOTABLE, Contest, Entry
from torchmark.report.cells import cut, measure, pad, wrap
from torchmark.report.inputs import word_input
from torchmark.report.printable import count, one_line
from torchmark.report.units import format_time, show_ratio

LEAST_INPUT_WIDTH = 16
# Statements longer than this make a sentence hard to read.
LONGEST_NAME = 48
# Which column gives way where there is little room.
INTERVAL = 1


def name_statement(position: int) -> str:
    """A letter for a statement, for tables in which there is no room for all of it.

    >>> name_statement(0), name_statement(27)
    ('A', 'B1')
    """
    turn, letter = divmod(position, len(string.ascii_uppercase))
    return string.ascii_uppercase[letter] + (str(turn) if turn else "")


def list_statements(stmts: Sequence[str], width: int) -> list[str]:
    """Which letter stands for which."""
    return [cut(f"{name_statement(i)}  {one_line(stmt)}", width) for i, stmt in enumerate(stmts)]


def name_sides(contest: Contest, letters: tuple[str, str]) -> tuple[str | None, str]:
    """The other side and the statement for a sentence: as they are, or by their letters if that would be too long."""
    a, b = letters
    texts = [contest.stmt] if contest.base is None else [contest.stmt, contest.base]
    if any(len(text.splitlines()) > 1 or measure(text) > LONGEST_NAME for text in texts):
        return None if contest.base is None else a, b
    return contest.base, contest.stmt


def render_contest(contest: Contest, letters: tuple[str, str], width: int, top: int) -> list[str]:
    """The extremes as a table, and a sentence on the rest. `letters` stand for the other side and the statement."""
    if not contest.entries:
        return ["Nothing was measured."]
    entries = contest.entries
    shown = [*entries[:top], *entries[max(top, len(entries) - top) :]]
    hidden = len(entries) - len(shown)
    rows = [_titles(contest, letters), *(_cells(entry, per_element=contest.base is None) for entry in shown)]
    widths = _widths(rows)
    if sum(widths[:-1]) + 2 * len(widths[:-1]) + LEAST_INPUT_WIDTH > width:
        rows = [row[:INTERVAL] + row[INTERVAL + 1 :] for row in rows]
        widths = _widths(rows)
    titles, low, high = rows[0], rows[1 : top + 1], rows[top + 1 :]
    lines = [_line(titles, widths, width)]
    lines += [_line(row, widths, width) for row in low]
    if hidden:
        lines.append(pad("...", widths[0], right=True) + f"  {count(hidden, 'input')} between these")
    lines += [_line(row, widths, width) for row in high]
    return [*lines, "", *wrap(sum_up(contest, letters), width)]


def sum_up(contest: Contest, letters: tuple[str, str]) -> str:
    """The middle, and on how many inputs there is a difference worth speaking of."""
    middle, p25, p75 = (show_ratio(contest.quantile(q)) for q in (0.5, 0.25, 0.75))
    a, b = letters
    number = len(contest.entries)
    if number == 1:
        return (
            f"It takes {middle} ns an element." if contest.base is None else f"{b} takes {middle} times as long as {a}."
        )
    if contest.base is None:
        return f"In the middle it takes {middle} ns an element; half of {count(number, 'input')} take {p25} to {p75}."
    faster, slower = contest.count_notable()
    share = f"{math.expm1(NOTABLE) * 100:.0f} %"
    return (
        f"In the middle {b} takes {middle} times as long as {a}; half of {count(number, 'input')} lie between {p25} "
        f"and {p75}. {b} is faster by more than {share} on {faster} of them, slower on {slower}."
    )


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _titles(contest: Contest, letters: tuple[str, str]) -> list[str]:
    a, b = letters
    if contest.base is None:
        return ["ns/element", "95 % interval", "time", "input"]
    return [f"{b}/{a}", "95 % interval", a, b, "input"]


def _cells(entry: Entry, *, per_element: bool) -> list[str]:
    low, high = entry.ratio.low, entry.ratio.high
    interval = "" if low is None or high is None else f"{show_ratio(math.exp(low))} to {show_ratio(math.exp(high))}"
    times = [format_time(entry.other_s)] if per_element else [format_time(entry.base_s), format_time(entry.other_s)]
    ratio = show_ratio(math.exp(entry.ratio.log_ratio))
    return [ratio, interval, *times, f"#{entry.input.index}  {word_input(entry.input)}"]


def _line(cells: Sequence[str], widths: Sequence[int], width: int) -> str:
    *numbers, text = cells
    line = "  ".join(pad(cell, w, right=True) for cell, w in zip(numbers, widths, strict=False))
    return f"{line}  {cut(text, max(width - len(line) - 2, LEAST_INPUT_WIDTH))}".rstrip()
