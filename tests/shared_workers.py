"""Workers under Valgrind that many tests share. Each takes twenty seconds to start, and a fraction of one for a job."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Collection

from torchmark.errors import TorchmarkError
from torchmark.runner.pool import get_worker
from torchmark.runner.spec import WorkerSpec, other_worker, own_worker

DEBIAN = "/usr/bin/python3"


def specify(fixture: str) -> WorkerSpec:
    """The kind of worker that the fixture of this name gives."""
    if fixture == "debian_worker":
        return other_worker(DEBIAN, {**os.environ, "PYTHONPATH": "/nowhere/of/ours"}, {"MY_SWITCH": "on"})
    return own_worker(os.environ, simulate=fixture == "simulating_worker")


def start_ahead(fixtures: Collection[str]) -> None:
    """Start workers one after the other while tests that need none run: most of those leave a core idle."""
    workers = [get_worker(specify(fixture)) for fixture in fixtures]

    def start_all() -> None:
        for worker in workers:
            # Whoever needs it tries again, and is told.
            with contextlib.suppress(TorchmarkError):
                worker.start()

    threading.Thread(target=start_all, daemon=True).start()
