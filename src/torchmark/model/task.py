"""What is measured: the text of a task and the labels a person gave it.

`TaskSpec` is the identity of a measurement: equal specs are replicates and are merged, unequal ones never are.
"""

from __future__ import annotations

import dataclasses
import enum
import textwrap

from torchmark.model.line import show_fields


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
        return show_fields(self)

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
