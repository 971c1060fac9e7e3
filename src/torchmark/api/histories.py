"""Cases over the runs of a store, and which interpreters of changes are still there."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from torchmark.analysis.history import confirm, list_neighbours, trace_histories
from torchmark.model.case import Case
from torchmark.model.history import History
from torchmark.model.run import RunInfo
from torchmark.store.runs import Store


def load_histories(
    store: Store, infos: Sequence[RunInfo], pinned: RunInfo | None, admits: Callable[[Case], bool]
) -> tuple[History, ...]:
    """Histories of the cases that are meant. Other cases are loaded only where they may explain something."""
    runs = [store.load(info.id, select=admits) for info in reversed(infos)]
    anchor = None if pinned is None else store.load(pinned.id, select=admits)
    histories = trace_histories(runs, anchor)
    whole = {run_id: store.load(run_id) for run_id in list_neighbours(histories)}
    return tuple(confirm(history, whole) for history in histories)


def find_interpreters(histories: Sequence[History]) -> frozenset[str]:
    """Those of open changes that are still there."""
    paths = {path for history in histories for shift in history.shifts for path in shift.pythons or ()}
    return frozenset(path for path in paths if os.access(path, os.X_OK))
