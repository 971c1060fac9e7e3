from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tests.fake_backend import FakeBackend
from tests.stored_runs import PLAN
from torchmark.api.runs import RunRequest, RunTask, check_name
from torchmark.define.selection import CaseOptions
from torchmark.errors import UsageError
from torchmark.model.outcome import Begun, Outcome
from torchmark.model.task import Times
from torchmark.processes import StopRequest
from torchmark.store.runs import open_store

REQUEST = RunRequest(
    names=("standard",),
    chosen=CaseOptions(),
    metrics=PLAN.sampling.metrics,
    targets=PLAN.targets,
    repeat=1,
    min_run_time=0.2,
    layouts=5,
    timeout=600.0,
)


@pytest.mark.parametrize("name", [None, "nightly", "it's 2", "deadbeef", "ünï"])
def test_a_name_is_what_one_can_type(name: str | None) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", " ", "@", "@1", "-k", "red\033[31m"])
def test_a_name_that_would_mean_something_else_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a run"):
        check_name(name)


def make_backend() -> FakeBackend:
    return FakeBackend(lambda order: Times(1, (1.0,)))


def test_a_run_needs_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    events = list(RunTask(None, PLAN, REQUEST).run(make_backend(), StopRequest()))
    assert [event.order for event in events if isinstance(event, Outcome)] == list(PLAN.orders)
    assert not any(tmp_path.iterdir())


def test_an_outcome_is_saved_before_it_is_handed_on_and_what_is_missing_goes_on(tmp_path: Path) -> None:
    with open_store(tmp_path / "results.db", create=True) as store:
        task = RunTask(store, PLAN, REQUEST)
        with contextlib.closing(task.run(make_backend(), StopRequest())) as events:
            outcome = next(event for event in events if isinstance(event, Outcome))
            (info,) = store.list_runs()
            assert store.load(info.id).outcomes == (outcome,)
        again = RunTask(store, PLAN, REQUEST, resumed=info)
        begun = [event.what for event in again.run(make_backend(), StopRequest()) if isinstance(event, Begun)]
        assert begun == list(PLAN.orders[1:])
        assert list(again.load_settled()) == list(PLAN.orders)
        assert store.list_runs()[0].finished is not None
