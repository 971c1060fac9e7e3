from __future__ import annotations

import base64
import dataclasses
import hashlib
from html.parser import HTMLParser

import pytest

from tests.made_histories import ADD, TIMED, make_days
from torchmark.analysis.history import confirm, trace_histories
from torchmark.model.history import History
from torchmark.model.plan import Metric
from torchmark.report.html.history import render_history_page

EVIL = "</script><script>alert('x')</script>"
NEW_TORCH = dataclasses.replace(TIMED, torch_version="2.14.0")
VOID = {"meta", "input"}


class Outline(HTMLParser):
    """Tags in their order, headings, and whether all is closed that was opened."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.headings: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name in ("src", "onclick", "onload") for name, _ in attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "h3":
            self.headings.append(data.strip())


@pytest.fixture(scope="module")
def histories() -> tuple[History, ...]:
    """`add` changed on the twenty-first of forty days, three others did not."""
    days = make_days([1.0] * 20 + [1.1] * 20, [5000] * 20 + [5600] * 20, [1.0] * 40, environments={20: NEW_TORCH})
    whole = {run.info.id: run for run in days}
    return tuple(confirm(history, whole) for history in trace_histories(days))


def test_what_changed_comes_first_and_in_words(histories: tuple[History, ...]) -> None:
    page = render_history_page(histories[::-1])
    outline = Outline(page)
    assert outline.headings[0] == "Pointwise / add, Python"
    assert sorted(outline.headings[1:]) == [f"Pointwise / {name}, Python" for name in ("exp", "mul", "sub")]
    assert "4 cases in 40 runs: something changed in 1 of them." in page
    assert "instructions +600 (+12.0 %), confirmed: counts are exact. torch 2.13.0 → 2.14.0." in page
    # Time and instructions of all four, and a table of the one that changed.
    assert (outline.tags.count("svg"), outline.tags.count("table")) == (8, 1)
    assert outline.tags.count("tr") == 41


def test_only_what_is_asked_for_is_drawn(histories: tuple[History, ...]) -> None:
    outline = Outline(render_history_page(histories, metrics=[Metric.COUNT]))
    assert outline.tags.count("svg") == 4


def test_cases_in_which_nothing_was_measured_say_so() -> None:
    page = render_history_page(trace_histories(make_days([None, None], [None, None])))
    assert "Nothing was measured." in page
    assert "nothing changed" in page


def test_nobody_can_smuggle_in_markup(histories: tuple[History, ...]) -> None:
    evil = dataclasses.replace(ADD, label=(EVIL,), suite=EVIL)
    history = histories[0]
    points = tuple(
        dataclasses.replace(point, run=dataclasses.replace(point.run, name=EVIL)) for point in history.points
    )
    hostile = dataclasses.replace(history, case=evil, points=points)
    page = render_history_page([hostile, *histories[1:]])
    assert Outline(page).tags.count("script") == 1
    assert "alert(&#39;x&#39;)" in page


def test_the_page_runs_its_own_script_and_no_other(histories: tuple[History, ...]) -> None:
    page = render_history_page(histories)
    script = page.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in page
    assert "default-src 'none'" in page
    assert "script-src 'unsafe-inline'" not in page


def test_no_character_of_the_page_steers_or_turns_a_line(histories: tuple[History, ...]) -> None:
    evil = "x\x1b[2J\u202e\x9b"
    run = dataclasses.replace(histories[0].points[0].run, name=evil)
    case = dataclasses.replace(histories[0].case, label=(evil,), suite=evil)
    points = (dataclasses.replace(histories[0].points[0], run=run), *histories[0].points[1:])
    page = render_history_page([dataclasses.replace(histories[0], case=case, points=points)])
    assert not set(page) & set("\x1b\u202e\x9b")
    assert "x [2J" in page
