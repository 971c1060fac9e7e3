"""Names and results that all formats start from."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sample_runs import ADD, COUNT, MODEL, ODD, WALL, make_run, only, sample_run, tally, times
from torchmark.errors import StoreError, UsageError
from torchmark.model.plan import Target
from torchmark.report.formats.entries import list_entries, make_unique, one_line, require_entries, shorten


def test_every_case_has_an_entry_whatever_became_of_it() -> None:
    entries = list_entries(sample_run())
    assert [len(entry.timed) for entry in entries] == [2, 1, 0, 0, 0, 1]
    assert [len(entry.counted) for entry in entries] == [2, 1, 0, 0, 0, 0]


def test_the_times_of_a_compiled_case_are_those_of_the_compiled_statement() -> None:
    (_, steady), *_ = next(e for e in list_entries(sample_run()) if e.summary.case is MODEL).timed
    assert steady.per_run == (2e-3, 2.1e-3, 2.2e-3)


def test_names_are_one_line_and_do_not_depend_on_the_other_cases() -> None:
    names = [entry.name for entry in list_entries(sample_run())]
    assert names[0] == "Pointwise / add / Eager / Forward / Python / 1 thread"
    assert names[1] == '=cmd()|"x" / naïve, *new* line / Eager / Forward / C++ / 2 threads'
    assert list_entries(only(ADD, WALL, times(1, 1.0)))[0].name == names[0]


def test_targets_and_suites_are_named_where_there_are_several() -> None:
    other = dataclasses.replace(ADD, suite="mine.py")
    run = make_run({(ADD, WALL, 0): times(1, 1.0)}, [ADD, other], [Target("old"), Target("new")])
    label = "Pointwise / add / Eager / Forward / Python / 1 thread"
    names = [entry.name for entry in list_entries(run)]
    assert names == [f"{suite} / {label} / {env}" for suite in ("standard", "mine.py") for env in ("old", "new")]


def test_cases_that_would_share_a_name_are_numbered() -> None:
    twin = dataclasses.replace(ADD, label=("Pointwise", " add\n"))
    names = [entry.name for entry in list_entries(make_run({}, [ADD, twin]))]
    assert names[1] == f"{names[0]} #2"


@given(st.lists(st.sampled_from(["a", "a #2", "a #2 #2", "b"])))
def test_unique_names_are_unique_and_keep_what_was_unique(names: list[str]) -> None:
    unique = make_unique(names)
    assert len(set(unique)) == len(names)
    assert all(new.startswith(old) for new, old in zip(unique, names, strict=True))


@given(st.text(), st.integers(20, 60))
def test_a_short_name_fits_and_is_one_line(text: str, most: int) -> None:
    name = one_line(text)
    assert name.isprintable()
    assert len(shorten(name, most).encode()) <= most


def test_names_that_differ_behind_the_limit_stay_different() -> None:
    assert shorten("x" * 50 + "a", 40) != shorten("x" * 50 + "b", 40)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_time_that_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(StoreError, match=r"Pointwise / add / .* is no finite number"):
        list_entries(only(ADD, WALL, times(1, 1.0, bad)))


def test_a_run_without_results_for_a_format_is_refused_and_told_what_it_has() -> None:
    run = only(ADD, COUNT, tally(100, 5))
    require_entries(run, WALL, COUNT)
    with pytest.raises(UsageError, match=r"Run sample has no times to export\. It has counts"):
        require_entries(run, WALL)
    nothing = make_run({}, [ODD])
    with pytest.raises(UsageError, match=r"Run sample has no times or counts to export\.$"):
        require_entries(nothing, WALL, COUNT)
