"""A failure as text: what the user's code did, in its own words."""

from __future__ import annotations

from torchmark.model.outcome import Failure


def describe_failure(failure: Failure) -> str:
    """What the traceback or the compiler tells, or else what happened; then the end of what went to standard error.

    >>> from torchmark.model.outcome import FailureKind
    >>> print(describe_failure(Failure(FailureKind.CRASHED, "The process was ended by SIGSEGV.", stderr="bad\\n")))
    The process was ended by SIGSEGV.
    Its last words on standard error:
      bad
    """
    # A traceback ends with what was raised; what led to it may be said nowhere else.
    lines = [failure.message.rstrip()] if failure.traceback and failure.message not in failure.traceback else []
    lines.append((failure.traceback or failure.message).rstrip())
    said = failure.stderr.strip()
    if said and failure.traceback is None:
        lines += ["Its last words on standard error:", *(f"  {line}" for line in said.splitlines())]
    return "\n".join(lines)
