from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stored_runs import INFO, PLAN, make_run
from torchmark.api.resume import find_resumable
from torchmark.api.runs import RunRequest, describe_run
from torchmark.define.selection import CaseOptions
from torchmark.errors import UsageError
from torchmark.model.plan import Target
from torchmark.model.run import RunInfo
from torchmark.runner.machine import read_cpu_model
from torchmark.store.runs import Store, open_store

# All that a run starts and imports stands on the command line.
NAMED = {"names", "envs"}
HOST = dataclasses.replace(INFO.host, cpu_model=read_cpu_model(Path("/")))


def request(*names: str) -> RunRequest:
    return RunRequest(
        names=names,
        chosen=CaseOptions(),
        metrics=PLAN.sampling.metrics,
        targets=PLAN.targets,
        repeat=1,
        min_run_time=0.2,
        layouts=5,
        timeout=600.0,
    )


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """With a run that began in the folder `project`, beside which it lies."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    options = (("names", ("b.py", "standard")), ("folder", ("project",)))
    with open_store(tmp_path / "results.db", create=True) as store:
        store.add(dataclasses.replace(make_run(), info=dataclasses.replace(INFO, host=HOST, options=options)))
        yield store


@pytest.mark.parametrize("spelt", ["b.py", "./b.py", "../project/b.py"])
def test_a_run_is_found_however_its_files_are_spelt(spelt: str, store: Store) -> None:
    known = find_resumable(store, request(spelt, "standard"), NAMED, None)
    assert (known.info.id, known.request.names) == (INFO.id, ("b.py", "standard"))
    with pytest.raises(UsageError, match=r"has benchmarks b\.py standard, not c\.py"):
        find_resumable(store, request("c.py"), {"names"}, None)


def test_a_run_of_another_folder_is_gone_on_with_only_if_it_is_named(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="was begun in another folder"):
        find_resumable(store, request(), set(), None)
    (tmp_path / "b.py").touch()
    assert find_resumable(store, request("b.py", "standard"), NAMED, INFO.name).info.id == INFO.id


def test_a_run_of_another_machine_is_gone_on_with_only_if_it_is_named(store: Store) -> None:
    store.remove([INFO.id])
    elsewhere = dataclasses.replace(INFO, host=dataclasses.replace(INFO.host, cpu_model="Zilog Z80"))
    store.add(dataclasses.replace(make_run(), info=elsewhere))
    with pytest.raises(UsageError, match=r"was begun on another machine \(Zilog Z80\)"):
        find_resumable(store, request(), set(), None)
    assert find_resumable(store, request(), {"envs"}, INFO.id[:8]).info.id == INFO.id


@pytest.mark.parametrize("option", [("threads", ("x",)), ("language", ("cobol",)), ("k", ("(",))])
def test_what_was_selected_by_nobody_knows_what_is_told(option: tuple[str, tuple[str, ...]], store: Store) -> None:
    store.remove([INFO.id])
    store.add(dataclasses.replace(make_run(), info=dataclasses.replace(INFO, host=HOST, options=(option,))))
    with pytest.raises(UsageError, match="means nothing here"):
        find_resumable(store, request(), set(), None)


def test_a_run_with_types_of_the_users_is_not_gone_on_with(store: Store) -> None:
    options = (("names", ("overrides",)), ("types", ("mymodule:Mine",)))
    info = dataclasses.replace(INFO, id="f" * 32, host=HOST, options=options)
    store.add(dataclasses.replace(make_run(), info=info))
    with pytest.raises(UsageError, match=r"types that only 'torchmark overrides' knows \(mymodule:Mine\)"):
        find_resumable(store, request(), set(), info.id)


def test_what_a_store_names_is_told_and_has_to_be_named_again(store: Store) -> None:
    with pytest.raises(UsageError) as refused:
        find_resumable(store, request(), set(), INFO.name)
    assert str(refused.value).splitlines() == [
        "Nothing was started. The run before (018bcfe568fa) would",
        f"  import {os.getcwd()}/b.py",
        "  start /opt/other/bin/python",
        "and nothing shows that you began it on this machine, in this folder. If you trust all of this, name it again:",
        "  torchmark run b.py standard --resume --name 018bcfe568fa --env 'torch 2.1=/opt/other/bin/python' "
        f"--store {store.path}",
    ]
    for given in ({"names"}, {"envs"}):
        with pytest.raises(UsageError, match="Nothing was started"):
            find_resumable(store, request("b.py", "standard"), given, INFO.name)


def test_other_programs_than_those_of_the_run_are_not_what_was_meant(store: Store) -> None:
    other = dataclasses.replace(request("b.py", "standard"), targets=(Target(), Target("torch 2.1", "/bin/python")))
    with pytest.raises(UsageError, match="has other interpreters"):
        find_resumable(store, other, NAMED, INFO.name)


def begin(store: Store, asked: RunRequest) -> RunInfo:
    """A run of this user's, begun here."""
    store.remove([info.id for info in store.list_runs()])
    plan = dataclasses.replace(PLAN, targets=asked.targets)
    info = describe_run(asked, plan, None, store.path)
    return store.add(dataclasses.replace(make_run(), info=info, plan=plan, outcomes=()))


def test_a_run_that_the_user_began_here_goes_on_without_a_name(store: Store) -> None:
    info = begin(store, request("b.py"))
    known = find_resumable(store, request(), set(), None)
    assert (known.info.id, known.sees_folder) == (info.id, True)


@pytest.mark.parametrize(
    "change",
    [
        {"id": "f" * 32},
        {"options": (("names", ("c.py",)), ("folder", ("project",)))},
        {"options": (("names", ("b.py",)), ("folder", ("project",)), ("k", ("add",)))},
        {"seal": ""},
        {"seal": "0" * 64},
        {"seal": "é\udcff"},
    ],
    ids=str,
)
def test_a_run_that_somebody_has_changed_is_not_trusted(store: Store, change: dict[str, Any]) -> None:
    info = begin(store, request("b.py"))
    changed = dataclasses.replace(info, **change)
    store.remove([info.id])
    store.add(dataclasses.replace(make_run(), info=changed, outcomes=()))
    with pytest.raises(UsageError, match="Nothing was started"):
        find_resumable(store, request(), set(), None)


def test_a_sealed_run_with_another_program_in_it_is_not_trusted(store: Store) -> None:
    info = begin(store, dataclasses.replace(request("standard"), targets=(Target(),)))
    assert find_resumable(store, request(), set(), None).sees_folder
    store.remove([info.id])
    store.add(dataclasses.replace(make_run(), info=info, outcomes=()))
    with pytest.raises(UsageError, match="start /opt/other/bin/python"):
        find_resumable(store, request(), set(), None)


def test_names_of_a_stranger_cannot_write_to_the_terminal(store: Store) -> None:
    begin(store, request("b.py"))
    info = dataclasses.replace(INFO, host=HOST, name="x\x1b[2J", options=(("names", ("b\x1b]0;.py",)),))
    store.add(dataclasses.replace(make_run(), info=info))
    with pytest.raises(UsageError, match="Nothing was started") as refused:
        find_resumable(store, request(), set(), info.id)
    assert "\x1b" not in str(refused.value)
