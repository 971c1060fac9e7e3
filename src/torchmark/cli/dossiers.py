"""From stored runs to the dossier of a report. Costs by function are large, and loaded for a few cases at a time."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence

from torchmark import __version__
from torchmark.analysis.breakdown import break_down, find_only
from torchmark.analysis.comparable import Part
from torchmark.analysis.contrast import CaseId, Contrast, choose_counts, compare_runs, identify, leave_out_incomparable
from torchmark.analysis.dossier import make_entries, make_party
from torchmark.analysis.picturing import picture, share_out_frames
from torchmark.callgrind.symbols import standardise
from torchmark.cli.changed_functions import split
from torchmark.cli.reproducing import Labels, Sides, spell_again, spell_commands
from torchmark.cli.sides import StoredSide, name_sides
from torchmark.model.case import Case
from torchmark.model.costs import Tally
from torchmark.model.dossier import Dossier, Entry
from torchmark.model.flame import Flame
from torchmark.model.run import Run
from torchmark.report.comparing import list_obstacles
from torchmark.report.pages.method import word_method
from torchmark.report.variants import name_case
from torchmark.store.runs import Store


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What is asked of a report."""

    title: str | None = None
    flames: bool = True
    force: bool = False
    """Judge also what is not comparable."""
    store: str = ""
    """What commands have to say of the store."""
    options: tuple[str, ...] = ()
    """The options that make the page what it is, as they are typed."""


def load_dossier(store: Store, sides: Sequence[StoredSide], wanted: Wanted, select: Callable[[Case], bool]) -> Dossier:
    """The results of a side, or of base and head."""
    parts = [Part(store.load(side.info.id, select=select), side.target) for side in sides]
    contrast = _compare(parts, force=wanted.force) if len(parts) == 2 else Contrast(())
    names = list(name_sides(sides[0], sides[1])) if len(sides) == 2 else [sides[0].name]
    spelt = dataclasses.replace(_name_commands(sides, names, parts, wanted.store), force=wanted.force)
    labels = Labels(case for part in parts for case in part.run.plan.cases)
    entries = [
        dataclasses.replace(entry, commands=spell_commands(entry.case, labels, spelt))
        for entry in make_entries(parts, contrast)
    ]
    return Dossier(
        title=wanted.title if wanted.title is not None else " against ".join(reversed(names)),
        parties=tuple(make_party(part, name, side.title) for part, name, side in zip(parts, names, sides, strict=True)),
        entries=tuple(_add_functions(store, sides, names, entries, flames=wanted.flames)),
        created=time.time(),
        torchmark=__version__,
        method=word_method([part.run.plan.sampling for part in parts], in_turns=len({s.info.id for s in sides}) == 1),
        remarks=_word_refusal(contrast),
        commands=spell_again(spelt, wanted.options),
    )


def _compare(parts: Sequence[Part], *, force: bool) -> Contrast:
    """Judgements, and why there are none, or fewer than there could be; no obstacles where they are overridden."""
    base, head = parts
    contrast = compare_runs(base.run, base.target, head.run, head.target, standardise)
    if force:
        return dataclasses.replace(contrast, obstacles=(), case_obstacles=())
    return leave_out_incomparable(contrast)


def _word_refusal(contrast: Contrast) -> tuple[str, ...]:
    obstacles = list_obstacles(contrast)
    if not obstacles:
        return ()
    which = "These results are not comparable" if contrast.obstacles else "Some cases are not comparable"
    return ("\n".join([f"{which}; --force judges them all the same, and keeps the caveat.", *obstacles]),)


def _name_commands(sides: Sequence[StoredSide], names: Sequence[str], parts: Sequence[Part], store: str) -> Sides:
    pythons = [_find_python(part.run, side) for part, side in zip(parts, sides, strict=True)]
    if len(sides) == 1:
        return Sides(names[0], pythons[0] if sides[0].target.python else None, store=store)
    return Sides(names[1], pythons[1], names[0], pythons[0], store)


def _find_python(run: Run, side: StoredSide) -> str | None:
    """The interpreter, if all results are of one."""
    found = {one.environment.python for one in run.outcomes if one.environment and one.order.target == side.target}
    return side.target.python or (found.pop() if len(found) == 1 else None)


def _add_functions(
    store: Store, sides: Sequence[StoredSide], names: Sequence[str], entries: Sequence[Entry], *, flames: bool
) -> list[Entry]:
    """Where instructions go, of what was counted."""
    counted = [identify(one.case) for one in entries if any(side is not None and side.count for side in one.exhibits)]
    most = share_out_frames(len(counted)) if flames else 0
    found: dict[CaseId, Entry] = {identify(entry.case): entry for entry in entries}
    for batch in split(counted):
        tallies = [_load_tallies(store, side, batch) for side in sides]
        for key in batch:
            found[key] = _illustrate(found[key], [side.get(key) for side in tallies], names, most)
    return list(found.values())


def _load_tallies(store: Store, side: StoredSide, keys: frozenset[CaseId]) -> dict[CaseId, Tally]:
    run = store.load(side.info.id, profiles=True, select=lambda case: identify(case) in keys)
    return {key: counted.tally for key, counted in choose_counts(run, side.target).items()}


def _illustrate(entry: Entry, tallies: Sequence[Tally | None], names: Sequence[str], most: int) -> Entry:
    flames: list[Flame | None] = []
    if most and entry.obstacles and find_only(tallies) is None:
        # What is not compared has no difference: a graph for each side.
        flames = [picture([tally], name, most // 2) for tally, name in zip(tallies, names, strict=True)]
    elif most:
        flames = [picture(tallies, name_case(entry.case), most)]
    drawn = tuple(flame for flame in flames if flame is not None)
    return dataclasses.replace(entry, breakdown=break_down(tallies, standardise), flames=drawn)
