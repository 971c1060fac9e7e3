"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.checked_json import check_document
from tests.in_process import Program, make_program
from tests.shared_workers import shares_workers
from tests.stub_python import find_pythons
from torchmark.api.timer_engines import close_workers
from torchmark.report.text.terminal import escape_json

# A busy machine is no reason for a test to fail, and a change that lands is judged on the same examples each time.
settings.register_profile("torchmark", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("torchmark")


class WorkersStaySchedule(LoadScopeScheduling):  # type: ignore[misc]
    """Files go to whichever process is free; those that share workers go to one of them, together.

    Marks would do (`xdist_group`), but pytest-xdist 3.8 loses them with pytest 9.2: they never reach the process that
    hands out tests.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "shared workers" if shares_workers(file) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> WorkersStaySchedule:
    """For `pytest -n`."""
    return WorkersStaySchedule(config, log)


def pytest_collection_finish() -> None:
    """What collecting has made stays: collections of garbage need not look through millions of objects each time."""
    gc.collect()
    gc.freeze()


def pytest_report_header() -> str:
    """Which interpreters are tested besides the one that runs the tests."""
    return f"counting is tested with CPython {', '.join(find_pythons())}"


@pytest.fixture(scope="session", autouse=True)
def interrupts() -> None:
    """As in a terminal: what a shell starts in the background, or nohup starts, has them ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def folders_of_their_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither find what a developer has compiled nor fill the cache with what they compile.

    And they wait for no run beside them: runs that take turns do so by files in the folder for temporary ones. Its name
    has the same length each time, and so have the variables of workers: their heaps are alike, whoever runs the tests.
    """
    temporary = tempfile.TemporaryDirectory(prefix="tests-of-torchmark-", ignore_cleanup_errors=True)
    with temporary as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHMARK_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("TMPDIR", folder)
        patch.setenv("XDG_RUNTIME_DIR", folder)
        patch.setattr(tempfile, "tempdir", None)
        yield
        # At exit they would look for folders that are gone.
        close_workers()


@pytest.fixture(scope="session", autouse=True)
def documents_have_their_schemas() -> Iterator[None]:
    """Whatever a command in this process writes with --json is held to its schema."""

    def check_and_escape(text: str) -> str:
        if '"schema": "torchmark.' in text:
            check_document(text)
        return escape_json(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torchmark.cli.options.escape_json", check_and_escape)
        yield


@pytest.fixture(autouse=True)
def colours_as_if_nobody_had_said_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own NO_COLOR does not change what tables look like in tests."""
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Program:
    """The command line in this process: what it counts, it counts with the worker that other tests have started."""
    return make_program(monkeypatch, capfd)
