"""Histories as a page that needs nothing else: small drawings of all cases, those that changed first.

Every text goes through the templates' autoescaping, or through that of the drawings. A page of its own, with nothing
of the report's in it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

from torchmark.model.history import History, Shift, ShiftStanding
from torchmark.model.plan import Metric
from torchmark.report.html.templates import render_page
from torchmark.report.plots.history import NAMES, draw_history, format_height, list_values, name_commit
from torchmark.report.text.history import (
    choose_shifts,
    describe_outcome,
    describe_shift,
    format_command,
    format_day,
    name_run,
)
from torchmark.report.text.names import name_case, name_target
from torchmark.report.text.terminal import printable

MEANINGS = {
    ShiftStanding.CONFIRMED: "the case itself became another",
    ShiftStanding.UNCONFIRMED: "times changed, and nothing else that was measured explains it",
    ShiftStanding.ENVIRONMENT: "what is around the case changed: settings, machine, or all cases alike",
    ShiftStanding.REDEFINED: "the case measures something else from there on",
}
# Those of which one should hear first.
_ORDER = (ShiftStanding.CONFIRMED, ShiftStanding.UNCONFIRMED, ShiftStanding.REDEFINED, ShiftStanding.ENVIRONMENT)


@dataclasses.dataclass(frozen=True)
class Card:
    """One case: its drawings, what changed, and its runs from the newest on, as a table."""

    name: str
    place: str
    """Its suite and its target, where there are several."""
    drawings: tuple[str, ...]
    changes: tuple[tuple[str, str, str | None], ...] = ()
    """Of each the run, what changed in words, and the command that would tell more."""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def render_history_page(
    histories: Sequence[History],
    *,
    metrics: Sequence[Metric] = tuple(Metric),
    interpreters: Collection[str] = (),
) -> str:
    """The whole page. `interpreters` are those that are still there, so that commands may use them."""
    ranked = sorted(histories, key=lambda history: _rank(history, metrics))
    suites, targets = len({one.case.suite for one in ranked}) > 1, len({one.target.name for one in ranked}) > 1
    cards = []
    for history in ranked:
        place = [printable(history.case.suite)] if suites else []
        place += [name_target(history.target)] if targets else []
        cards.append(_make_card(history, ", ".join(place), metrics, interpreters))
    used = {shift.standing for history in histories for shift in choose_shifts(history, metrics)}
    moments = [point.run.created for history in histories for point in history.points]
    days = [format_day(min(moments)), format_day(max(moments))] if moments else []
    values = {
        "outcome": describe_outcome(histories, metrics),
        "days": " to ".join(dict.fromkeys(days)),
        "changed": [card for card in cards if card.changes],
        "others": [card for card in cards if not card.changes],
        "meanings": [(standing.value, MEANINGS[standing]) for standing in _ORDER if standing in used],
    }
    return render_page("history.html", ["history.css"], ["history.js"], values)


def _rank(history: History, metrics: Sequence[Metric]) -> tuple[int, float]:
    """What is confirmed comes first, and of that what changed most; else the order stays."""
    shifts = choose_shifts(history, metrics)
    first = min((_ORDER.index(shift.standing) for shift in shifts), default=len(_ORDER))
    sizes = (abs(shift.share or 0.0) for shift in shifts if _ORDER.index(shift.standing) == first)
    return first, -max(sizes, default=0.0)


def _make_card(history: History, place: str, metrics: Sequence[Metric], interpreters: Collection[str]) -> Card:
    """All of a case that changed; of another, its drawings alone, so that many of them are no large page."""
    name = name_case(history.case)
    changes = tuple(_describe_shift(history, shift, interpreters) for shift in choose_shifts(history, metrics))
    shown = [metric for metric in metrics if list_values(history, metric)]
    drawings = tuple(
        draw_history(history, metric, name=f"{name}: {NAMES[metric]} over all runs", hover=bool(changes))
        for metric in shown
    )
    card = Card(name, place, drawings, changes)
    if not changes:
        return card
    columns = ("run", "day", "commit", *(NAMES[metric] for metric in shown))
    return dataclasses.replace(card, columns=columns, rows=_list_cells(history, shown))


def _describe_shift(history: History, shift: Shift, interpreters: Collection[str]) -> tuple[str, str, str | None]:
    run = history.points[shift.position].run
    name = f"{format_day(run.created)} {name_run(run)}"
    return name, describe_shift(shift), format_command(history, shift, interpreters)


def _list_cells(history: History, metrics: Sequence[Metric]) -> tuple[tuple[str, ...], ...]:
    """A row a run, the newest first; blank for what was not measured."""
    series = [{value.position: value for value in list_values(history, metric)} for metric in metrics]
    rows = []
    for i, point in enumerate(history.points):
        cells = [
            format_height(values[i].height, metric).removesuffix(f" {NAMES[metric]}") if i in values else ""
            for metric, values in zip(metrics, series, strict=True)
        ]
        run = point.run
        rows.append((name_run(run), format_day(run.created), name_commit(run, history.case.suite), *cells))
    return tuple(reversed(rows))
