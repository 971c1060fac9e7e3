"""The file that the instruction count benchmarks of PyTorch leave in its CI.

Its keys are the cases alone, so one target has to be chosen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from torchmark.errors import UsageError
from torchmark.model.plan import Metric
from torchmark.model.run import Run
from torchmark.report.formats.entries import Entry, list_entries, require
from torchmark.report.formats.texts import dump_json

# Of the keys of the standard suite, one behind the other; there and here.
STANDARD_MD5 = "4d55e8abf881ad38bb617a96714c1296"
STANDARD_VERSION = 0
OTHER_VERSION = -1
# Counts are of so many runs there, however many were counted here.
RUNS = 100


def write_upstream(run: Run) -> str:
    """Seconds per run of all blocks, and instructions of 100 runs in all layouts, by case.

    The version is the one of the standard suite only if all of it has both.
    """
    if len(run.plan.targets) > 1:
        names = ", ".join(repr(target.name) for target in run.plan.targets)
        raise UsageError(f"This format cannot tell targets apart: choose one of {names} with --env.")
    entries = list_entries(run)
    require(run, entries, Metric.WALL, Metric.COUNT)
    values = _list_values(entries)
    md5 = hashlib.md5("".join(values).encode(), usedforsecurity=False).hexdigest()
    whole = md5 == STANDARD_MD5 and all(all(results.values()) for results in values.values())
    ended = max((outcome.ended for outcome in run.outcomes), default=run.info.created)
    return dump_json(
        {
            "version": STANDARD_VERSION if whole else OTHER_VERSION,
            "md5": md5,
            "start_time": int(run.info.created),
            "end_time": int(run.info.finished or ended),
            "values": values,
        }
    )


def _list_values(entries: Sequence[Entry]) -> dict[str, dict[str, list[float] | list[int]]]:
    values: dict[str, dict[str, list[float] | list[int]]] = {}
    for entry in entries:
        key = entry.summary.case.key
        if key in values:
            raise UsageError(f"Two cases have the same key in this format: {key}. Choose one of them with -k.")
        if entry.timed or entry.counted:
            values[key] = {"times": _list_times(entry), "counts": _list_counts(entry)}
    return values


def _list_times(entry: Entry) -> list[float]:
    return [t for _, times in entry.timed for t in times.per_run]


def _list_counts(entry: Entry) -> list[int]:
    return [round(total * RUNS / tally.number) for _, tally in entry.counted for total in tally.totals]
