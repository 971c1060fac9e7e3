"""What became of a process that left no result."""

from __future__ import annotations

import os
import signal

from torchmark.model.outcome import FailureKind


def describe_status(status: int) -> tuple[FailureKind, str]:
    """From what `os.waitpid` said.

    >>> describe_status(11)
    (<FailureKind.CRASHED: 'crashed'>, 'was ended by SIGSEGV')
    """
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        return FailureKind.CRASHED, f"was ended by {name}"
    code = os.WEXITSTATUS(status)
    if code:
        return FailureKind.EXITED, f"exited with code {code}"
    return FailureKind.NO_RESULT, "ended without a result"
