"""What the table can be filtered by: only what tells some of the cases from others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from torchmark.model.dossier import Entry
from torchmark.report.pages.columns import find_main_stage
from torchmark.report.pages.status import Status, find_status
from torchmark.report.printable import printable

# Longer lists are no longer chosen from; searching finds those.
MOST_VALUES = 40
NONE = "none"


class Facet(NamedTuple):
    """A way to tell cases apart: the values that occur, and for each case the numbers of those that it has."""

    key: str
    title: str
    values: list[str]
    of_cases: list[list[int]]


def find_facets(entries: Sequence[Entry], kinds: Sequence[Sequence[str]]) -> list[Facet]:
    """Those that some cases differ in. `kinds` are the kinds of caveats that each entry has."""
    judged = any(entry.judgement is not None for entry in entries)
    read: tuple[tuple[str, str, Callable[[Entry], Sequence[str]]], ...] = (
        ("verdict", "Verdict" if judged else "Result", lambda entry: [find_status(entry).value]),
        ("suite", "Suite", lambda entry: [entry.case.suite]),
        ("language", "Language", lambda entry: [entry.case.autolabels.as_dict["language"]]),
        ("runtime", "Runtime", lambda entry: [entry.case.autolabels.as_dict["runtime"]]),
        ("autograd", "Autograd", lambda entry: [entry.case.autolabels.as_dict["autograd"]]),
        ("threads", "Threads", lambda entry: [str(entry.case.args.num_threads)]),
        ("stage", "Stage", _name_stage),
        ("tag", "Tag", lambda entry: entry.case.tags),
    )
    facets = [_make_facet(key, title, [ask(entry) for entry in entries]) for key, title, ask in read]
    facets.append(_make_facet("caveat", "Caveat", [[kind.replace("_", " ") for kind in one] for one in kinds]))
    return [facet for facet in facets if 1 < len(facet.values) <= MOST_VALUES]


def _name_stage(entry: Entry) -> list[str]:
    stage = find_main_stage(entry)
    return [] if stage is None else [stage.stage]


def _make_facet(key: str, title: str, found: Sequence[Sequence[str]]) -> Facet:
    """What a case does not have is a value too, where others have one."""
    texts = [list(dict.fromkeys(printable(text) or NONE for text in one)) or [NONE] for one in found]
    order = {status.value: i for i, status in enumerate(Status)}
    values = sorted({text for one in texts for text in one}, key=lambda text: (text == NONE, order.get(text, 0), text))
    numbers = {text: i for i, text in enumerate(values)}
    return Facet(key, title, values, [[numbers[text] for text in one] for one in texts])
