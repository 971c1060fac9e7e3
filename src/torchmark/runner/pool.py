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
    """End them all. Whoever needs one later gets a new one."""
    with _lock:
        for worker in _workers.values():
            worker.close()
        _workers.clear()


def _disown_workers() -> None:
    """A fork of this process has copies of all handles, and must not end what is not its own, or keep it alive."""
    for worker in _workers.values():
        worker.disown()
    _workers.clear()


os.register_at_fork(after_in_child=_disown_workers)
