from __future__ import annotations

import dataclasses

import pytest

from tests.stored_runs import BEGAN, INFO
from torchmark.model.run import RunEntry
from torchmark.report.text.run_summary import describe_state, render_runs
from torchmark.report.text.terminal import measure

STOPPED = RunEntry(
    info=dataclasses.replace(INFO, orders=12, outcomes=6, failures=2),
    cases=3,
    targets=("",),
    torch_versions=("2.2.0",),
    writer=None,
)
COMPLETE = dataclasses.replace(
    STOPPED, info=dataclasses.replace(STOPPED.info, id="018bcfe568ff" + "0" * 20, name="after", finished=BEGAN)
)
RUNNING = dataclasses.replace(STOPPED, writer=5, info=dataclasses.replace(STOPPED.info, id="f" * 32))


@pytest.fixture(autouse=True)
def in_london(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.localtime", __import__("time").gmtime)


def test_a_row_for_each_run() -> None:
    assert render_runs([RUNNING, STOPPED]) == (
        "run       name    when              cases  results  failed  torch  state\n"
        "ffffffff  before  2023-11-14 22:13      3     6/12       2  2.2.0  running\n"
        "018bcfe5  before  2023-11-14 22:13      3     6/12       2  2.2.0  stopped"
    )


def as_shard(entry: RunEntry, text: str) -> RunEntry:
    return dataclasses.replace(entry, info=dataclasses.replace(entry.info, options=(("shard", (text,)),)))


@pytest.mark.parametrize(
    ("entry", "state"),
    [
        (STOPPED, "stopped"),
        (COMPLETE, "complete"),
        (RUNNING, "running"),
        (as_shard(STOPPED, "2/5"), "shard 2/5"),
        (as_shard(STOPPED, "\x1b[2J"), "shard  [2J"),
        (as_shard(RUNNING, "2/5"), "running"),
        (as_shard(COMPLETE, "1/1"), "complete"),
    ],
)
def test_states(entry: RunEntry, state: str) -> None:
    assert describe_state(entry) == state


def test_so_much_of_an_id_is_shown_as_tells_it_from_the_others() -> None:
    first, second = (line.split()[0] for line in render_runs([COMPLETE, STOPPED]).splitlines()[1:])
    assert (first, second) == ("018bcfe568ff", "018bcfe568fa")


def test_long_names_are_cut_to_fit() -> None:
    info = dataclasses.replace(STOPPED.info, name="n" * 100, orders=72_400, outcomes=72_400)
    wide = dataclasses.replace(STOPPED, info=info, torch_versions=("2.2.0+cpu", "2.3.0+cpu"))
    lines = render_runs([wide], 80).splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" in lines[1]
    assert "n" * 100 in render_runs([wide], 200)


def test_names_are_the_last_to_be_cut() -> None:
    info = dataclasses.replace(STOPPED.info, name="bench_operators")
    line = render_runs([dataclasses.replace(STOPPED, info=info, torch_versions=("2.13.0+cpu",))], 80).splitlines()[1]
    assert "bench_operators" in line
    assert len(line) <= 80


def test_targets_are_named_where_there_are_several() -> None:
    several = dataclasses.replace(STOPPED, targets=("old", "new"))
    assert "old, new" in render_runs([several])


def test_a_strangers_name_cannot_command_the_terminal() -> None:
    odd = dataclasses.replace(STOPPED, info=dataclasses.replace(STOPPED.info, name="\x1b[2J\n", created=1e300))
    text = render_runs([odd])
    assert "\x1b" not in text
    assert " [2J " in text
    assert len(text.splitlines()) == 2


def test_columns_stand_below_each_other_whatever_script_a_name_is_written_in() -> None:
    names = ("before", "夜間ビルド", "e\u0301te\u0301", "🔥 hot", "長" * 60)
    entries = [
        dataclasses.replace(STOPPED, info=dataclasses.replace(STOPPED.info, name=name, id=f"{number:x}" * 32))
        for number, name in enumerate(names)
    ]
    heading, *lines = render_runs(entries, 80).splitlines()
    assert {measure(line.partition("2023-11-14")[0]) for line in lines} == {heading.index("when")}
    assert max(map(measure, lines)) <= 80
