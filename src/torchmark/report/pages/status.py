"""What has become of an entry, in a word: the verdict where there is one, or else how far it was measured."""

from __future__ import annotations

import enum

from torchmark.model.caveat import Caveat, OtherInstructionSet
from torchmark.model.dossier import Entry
from torchmark.model.judgement import Verdict
from torchmark.model.summary import CaseSummary


class Status(enum.Enum):
    """What rows are told apart by, in the order in which they are listed. The value is the word that is shown."""

    SLOWER = "slower"
    FAILED = "failed"
    FASTER = "faster"
    UNDECIDED = "undecided"
    SAME = "same"
    NOT_COMPARED = "not compared"
    """Something differs that changes numbers by itself."""
    ONLY_BASE = "only in base"
    ONLY_HEAD = "only in head"
    MISSING = "not measured"
    DOUBTFUL = "with caveats"
    MEASURED = "measured"


# What colour vision does not tell, these do.
SIGNS = {
    Status.SLOWER: "▲",
    Status.FASTER: "▼",
    Status.FAILED: "✕",
    Status.UNDECIDED: "?",
    Status.SAME: "=",
    Status.NOT_COMPARED: "≠",
    Status.ONLY_BASE: "−",
    Status.ONLY_HEAD: "+",
    Status.MISSING: "…",
    Status.DOUBTFUL: "!",
    Status.MEASURED: "✓",
}


def find_status(entry: Entry) -> Status:
    """The status of an entry."""
    if entry.judgement is not None:
        return {verdict: Status(verdict.value) for verdict in Verdict}[entry.judgement.verdict]
    there = [one for one in entry.exhibits if one is not None]
    if len(there) < len(entry.exhibits):
        return Status.ONLY_BASE if entry.exhibits[0] is not None else Status.ONLY_HEAD
    if any(one.failures for one in there):
        return Status.FAILED
    if any(one.wall is None and one.count is None for one in there):
        return Status.MISSING
    if len(there) > 1:
        return Status.NOT_COMPARED
    return Status.DOUBTFUL if any(list_own_caveats(one) for one in there) else Status.MEASURED


def list_own_caveats(summary: CaseSummary) -> list[Caveat]:
    """What is to be doubted of this case; what holds for all counts of an environment is told once, and elsewhere."""
    return [caveat for caveat in summary.caveats if not isinstance(caveat, OtherInstructionSet)]
