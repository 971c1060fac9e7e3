"""The exceptions torchmark raises on purpose.

    TorchmarkError
    ├── UsageError      the call cannot mean anything (also a ValueError)
    ├── SetupError      the machine lacks something the call needs
    └── StoreError      stored data cannot be read

Each has the exit code that the command line ends with. What a user's own statement raises is never wrapped.
"""

from __future__ import annotations


class TorchmarkError(Exception):
    """Root of everything torchmark raises on purpose; `str()` of it is a sentence for the user."""

    exit_code = 1


class UsageError(TorchmarkError, ValueError):
    """An argument, or a combination of them, that cannot be carried out."""

    exit_code = 2


class SetupError(TorchmarkError):
    """Something outside torchmark is missing or refused: `missing` names it, `advice` says what to do."""

    exit_code = 3

    def __init__(self, message: str, *, missing: str, advice: str) -> None:
        super().__init__(f"{message} {advice}")
        self.missing = missing
        self.advice = advice


class StoreError(TorchmarkError):
    """Stored or received data that does not have the promised form."""

    exit_code = 4
