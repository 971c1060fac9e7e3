"""How far comparing in turns has come."""

from __future__ import annotations

import io
import re
import time

import pytest

from tests.made_summaries import make_case
from torchmark.analysis.estimate import Estimator
from torchmark.model.outcome import Activity, ActivityKind, Begun, Event, Failure, FailureKind, Outcome
from torchmark.model.plan import Metric, Order, Plan, Sampling, Target
from torchmark.model.task import Times
from torchmark.report.progress import (
    Advance,
    LiveProgress,
    LogProgress,
    PairedAdvance,
    Progress,
    make_progress,
)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (("layouts", 3, 12), "starting processes: 3 of 12"),
        (("look 2", 5, 86), "timing in turns, look 2: 5 of 86"),
        (("confirming", 0, 4), "seeing changes again on fresh layouts: 0 of 4"),
        (("waiting", 0, 0), "waiting for another run of torchmark here"),
    ],
)
def test_what_is_under_way_is_said(told: tuple[str, int, int], words: str) -> None:
    advance = PairedAdvance(86, lambda: 0.0)
    assert advance.describe() == "timing in turns: 0 of 86"
    assert advance.add(told) is None
    assert advance.describe() == words
    assert advance.draw(200, fancy=False).endswith(words)
    assert advance.describe_current(80) == ""


def test_the_end_tells_how_long_it_took() -> None:
    clock = iter([10.0, 75.0])
    assert PairedAdvance(1, lambda: next(clock)).conclude() == "timed in turns, in 65 s"


HERE = Target()
ORDERS = Plan(tuple(make_case("nn", name) for name in ("Linear", "ReLU"))).orders
CRASHED = Failure(FailureKind.CRASHED, "It was ended by\x1b[2J SIGSEGV.\nMore of it.")


class Terminal(io.StringIO):
    """Knows as much of a terminal's language as it is spoken to in."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    @property
    def screen(self) -> list[str]:
        lines, row, column = [""], 0, 0
        for text in re.findall(r"\033\[\d*[A-Za-z]|.|\n", self.getvalue()):
            if text == "\n":
                row, column = row + 1, 0
                lines += [""] * (row + 1 - len(lines))
            elif text == "\r":
                column = 0
            elif text.endswith("A") and text.startswith("\033"):
                row -= int(text[2:-1])
            elif text == "\033[J":
                lines[row:] = [lines[row][:column]]
            elif text.startswith("\033"):
                assert text.endswith("m")
            else:
                lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + 1 :]
                column += 1
        return lines


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def done(order: Order, result: Failure | None = None) -> Outcome:
    return Outcome(order, result or Times(1, (1.0,)), 0.0, 1.0)


def start(
    stream: io.StringIO, clock: Clock, *, total: int = len(ORDERS), term: str = "xterm", **more: str
) -> Progress[Event]:
    estimator = Estimator(ORDERS, Sampling(), {}, 2)
    return make_progress(stream, False, Advance(total, estimator, 0, 0, clock), {"TERM": term, **more})


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_each_stream_gets_what_it_can_show() -> None:
    clock, estimator = Clock(), Estimator((), Sampling(), {}, 1)
    assert isinstance(start(Terminal(), clock), LiveProgress)
    assert isinstance(start(Terminal(), clock, term="dumb"), LogProgress)
    assert isinstance(start(io.StringIO(), clock), LogProgress)
    assert type(make_progress(None, False, Advance(1, estimator, 0, 0, time.monotonic))) is Progress
    quiet = Terminal()
    with make_progress(quiet, True, Advance(1, estimator, 0, 0, time.monotonic)) as progress:
        progress.take(done(ORDERS[0], CRASHED))
    assert quiet.getvalue() == ""


def test_a_terminal_shows_a_bar_and_what_is_under_way() -> None:
    terminal, clock = Terminal(), Clock()
    with start(terminal, clock) as progress:
        progress.take(Begun(ActivityKind.START, HERE))
        assert terminal.screen[1] == "starting a worker"
        progress.take(Activity(ActivityKind.START, HERE, 0.0, 2.0))
        assert len(terminal.screen) == 1
        progress.take(Begun(ORDERS[0], HERE))
        progress.take(Begun(ORDERS[1], HERE))
        clock.now += 2
        progress.take(done(ORDERS[0]))
        first, second = terminal.screen
        assert re.fullmatch(r"█{7}░{22} 1/4  0 failed  30/min  about \d+ s left", first)
        assert second == "counting nn / Linear, Python"
    assert terminal.screen == [""]


def test_what_does_not_fit_is_counted() -> None:
    terminal = Terminal()
    with start(terminal, Clock()) as progress:
        for order in ORDERS:
            progress.take(Begun(order, HERE))
        assert terminal.screen[1] == "timing nn / Linear, Python · counting nn / Linear, Python +2"


def test_failures_scroll_by_above_the_bar_and_stay() -> None:
    terminal = Terminal()
    progress = start(terminal, Clock())

    def interrupted() -> None:
        with progress:
            progress.take(Begun(ORDERS[1], HERE))
            progress.take(done(ORDERS[1], CRASHED))
            assert "1 failed" in terminal.screen[1]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert terminal.screen == ["Failed: counting nn / Linear, Python: It was ended by [2J SIGSEGV.", ""]
    assert "\033[31m" in terminal.getvalue()


def test_no_colour_where_none_is_wanted() -> None:
    terminal = Terminal()
    with start(terminal, Clock(), NO_COLOR="1") as progress:
        progress.take(done(ORDERS[1], CRASHED))
    assert "\033[31m" not in terminal.getvalue()


@pytest.mark.parametrize("columns", [20, 33, 50, 100])
def test_no_line_reaches_the_edge(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    terminal = Terminal()
    events: list[Event] = [*(Begun(order, HERE) for order in ORDERS), *(done(order, CRASHED) for order in ORDERS)]
    with start(terminal, Clock()) as progress:
        for event in events:
            progress.take(event)
            assert max(map(len, terminal.screen)) < columns


def test_a_stream_that_is_gone_stops_nothing() -> None:
    terminal = Terminal()
    progress = start(terminal, Clock())
    terminal.close()
    assert isinstance(progress, LiveProgress)
    with progress:
        progress.take(done(ORDERS[0]))


def test_a_log_has_few_lines_and_every_failure() -> None:
    log, clock = io.StringIO(), Clock()
    order = Order(make_case("a"), Target("new"), Metric.WALL)
    with start(log, clock, total=1000) as progress:
        for i in range(200):
            clock.now += 0.5
            progress.take(done(order, CRASHED if i == 100 else None))
    lines = log.getvalue().splitlines()
    assert lines[3] == "Failed: timing a, Python (new): It was ended by [2J SIGSEGV."
    assert lines[-1] == "200 of 1000 done, 1 failed, in 2 min"
    # At each twentieth of the way, which is 25 s here.
    assert [line.split(",")[0] for line in lines if "left" in line] == [
        f"{n} of 1000 done" for n in (0, 50, 100, 150, 200)
    ]
    assert all("\033" not in line for line in lines)


def test_a_log_does_not_fall_silent() -> None:
    log, clock = io.StringIO(), Clock()
    with start(log, clock, total=1000) as progress:
        for _ in range(3):
            clock.now += 61
            progress.take(Begun(ORDERS[0], HERE))
    assert len(log.getvalue().splitlines()) == 5
