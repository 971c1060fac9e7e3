"""A failure as text: what the user's code did, in its own words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from torchmark.model.outcome import Failure, FailureKind


def describe_failure(failure: Failure) -> str:
    """What the traceback or the compiler tells, or else what happened; then the end of what went to standard error.

    >>> from torchmark.model.outcome import FailureKind
    >>> print(describe_failure(Failure(FailureKind.CRASHED, "The process was ended by SIGSEGV.", stderr="bad\\n")))
    The process was ended by SIGSEGV.
    Its last words on standard error:
      bad
    """
    lines = [(failure.traceback or failure.message).rstrip()]
    # A traceback ends with what was raised, and a compiler says it all. What else led to it may be said nowhere else.
    if failure.message.rstrip() not in lines[0] and failure.kind is not FailureKind.NOT_COMPILED:
        lines.insert(0, failure.message.rstrip())
    said = failure.stderr.strip()
    if said and failure.traceback is None:
        lines += ["Its last words on standard error:", *(f"  {line}" for line in said.splitlines())]
    return "\n".join(lines)


def sum_up_failure(failure: Failure) -> str:
    """What happened, on one line.

    >>> sum_up_failure(Failure(FailureKind.RAISED, "It fails when it is run once.", "Traceback\\n...\\nNameError: x"))
    'It fails when it is run once. NameError: x'
    >>> sum_up_failure(Failure(FailureKind.RAISED, 'File "<stmt>", line 1\\n  f(\\nSyntaxError: never closed'))
    'SyntaxError: never closed'
    """
    lines = [line.strip() for line in failure.message.splitlines() if line.strip()]
    # A syntax error begins with the place and ends with what is wrong there.
    message = "" if not lines else lines[-1] if lines[0].startswith('File "') else lines[0]
    raised = [line.strip() for line in (failure.traceback or "").splitlines() if line.strip()]
    # A traceback ends with what was raised; what a compiler says does not end with the error.
    if raised and failure.kind is not FailureKind.NOT_COMPILED and raised[-1] not in failure.message:
        message = f"{message} {raised[-1]}".strip()
    return message or failure.kind.value.replace("_", " ")


def give_hint(failure: Failure) -> str | None:
    """What to do about a failure of a statement on the command line, where that is the same for everybody.

    >>> give_hint(Failure(FailureKind.RAISED, "NameError: name 'x' is not defined"))
    'Define the name with --setup, such as --setup "x = torch.ones(4)".'
    """
    if failure.kind is FailureKind.TIMED_OUT:
        return "Give it more time with --timeout SECONDS."
    missing = re.search(r"^NameError: name '(\w+)' is not defined", describe_failure(failure), re.MULTILINE)
    return missing and f'Define the name with --setup, such as --setup "{missing[1]} = torch.ones(4)".'


def list_hints(failures: Iterable[Failure]) -> list[str]:
    """What to do about these failures, each advice once."""
    return list(dict.fromkeys(filter(None, map(give_hint, failures))))
