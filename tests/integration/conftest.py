"""Workers that many tests share: starting one under Valgrind takes half a minute, a job a fraction of a second."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from torchmark.runner.pool import get_worker
from torchmark.runner.spec import own_worker
from torchmark.runner.worker import Worker


@pytest.fixture(scope="session")
def counting_worker() -> Worker:
    """The one that `Timer.collect_callgrind` uses too; it ends with this process."""
    return get_worker(own_worker(os.environ))


@pytest.fixture(scope="session")
def timing_worker() -> Iterator[Worker]:
    worker = Worker(own_worker(os.environ, counting=False))
    yield worker
    worker.close()


@pytest.fixture(params=["counting", "timing"])
def worker(request: pytest.FixtureRequest) -> Worker:
    """Each kind in turn: what holds for a worker holds for both."""
    shared = request.getfixturevalue(f"{request.param}_worker")
    assert isinstance(shared, Worker)
    return shared
