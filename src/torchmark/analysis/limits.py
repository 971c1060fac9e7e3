"""Limits as people write them, and which of them holds for a case."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from torchmark.errors import UsageError
from torchmark.model.case import Case
from torchmark.model.gate import FailOn, Limit, Witness

_LIMIT = re.compile(
    r"(?P<witness>\w+):(?P<number>\d+(?:\.\d*)?|\.\d+)(?P<percent>\s*%)?(?:@(?P<pattern>.+))?", re.ASCII
)
# Nobody lets through more, and a number with hundreds of digits is none.
MOST = 1e15
_EXAMPLES = "Say for instance Ir:0.3%, Ir:50 or time:2%@training/*."


def parse_limit(text: str) -> Limit:
    """A witness, how much more of it is let through, and for which cases if not for all.

    >>> parse_limit("time:2%@training/*")
    Limit(witness=<Witness.TIME: 'time'>, share=0.02, amount=0.0, pattern='training/*')
    >>> parse_limit("Ir:50").amount
    50.0
    """
    match = _LIMIT.fullmatch(text.strip())
    witnesses = {one.value.casefold(): one for one in Witness}
    if match is None or match["witness"].casefold() not in witnesses or float(match["number"]) > MOST:
        names = ", ".join(one.value for one in Witness)
        raise UsageError(
            f"{text!r:.80} is no limit: it has one of {names} before a colon, and how much more. {_EXAMPLES}"
        )
    witness, number = witnesses[match["witness"].casefold()], float(match["number"])
    if match["percent"]:
        return Limit(witness, share=number / 100, pattern=match["pattern"])
    if witness is Witness.TIME:
        # Seconds of one machine say nothing on another.
        raise UsageError(f"{text!r:.80} is no limit: of time a share is let through. {_EXAMPLES}")
    return Limit(witness, amount=number, pattern=match["pattern"])


def parse_fail_on(text: str) -> frozenset[FailOn]:
    """What stops, separated by commas.

    >>> sorted(one.value for one in parse_fail_on("slower, failed"))
    ['failed', 'slower']
    """
    known = {one.value: one for one in FailOn}
    names = [name.strip().lower() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise UsageError(
                f"--fail-on takes {', '.join(known)}, or several of them separated by commas, not {name!r:.80}."
            )
    return frozenset(known[name] for name in names)


def find_limit(limits: Sequence[Limit], witness: Witness, case: Case) -> Limit | None:
    """The limit that holds for a case: of those that fit, the last one with a pattern, or else the last one."""
    fitting = [limit for limit in limits if limit.witness is witness and _fits(limit.pattern, case)]
    special = [limit for limit in fitting if limit.pattern is not None]
    return next(reversed(special or fitting), None)


def _fits(pattern: str | None, case: Case) -> bool:
    return pattern is None or fnmatch.fnmatchcase(name_path(case), pattern)


def name_path(case: Case) -> str:
    """What patterns are held against: the label as a path."""
    return "/".join(case.label)
