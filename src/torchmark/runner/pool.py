"""The workers of this process: each is started once, shared by all who need its kind, and ended at exit."""

from __future__ import annotations

import atexit
import os
import threading

from torchmark.runner.spec import WorkerSpec
from torchmark.runner.worker import Worker

_workers: dict[WorkerSpec, Worker] = {}
_lock = threading.Lock()


def get_worker(spec: WorkerSpec) -> Worker:
    """The worker of this kind; it is not started by this."""
    with _lock:
        if spec not in _workers:
            _workers[spec] = Worker(spec)
        return _workers[spec]


@atexit.register
def close_workers() -> None:
    """End them all. Whoever needs one later gets a new one.

    Without waiting: a daemon thread may be in the middle of a job that has long to go.
    """
    workers = list(_workers.values())
    _workers.clear()
    for worker in workers:
        worker.abandon()


def _disown_workers() -> None:
    """A fork of this process has copies of all handles, and must not end what is not its own, or keep it alive."""
    global _lock
    # Another thread may have held it, and is not here to release it.
    _lock = threading.Lock()
    for worker in _workers.values():
        worker.disown()
    _workers.clear()


os.register_at_fork(after_in_child=_disown_workers)
