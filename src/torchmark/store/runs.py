"""The store of runs: one file, to which several processes may write at once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType

from torchmark.errors import StoreError
from torchmark.model.case import Case
from torchmark.model.plan import Metric, Plan, Sampling
from torchmark.model.run import Run, RunEntry, RunInfo
from torchmark.store import recorder
from torchmark.store.database import Database
from torchmark.store.finding import find_run
from torchmark.store.opening import open_database
from torchmark.store.reading import read_durations, read_entries, read_info, read_infos, read_number, read_run
from torchmark.store.recorder import Recorder
from torchmark.store.writing import drop_unused, put_activity, put_planned_outcome, put_run


def open_store(path: Path, *, create: bool = False, read_only: bool = False) -> Store:
    """Open the store in a file, and with `create` make it, and its folder, where there is none.

    What is no store of ours, or a newer one, or damaged, is refused with a StoreError and left as it is. A store of an
    earlier version is brought up to date, on the disk only where it is opened for writing.
    """
    return Store(open_database(path, create=create, read_only=read_only))


class Store:
    """An open store. For one thread; others open it themselves."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._database.path

    @property
    def left(self) -> tuple[Path, ...]:
        """Files of an earlier store of the same name that were beside it when it was made, by their new names."""
        return self._database.left

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def begin(self, plan: Plan, info: RunInfo) -> Recorder:
        """Start a run. What `info` says of orders and outcomes is not heeded: they are counted."""
        return recorder.begin(self._database, plan, info)

    def resume(self, run_id: str, plan: Plan) -> Recorder:
        """Go on with a run.

        Outcomes of cases that are still defined as they were stay. Those of cases that are defined otherwise now are
        removed, and those of cases that are no longer planned are set aside, for a plan that has them again.
        """
        return recorder.resume(self._database, run_id, plan)

    def list_runs(self) -> tuple[RunInfo, ...]:
        """All runs, the newest first."""
        with self._database.snapshot():
            return read_infos(self._database)

    def list_entries(self) -> tuple[RunEntry, ...]:
        """All runs, with what else a list of them shows, the newest first."""
        with self._database.snapshot():
            return read_entries(self._database)

    def find(self, reference: str) -> RunInfo:
        """The run that is meant by a name, the beginning of an id, or `@`, `@1` and so on from the newest."""
        return find_run(self.list_runs(), reference)

    def load(self, run_id: str, *, profiles: bool = False, select: Callable[[Case], bool] | None = None) -> Run:
        """A run with its outcomes; costs by function, which are large, only with `profiles`.

        With `select` plan and outcomes are of those cases alone. What `info` counts is of the whole run all the same.
        """
        with self._database.snapshot():
            return read_run(self._database, run_id, profiles=profiles, select=select)

    def durations(self, sampling: Sampling) -> Mapping[tuple[str, str, Metric], float]:
        """How many seconds cases take by this sampling, by suite, key and metric, as far as any has been measured."""
        with self._database.snapshot():
            return read_durations(self._database, sampling)

    def add(self, run: Run) -> RunInfo:
        """Keep a run that was made elsewhere."""
        with self._database.transaction():
            number, subjects = put_run(self._database, run.info, run.plan, None)
            for outcome in run.outcomes:
                put_planned_outcome(self._database, number, run.plan, subjects, outcome)
            for activity in run.activities:
                put_activity(self._database, number, activity)
            return read_info(self._database, run.info.id)

    def remove(self, run_ids: Iterable[str]) -> None:
        """Remove runs, and give back to the disk what only they had; none of them if one cannot be removed."""
        with self._database.transaction():
            for run_id in run_ids:
                number = read_number(self._database, run_id)
                recorder.refuse_running(self._database, run_id)
                self._database.change("DELETE FROM runs WHERE number = ?", number)
            drop_unused(self._database)
        # Others who use the file may be in the way; then it shrinks another time.
        with contextlib.suppress(StoreError):
            self._database.shrink()


DEFAULT_STORE = Path(".torchmark/results.db")
