"""The exceptions torchmark raises on purpose, each with an exit code for the command line.

TorchmarkError
├── UsageError      the call cannot mean anything (also a ValueError)
├── DefinitionError a benchmark is not well defined (also a ValueError, and an AssertionError)
├── SnippetError    C++ does not compile, or fails while it runs (also a RuntimeError)
├── SetupError      the machine lacks something the call needs (also an OSError)
├── WorkerError     a process that measures could not do its work (also an OSError)
│   └── PlaceLost   all processes of a place where things are compared are gone, and it with them
└── StoreError      stored data cannot be read
"""

from __future__ import annotations


class ExitCode:
    """What the program ends with besides 0; docs/comparing.md has them in a table.

    Plain numbers, because importing `enum` would delay the help of the program.
    """

    FAILED = 1
    """Not all that was asked for could be measured, compared or found."""
    INVALID = 2
    """The command line or a definition means nothing."""
    REGRESSED = 3
    LACKING = 3
    """The machine lacks something. Commands that compare end with REFUSED then: for them 3 is a regression."""
    REFUSED = 4
    """Stored results that cannot be read or compared, or an interpreter that cannot be used."""
    SIGNALLED = 128
    """What shells add to the number of the signal that ended a program."""
    INTERRUPTED = 130


class TorchmarkError(Exception):
    """Root of everything torchmark raises on purpose; `str()` of it is a sentence for the user."""

    exit_code = ExitCode.FAILED


class UsageError(TorchmarkError, ValueError):
    """An argument, or a combination of them, that cannot be carried out."""

    exit_code = ExitCode.INVALID


class DefinitionError(TorchmarkError, ValueError, AssertionError):
    """A definition of benchmarks that cannot be expanded.

    `text` is what is wrong there and `position` where in it, if that can be told; the message then shows both, with a
    caret below the place. `advice` says what to try where the message does not. (Also an AssertionError, which is what
    scripts may have learned to catch.)
    """

    exit_code = ExitCode.INVALID

    def __init__(
        self, message: str, *, text: str | None = None, position: int | None = None, advice: str | None = None
    ) -> None:
        self.problem = message
        self.advice = advice
        self.text = text
        self.position = position
        super().__init__(message if text is None or position is None else f"{message}\n{point(text, position)}")


def point(text: str, position: int) -> str:
    """The line of a text that a position is in, and a caret below that place.

    >>> print(point("f(a b)", 4))
      f(a b)
          ^
    """
    start = text.rfind("\n", 0, position) + 1
    line = text[start:].split("\n", 1)[0]
    # Tabs stay, so that the caret stands where the eye looks for it.
    gap = "".join(c if c == "\t" else " " for c in line[: position - start])
    return f"  {line}\n  {gap}^"


class SnippetError(TorchmarkError, RuntimeError):
    """C++ that does not compile, or that threw an exception or left its loop; `kind` is which, in one word.

    The text of one that does not compile has the compiler's message, with the user's own lines and columns.
    """

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class SetupError(TorchmarkError, OSError):
    """Something outside torchmark is missing or refused: `missing` names it, `advice` says what to do."""

    exit_code = ExitCode.LACKING

    def __init__(self, message: str, *, missing: str, advice: str) -> None:
        super().__init__(f"{message} {advice}")
        self.missing = missing
        self.advice = advice


class InterpreterError(UsageError, SetupError):
    """A program that is named as a Python interpreter is not one: `python` is its name, `problem` says why."""

    def __init__(self, python: str, problem: str) -> None:
        message = f"{python} is not a Python interpreter: {problem.rstrip('.:')}."
        SetupError.__init__(self, message, missing="python", advice="Name a Python 3.9 or newer that has torch.")
        self.python = python
        self.problem = problem


class WorkerError(TorchmarkError, OSError):
    """A process that measures failed, or what it sent cannot be understood; `kind` is how, in one word."""

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class PlaceLost(WorkerError):
    """A place where things are compared is gone, as when its machine dies; what was under way there was not decided."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="place_lost")


class StoreError(TorchmarkError):
    """Stored or received data that does not have the promised form."""

    exit_code = ExitCode.REFUSED
