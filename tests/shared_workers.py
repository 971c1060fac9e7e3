"""Workers under Valgrind that many tests share. Each takes twenty seconds to start, and a fraction of one for a job."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
from collections.abc import Collection
from pathlib import Path

from torchmark.api.timer_engines import get_worker
from torchmark.errors import TorchmarkError
from torchmark.runner.spec import WorkerSpec, other_worker, own_worker

DEBIAN = "/usr/bin/python3"

# Whoever is not among them and needs such a worker starts one of its own. `test_suites.py` does: the process of these
# would otherwise be busy long after all others have ended.
SHARING = {
    "integration/test_ab.py",
    "integration/test_compare.py",
    "integration/test_count_command.py",
    "integration/test_counting.py",
    "integration/test_cpp.py",
    "integration/test_other_interpreter.py",
    "integration/test_override_comparison.py",
    "integration/test_overrides.py",
    "integration/test_profiles.py",
    "integration/test_stages.py",
    "tests/test_readme.py",
}


def shares_workers(file: str | os.PathLike[str]) -> bool:
    """Whether the tests of a file are among those that share workers, and so have to run in one process."""
    return "/".join(Path(file).parts[-2:]) in SHARING


def specify(fixture: str) -> WorkerSpec:
    """The kind of worker that the fixture of this name gives."""
    if fixture == "debian_worker":
        return other_worker(DEBIAN, {**os.environ, "PYTHONPATH": "/nowhere/of/ours"}, {})
    return dataclasses.replace(own_worker(os.environ), stacks=fixture == "tracing_worker")


STARTER = "starts workers ahead"
"""The name of the thread that does so: what it makes meanwhile is no test's doing."""

_begun: set[str] = set()


def start_ahead(fixtures: Collection[str]) -> None:
    """Start workers, once each and one after the other, while tests that need none run: many leave a core idle."""
    workers = [get_worker(specify(fixture)) for fixture in fixtures if fixture not in _begun]
    _begun.update(fixtures)

    def start_all() -> None:
        for worker in workers:
            # Whoever needs it tries again, and is told.
            with contextlib.suppress(TorchmarkError):
                worker.start()

    threading.Thread(target=start_all, name=STARTER, daemon=True).start()
