"""What is measured, the raw result of timing it with its summary, and how values show themselves on a line."""

from __future__ import annotations

import dataclasses
import enum
import textwrap
import unicodedata
from typing import Any

# A terminal of usual width shows it without wrapping, with a prompt before it.
LONGEST = 100
# A text within a value, such as a statement, is cut to this, so that what follows it is shown too.
LONGEST_TEXT = 40
ELLIPSIS = "…"


def fit_line(text: str, longest: int = LONGEST) -> str:
    """A text on one line of at most so many columns, with dots where its end is missing.

    >>> fit_line("x = 1\\ny = 2"), fit_line("transpose", 6)
    ('x = 1 y = 2', 'trans…')
    """
    # No more than this can be shown, and a text may be very long.
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * longest]).split())
    if _measure(line) <= longest:
        return line
    while _measure(line) >= longest:
        line = line[:-1]
    return line.rstrip() + ELLIPSIS


def format_fields(value: Any) -> str:
    """A dataclass as a call that would make it, without what is as usual; long texts are cut.

    >>> @dataclasses.dataclass
    ... class Task:
    ...     stmt: str
    ...     threads: int = 1
    >>> format_fields(Task("x + y")), format_fields(Task("x", 2))
    ("Task('x + y')", "Task('x', threads=2)")
    """
    parts = []
    for number, field in enumerate(dataclasses.fields(value)):
        one = getattr(value, field.name)
        if field.default is not dataclasses.MISSING and one == field.default:
            continue
        text = fit_line(str(one) if isinstance(one, enum.Enum) else repr(one), LONGEST_TEXT)
        parts.append(text if number == 0 else f"{field.name}={text}")
    return name_value(value, ", ".join(parts))


def name_value(value: object, text: str) -> str:
    """The name of a value's class, with a text in brackets after it, on one line."""
    name = type(value).__name__
    return f"{name}({fit_line(text, LONGEST - len(name) - 2)})"


def _measure(text: str) -> int:
    """How many columns a terminal needs; the characters of some scripts take two."""
    return len(text) if text.isascii() else sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


class Language(enum.Enum):
    """The language a statement is written in."""

    PYTHON = 0
    CPP = 1


@dataclasses.dataclass(frozen=True, repr=False)
class TaskSpec:
    """Statement, setup and labels of one measurement; hashable, and free of the values it runs on.

    >>> TaskSpec("x + y", "x, y = 1, 2", label="add", sub_label="scalar").title
    'add: scalar'
    """

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    def __repr__(self) -> str:
        return format_fields(self)

    @property
    def title(self) -> str:
        """The label, or the statement where there is none, followed by the sub-label."""
        if self.label is None and "\n" in self.stmt:
            heading = f"stmt: ({self.sub_label})" if self.sub_label else "stmt:"
            return f"{heading}\n{textwrap.indent(self.stmt, '  ')}"
        heading = self.stmt if self.label is None else self.label
        return f"{heading}: {self.sub_label}" if self.sub_label else heading

    def setup_str(self) -> str:
        """The setup as it is shown; empty when there is nothing to show."""
        if not self.setup or self.setup == "pass":
            return ""
        if "\n" in self.setup:
            return f"setup:\n{textwrap.indent(self.setup, '  ')}"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup, one below the other; a section of several lines is set off by a blank one."""
        sections = (self.title, self.description or "", self.setup_str())
        return "\n".join(f"{text}\n" if "\n" in text else text for text in sections if text)


@dataclasses.dataclass(frozen=True)
class Snippet:
    """A C++ statement, the setup before its loop in the same function, and what stands at file scope."""

    stmt: str
    setup: str = ""
    global_setup: str = ""


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A snippet as a function of a shared library: the library's path, and the key that its symbols are named by."""

    library: str
    key: str


@dataclasses.dataclass(frozen=True)
class Times:
    """Block times in seconds; each block ran the statement `number_per_run` times.

    `overhead_s` is what a block that runs the statement no time at all takes, where it was measured. `optimised_away`
    tells of a compiled statement of which the compiler left nothing.

    >>> Times(10, (2.0, 3.0)).per_run
    (0.2, 0.3)
    """

    number_per_run: int
    raw_times: tuple[float, ...]
    overhead_s: float | None = None
    optimised_away: bool = False

    @property
    def per_run(self) -> tuple[float, ...]:
        """Seconds per execution of the statement, one value a block."""
        return tuple(t / self.number_per_run for t in self.raw_times)


@dataclasses.dataclass(frozen=True)
class Interval:
    """A confidence interval; `confidence` is what it really covers, at least what was asked for."""

    low: float
    high: float
    confidence: float


@dataclasses.dataclass(frozen=True)
class Summary:
    """Order statistics, mean and spread of at least one sample."""

    samples: int
    median: float
    mean: float
    p25: float
    p75: float
    minimum: float
    maximum: float
    std: float | None
    """Sample standard deviation; None for a single sample."""
    significant_figures: int
    """Decimal places that the scatter of the middle half justifies, 1 to 4."""

    @property
    def iqr(self) -> float:
        return self.p75 - self.p25

    @property
    def iqr_share(self) -> float:
        """The interquartile range as a share of the median; 0 for a median of 0."""
        return self.iqr / self.median if self.median else 0.0
