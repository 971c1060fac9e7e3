"""Which run is meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from torchmark.errors import UsageError
from torchmark.model.run import RunInfo

SHORTEST_PREFIX = 4
_BACK = re.compile(r"@(\d{0,9})")
# How many names an error lists.
_SOME = 5


def find_run(infos: Sequence[RunInfo], reference: str) -> RunInfo:
    """The run of a name, or of the beginning of its id, or `@` for the newest and `@1` for the one before.

    `infos` are all there are, the newest first. Of several runs of one name the newest is meant.
    """
    if not infos:
        raise UsageError("There are no runs in the store yet.")
    if match := _BACK.fullmatch(reference):
        back = int(match[1] or 0)
        if back < len(infos):
            return infos[back]
        raise UsageError(f"There is no {reference}: the oldest run is @{len(infos) - 1}.")
    named = [info for info in infos if info.name == reference]
    if named:
        return named[0]
    begun = [info for info in infos if info.id.startswith(reference.lower())]
    if len(reference) < SHORTEST_PREFIX or not begun:
        raise UsageError(f"There is no run {reference!r}. {_suggest(infos, reference)}")
    if len(begun) > 1:
        raise UsageError(f"{reference!r} is the beginning of several runs: {_list(begun)}. Give more of it.")
    return begun[0]


def _suggest(infos: Sequence[RunInfo], reference: str) -> str:
    names = list(dict.fromkeys(info.name for info in infos))
    near = difflib.get_close_matches(reference, names, n=_SOME)
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    return f"There is {_list(infos)}. @ is the newest."


def _list(infos: Sequence[RunInfo]) -> str:
    texts = [f"{info.name!r} ({info.id[:8]})" for info in infos[:_SOME]]
    rest = len(infos) - len(texts)
    return ", ".join(texts) + (f" and {rest} more" if rest else "")
