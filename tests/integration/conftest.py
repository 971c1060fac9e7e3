"""Workers that many tests share, and their start ahead of the tests that need them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from tests.browser import Browser, start_browser
from tests.shared_workers import shares_workers, specify, start_ahead
from tests.stub_python import make_stub_python
from torchmark.api.timer_engines import get_worker
from torchmark.runner.spec import own_worker
from torchmark.runner.worker import Worker

# In the order in which tests come to need them, and the fixtures that tell.
UNDER_VALGRIND = {
    "counting_worker": {"counting_worker", "worker"},
    "debian_worker": {"debian_worker"},
}


@pytest.fixture(scope="module", autouse=True)
def workers_started_ahead(request: pytest.FixtureRequest, folders_of_their_own: None) -> None:
    """With the first file that shares workers, all that such files will need."""
    if shares_workers(request.path):
        sharing = [item for item in request.session.items if shares_workers(item.path)]
        needed = {name for item in sharing for name in getattr(item, "fixturenames", ())}
        start_ahead([fixture for fixture, telling in UNDER_VALGRIND.items() if telling & needed])


@pytest.fixture(scope="session")
def counting_worker() -> Worker:
    """The one that `Timer.collect_callgrind` uses too; it ends with this process."""
    return get_worker(specify("counting_worker"))


@pytest.fixture(scope="session")
def debian_worker() -> Worker:
    """One of another interpreter; the command line uses it too."""
    return get_worker(specify("debian_worker"))


@pytest.fixture(scope="session")
def tracing_worker() -> Worker:
    """One that counts with all callers; the command line uses it too. A single file needs it."""
    return get_worker(specify("tracing_worker"))


@pytest.fixture(scope="session")
def timing_worker() -> Worker:
    """One without Valgrind."""
    return get_worker(own_worker(os.environ, counting=False))


@pytest.fixture(scope="session")
def stub_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that is up at once."""
    return make_stub_python(tmp_path_factory.mktemp("stub") / "python")


@pytest.fixture
def own_stub(stub_python: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same as this program's own Python, for claims that do not depend on what torch does."""
    monkeypatch.setattr(sys, "executable", stub_python)
    return stub_python


@pytest.fixture(scope="session")
def stub_program(stub_python: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program in a process of its own, with the stub as its own Python: its workers are up at once."""
    file = tmp_path_factory.mktemp("program") / "torchmark"
    file.write_text(
        f"#!{sys.executable}\nimport sys\nsys.executable = {stub_python!r}\n"
        "from torchmark.cli.main import main\nsys.exit(main())\n"
    )
    file.chmod(0o755)
    return str(file)


@pytest.fixture(params=["counting", "timing"])
def worker(request: pytest.FixtureRequest) -> Worker:
    """Each kind in turn: what holds for a worker holds for both."""
    shared = request.getfixturevalue(f"{request.param}_worker")
    assert isinstance(shared, Worker)
    return shared


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One for all pages; every test opens its own."""
    with start_browser() as started:
        yield started
