"""What the page says first: a headline, and sentences that tell the rest in the order in which people ask."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from torchmark.analysis.gate import hold_gate
from torchmark.model.dossier import Dossier, Entry
from torchmark.model.gate import FailOn, GateResult, Policy
from torchmark.model.judgement import Judgement
from torchmark.report.changes import show_delta, to_share
from torchmark.report.judgement_facts import say_change
from torchmark.report.pages.status import Status, find_status
from torchmark.report.pages.surroundings import sum_up
from torchmark.report.printable import count, printable
from torchmark.report.units import show_share
from torchmark.report.variants import Variants

# What a gate stops unless somebody says otherwise.
STOPS = frozenset({FailOn.SLOWER, FailOn.FAILED, FailOn.MISSING})
# Below this, no stage is told to be the one that a change is in.
MAIN_SHARE = 0.4
# From here on, what other stages gain and lose is hardly more than noise.
ALL = 0.995
# As a share: what is more than elevenfold is drawn as such, else all other bars would vanish beside it.
MOST_CHANGE = 10.0


def is_compared(dossier: Dossier) -> bool:
    """Whether there are two parties to be held against each other."""
    return len(dossier.parties) == 2


def make_headline(dossier: Dossier) -> str:
    """The answer in a few words."""
    found = Counter(find_status(entry) for entry in dossier.entries)
    total = sum(found.values())
    if not total:
        return "There are no cases"
    if not is_compared(dossier):
        return _head_results(found, total)
    judged = Counter(find_status(entry) for entry in dossier.entries if entry.judgement is not None)
    return _head_comparison(judged) if judged else "Nothing was compared"


def _head_comparison(found: Counter[Status]) -> str:
    judged = sum(found.values())
    slower, faster, failed, undecided = (
        found[one] for one in (Status.SLOWER, Status.FASTER, Status.FAILED, Status.UNDECIDED)
    )
    if slower:
        also = f", {faster} {_are(faster)} faster" if faster else ""
        return f"{slower} of {count(judged, 'case')} {_are(slower)} slower{also}"
    if faster:
        return f"No case is slower, {faster} of {judged} {_are(faster)} faster"
    if failed == judged:
        return "Every case failed" if judged > 1 else "The case failed"
    if undecided:
        return f"No change was found; {undecided} of {count(judged, 'case')} {_are(undecided)} undecided"
    return f"Nothing changed in {count(judged - failed, 'case')}" + (f", {failed} failed" if failed else "")


def _head_results(found: Counter[Status], total: int) -> str:
    failed, missing = found[Status.FAILED], found[Status.MISSING]
    if failed == total:
        return "Every case failed" if total > 1 else "The case failed"
    if failed or missing:
        parts = [f"{failed} failed"] * bool(failed) + [f"{missing} {_are(missing)} not measured yet"] * bool(missing)
        return f"{total - failed - missing} of {count(total, 'case')} measured, {', '.join(parts)}"
    return f"{count(total, 'case')} measured" + ("" if not found[Status.DOUBTFUL] else f", {_word_doubtful(found)}")


def _word_doubtful(found: Counter[Status]) -> str:
    return f"{found[Status.DOUBTFUL]} with caveats"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def name_parties(dossier: Dossier) -> str:
    """What is reported on, with what it was measured in."""
    names = [
        f"{printable(one.name)} ({about})" if (about := sum_up(one)) else printable(one.name)
        for one in reversed(dossier.parties)
    ]
    return " against ".join(names)


def tell_story(dossier: Dossier) -> list[str]:
    """How many cases of each kind there are, the worst of them, and where that comes from."""
    if not is_compared(dossier):
        return [text for text in (_tell_measured(dossier), _tell_stages(dossier.entries)) if text]
    slower, faster = (
        [entry for entry in dossier.entries if find_status(entry) is status]
        for status in (Status.SLOWER, Status.FASTER)
    )
    extremes = [_name_extreme(slower, "the worst", dossier), _name_extreme(faster, "the best", dossier)]
    texts = ["; ".join(filter(None, [_count_up(dossier.entries), *extremes])) + "."]
    # Who has something to worry about does not want to hear of gains first.
    texts.append(_tell_cause(slower, "slower") if slower else _tell_cause(faster, "faster"))
    return [text for text in texts if text]


def _count_up(entries: Sequence[Entry]) -> str:
    """A sentence in which every case is counted once."""
    found = Counter(find_status(entry) for entry in entries)
    parts = [f"{found[one]} {one.value}" for one in Status if found[one]]
    return f"Of {count(len(entries), 'case')}, {', '.join(parts)}" if entries else "There are no cases"


def _name_extreme(entries: Sequence[Entry], extreme: str, dossier: Dossier) -> str:
    """The largest change in one direction, with its number."""
    judged = [entry.judgement for entry in entries if entry.judgement is not None]
    if not judged:
        return ""
    largest = max(judged, key=lambda one: abs(find_change(one)[0]))
    name = Variants(entry.case for entry in dossier.entries).name(largest.case)
    return f"{extreme} is {name} ({say_change(largest)})"


def find_change(judgement: Judgement) -> tuple[float, float, float]:
    """The change that is told, as a share, and its interval; instructions have none. Nothing is more than tenfold."""
    time, counted = judgement.time, judgement.count
    if time is not None and (time.verdict is judgement.verdict or counted is None):
        values = to_share(time.log_ratio), to_share(time.low), to_share(time.high)
    else:
        values = (0.0 if counted is None else counted.ratio,) * 3
    share, low, high = (0.0 if math.isnan(value) else max(min(value, MOST_CHANGE), -1.0) for value in values)
    return share, low, high


def _tell_measured(dossier: Dossier) -> str:
    timed, counted = (
        sum(any(one is not None and getattr(one, what) for one in entry.exhibits) for entry in dossier.entries)
        for what in ("wall", "count")
    )
    parts = [f"{timed} timed"] * bool(timed) + [f"{counted} counted"] * bool(counted)
    return f"Of {count(len(dossier.entries), 'case')}, {' and '.join(parts) or 'nothing was measured'}."


def _tell_stages(entries: Sequence[Entry]) -> str:
    """The stage that most of a case's instructions are in, over all cases."""
    shares = add_up_shares(entries)
    if not shares:
        return ""
    stage, share = max(shares.items(), key=lambda one: one[1])
    return (
        f"On average, {show_share(share).replace('%', ' %')} of the instructions of a case are in the stage “{stage}”."
    )


def add_up_shares(entries: Sequence[Entry]) -> dict[str, float]:
    """What part of its instructions a case has in each stage, in the mean of all cases."""
    shares: dict[str, float] = {}
    told = [entry.breakdown for entry in entries if entry.breakdown is not None]
    for breakdown in told:
        total = sum(stage.head for stage in breakdown.stages)
        for stage in breakdown.stages:
            shares[stage.stage] = shares.get(stage.stage, 0.0) + (stage.head / total / len(told) if total else 0.0)
    return {stage: share for stage, share in shares.items() if share > 0}


def add_up_changes(entries: Sequence[Entry]) -> dict[str, float]:
    """How many instructions more each stage takes, in all of these cases together."""
    deltas: dict[str, float] = {}
    # A side that was not counted gives no difference.
    told = [one.breakdown for one in entries if one.breakdown is not None and one.breakdown.only is None]
    for breakdown in told:
        for stage in breakdown.stages:
            deltas[stage.stage] = deltas.get(stage.stage, 0.0) + stage.delta
    return {stage: delta for stage, delta in deltas.items() if round(delta)}


def _tell_cause(entries: Sequence[Entry], word: str) -> str:
    """Where the instructions went that changed with the time; empty where they are not known, or did not change."""
    deltas = add_up_changes(entries)
    total = sum(deltas.values())
    sign = 1 if word == Status.SLOWER.value else -1
    if total * sign <= 0:
        return ""
    stage, most = max(deltas.items(), key=lambda one: one[1] * sign)
    which = f"The {word} case takes" if len(entries) == 1 else f"All {word} ones together take"
    text = f"{which} {show_delta(abs(total)).lstrip('+')} {'more' if sign > 0 else 'fewer'} instructions a run"
    # Of all that stages gained, whatever others lost.
    share = most / sum(delta for delta in deltas.values() if delta * sign > 0)
    if share < MAIN_SHARE:
        return f"{text}."
    if any(delta * sign < 0 for delta in deltas.values()):
        return f"{text}. The stage that {'gained' if sign > 0 else 'lost'} most is {stage} ({show_delta(most)})."
    how_much = "all" if share >= ALL else show_share(share).replace("%", " %")
    return f"{text}, {how_much} of them in the stage “{stage}”."


def hold_default_gate(dossier: Dossier) -> GateResult | None:
    """What a gate would say that lets nothing through; None where there is nothing to hold against anything."""
    judgements: list[Judgement] = [entry.judgement for entry in dossier.entries if entry.judgement is not None]
    if not judgements:
        return None
    missing = [entry.case for entry in dossier.entries if find_status(entry) is Status.ONLY_BASE]
    return hold_gate(judgements, missing, {}, Policy(STOPS))
