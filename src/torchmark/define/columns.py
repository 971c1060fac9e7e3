"""Python and C++ side by side: two columns of one text, taken apart and put together."""

from __future__ import annotations

import re
import textwrap

from torchmark.define.faults import BrokenText, break_off
from torchmark.errors import DefinitionError

# How wide the Python column is unless there is a reason for more.
COLUMN_WIDTH = 40

_HEADER = re.compile(r"^(Python\s+)\| C\+\+\s*$")
_RULE = re.compile(r"^-+ \| -+\s*$")


def parse_stmts(stmts: str) -> tuple[str, str]:
    """The Python and the C++ of a block that has them side by side.

    The first line is the heading, and tells how wide the Python column is. Lines of Python keep their padding.

    >>> python, cpp = parse_stmts('''
    ...     Python                                   | C++
    ...     ---------------------------------------- | ----------------------------------------
    ...     x += 1                                   | x += 1;
    ... ''')
    >>> python.rstrip(), cpp
    ('x += 1', 'x += 1;')
    """
    try:
        return _parse(stmts)
    except DefinitionError as error:
        # Whoever uses it is broken, too, and knows under which label.
        broken = BrokenText(break_off(error).error)
        return broken, broken


def join_stmts(python: str, cpp: str) -> str:
    """The block that `parse_stmts` takes apart; as wide as the Python needs.

    >>> print(join_stmts("x = 1", "auto x = 1;").splitlines()[2])
    x = 1                                    | auto x = 1;
    """
    left, right = python.split("\n"), cpp.split("\n")
    # With the padding that `parse_stmts` leaves: a block keeps its width.
    width = max(COLUMN_WIDTH, *(len(line) for line in left))
    lines = [("Python", "C++"), ("-" * width, "-" * COLUMN_WIDTH)]
    for number in range(max(len(left), len(right))):
        lines.append((left[number] if number < len(left) else "", right[number] if number < len(right) else ""))
    return "\n".join(f"{one.rstrip():<{width}} | {two}".rstrip() for one, two in lines)


def _parse(stmts: str) -> tuple[str, str]:
    if not isinstance(stmts, str):
        raise DefinitionError(f"Side-by-side statements are a text, not {type(stmts)}.")
    lines = textwrap.dedent(stmts).strip().split("\n")
    if len(lines) < 3:
        raise DefinitionError(f"Invalid string: at least a heading, a rule and one line are needed.\n{stmts}")
    header = _HEADER.match(lines[0])
    if header is None:
        raise DefinitionError(
            "Invalid column names: the first line is `Python`, spaces up to the end of its column, and `| C++`, as in "
            f"the pattern {_HEADER.pattern}",
            text=lines[0],
            position=0,
        )
    width = len(header[1]) - 1
    if not _RULE.match(lines[1]) or lines[1][:width] != "-" * width or lines[1][width : width + 3] != " | ":
        expected = f"{'-' * width} | {'-' * COLUMN_WIDTH}"
        raise DefinitionError(f"Invalid separator: below the heading stands\n  {expected}", text=lines[1], position=0)
    pairs = [_split(line, width) for line in lines[2:]]
    return "\n".join(left for left, _ in pairs), "\n".join(right for _, right in pairs)


def _split(line: str, width: int) -> tuple[str, str]:
    if not line.strip():
        return " " * width, ""
    left, bar, right = line[:width], line[width : width + 2], line[width + 2 :]
    if bar != " |" or right[:1] not in ("", " "):
        found = line.find(" |")
        position = min(width + 1, len(line))
        if len(line) <= width or found < 0:
            problem = f"there is no `|` below that of the heading, {width + 1} characters from the left"
        elif found > width:
            problem = f"the Python is longer than its column of {width}: widen the column in all lines"
        elif bar != " |":
            problem = f"the `|` does not stand below that of the heading, {width + 1} characters from the left"
        else:
            problem, position = "a space has to follow the `|`", width + 2
        raise DefinitionError(f"Invalid line `{line}`: {problem}.", text=line, position=position)
    return left, right[1:]
