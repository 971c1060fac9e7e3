"""Compiling the C++ of a command while its worker starts."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Sequence
from types import TracebackType

from torchmark.cli.loading import load_sdk
from torchmark.model.outcome import Failure
from torchmark.model.snippet import Compiled, Snippet
from torchmark.model.task import TaskSpec
from torchmark.report.waiting import COMPILING, show_waiting
from torchmark.runner.building import build_snippets
from torchmark.runner.worker import Worker


def compile_tasks(tasks: Sequence[TaskSpec], worker: Worker, starting: str) -> dict[TaskSpec, Compiled | Failure]:
    """Compile all of them together, and start the worker they are for; `starting` says what that is."""
    snippets = {task: Snippet(task.stmt, task.setup, task.global_setup) for task in tasks}
    if worker.spec.own:
        # The torch to compile against is the one that can be imported here: no need to wait for the worker's answer.
        with show_waiting(f"{starting}, compiling C++"), _Building(snippets.values()) as building:
            worker.start()
            results = building.get()
    else:
        with show_waiting(starting):
            worker.start()
        with show_waiting(COMPILING):
            results = build_snippets(snippets.values(), worker.sdk, os.environ)
    return {task: results[snippet] for task, snippet in snippets.items()}


class _Building:
    """Compiles in a thread of its own, which ends with the block at the latest."""

    def __init__(self, snippets: Collection[Snippet]) -> None:
        self._snippets = snippets
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._build)
        self._results: dict[Snippet, Compiled | Failure] = {}
        self._error: BaseException | None = None

    def __enter__(self) -> _Building:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def get(self) -> dict[Snippet, Compiled | Failure]:
        """Wait for the results, or raise what went wrong."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._results

    def _build(self) -> None:
        try:
            self._results = build_snippets(self._snippets, load_sdk(), os.environ, self._stop)
        except BaseException as error:
            self._error = error
