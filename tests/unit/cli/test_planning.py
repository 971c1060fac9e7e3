from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stored_runs import INFO, PLAN, make_run
from torchmark.cli.planning import Wish, check_name, recall
from torchmark.cli.selecting import Options
from torchmark.errors import UsageError
from torchmark.runner.machine import read_cpu_model
from torchmark.store.runs import Store, open_store

HOST = dataclasses.replace(INFO.host, cpu_model=read_cpu_model(Path("/")))


def wish(*names: str) -> Wish:
    return Wish(names, Options(), PLAN.sampling.metrics, PLAN.targets, 1, 0.2, 5, 600.0)


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
    assert recall(store, wish(spelt, "standard"), {"names"}, None).info.id == INFO.id
    assert recall(store, wish(), set(), None).wish.names == ("b.py", "standard")
    with pytest.raises(UsageError, match=r"has benchmarks b\.py standard, not c\.py"):
        recall(store, wish("c.py"), {"names"}, None)


def test_a_run_of_another_folder_is_gone_on_with_only_if_it_is_named(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="was begun in another folder"):
        recall(store, wish(), set(), None)
    assert recall(store, wish(), set(), INFO.name).info.id == INFO.id


def test_a_run_of_another_machine_is_gone_on_with_only_if_it_is_named(store: Store) -> None:
    store.remove([INFO.id])
    elsewhere = dataclasses.replace(INFO, host=dataclasses.replace(INFO.host, cpu_model="Zilog Z80"))
    store.add(dataclasses.replace(make_run(), info=elsewhere))
    with pytest.raises(UsageError, match=r"was begun on another machine \(Zilog Z80\)"):
        recall(store, wish(), set(), None)
    assert recall(store, wish(), set(), INFO.id[:8]).info.id == INFO.id


@pytest.mark.parametrize("option", [("threads", ("x",)), ("language", ("cobol",)), ("k", ("(",))])
def test_what_was_selected_by_nobody_knows_what_is_told(option: tuple[str, tuple[str, ...]], store: Store) -> None:
    store.remove([INFO.id])
    store.add(dataclasses.replace(make_run(), info=dataclasses.replace(INFO, host=HOST, options=(option,))))
    with pytest.raises(UsageError, match="means nothing here"):
        recall(store, wish(), set(), None)


@pytest.mark.parametrize("name", [None, "nightly", "it's 2", "deadbeef", "ünï"])
def test_a_name_is_what_one_can_type(name: str | None) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", " ", "@", "@1", "-k", "red\033[31m"])
def test_a_name_that_would_mean_something_else_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a run"):
        check_name(name)


def test_a_run_with_types_of_the_users_is_not_gone_on_with(store: Store) -> None:
    options = (("names", ("overrides",)), ("types", ("mymodule:Mine",)))
    info = dataclasses.replace(INFO, id="f" * 32, host=HOST, options=options)
    store.add(dataclasses.replace(make_run(), info=info))
    with pytest.raises(UsageError, match=r"types that only 'torchmark overrides' knows \(mymodule:Mine\)"):
        recall(store, wish(), set(), info.id)
