"""Drawings in a real browser: nothing leaves its room, light and dark, wide and narrow; and the page of histories."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser import Browser
from tests.in_process import Program
from tests.made_histories import TIMED, make_days
from tests.made_judgements import make_time, make_visits
from torchmark.analysis.history import confirm, trace_histories
from torchmark.analysis.verdict.explain import STAGES
from torchmark.model.history import History
from torchmark.model.plan import Metric
from torchmark.report.html.history import render_history_page
from torchmark.report.plots.comparison import StageBar, draw_differences, draw_stages
from torchmark.report.plots.history import draw_history
from torchmark.report.plots.samples import Strip, draw_distributions
from torchmark.report.plots.svg import Markup, style_sheet
from torchmark.store.runs import open_store

NEW_TORCH = dataclasses.replace(TIMED, torch_version="2.14.0")
# Names that take as much room as names can.
WIDE = ("W" * 80, "加算" * 40, "🔥" * 40, "<script>window.broken = true</script>" * 3)
VIEWS = [(width, dark) for width in (1440, 390) for dark in (False, True)]

# Texts that are not within their drawings, in the drawings' own pixels.
OUTSIDE = """
const found = [];
for (const svg of document.querySelectorAll("svg")) {
  const view = svg.viewBox.baseVal;
  for (const text of svg.querySelectorAll("text")) {
    const box = text.getBBox(), at = text.getCTM(), root = svg.getCTM() || at;
    const scale = at.a, x = (at.e - root.e) / root.a + box.x, y = (at.f - root.f) / root.d + box.y;
    if (x < -0.5 || y < -0.5 || x + box.width > view.width + 0.5 || y + box.height > view.height + 0.5)
      found.push([text.textContent, x, y, box.width, view.width]);
  }
}
return found;
"""
# Texts of one drawing that lie on each other.
OVERLAPPING = """
const found = [];
for (const svg of document.querySelectorAll("svg")) {
  const boxes = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  boxes.forEach(([one, a], i) => boxes.slice(i + 1).forEach(([other, b]) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 1 * scale && high > 4 * scale) found.push([one, other]);
  }));
}
return found;
"""


def trace_four_cases() -> list[History]:
    """Forty days; on the twenty-first, with another torch, one case changed."""
    days = make_days([1.0] * 20 + [1.1] * 20, [5000] * 20 + [5600] * 20, [1.0] * 40, environments={20: NEW_TORCH})
    return [confirm(one, {run.info.id: run for run in days}) for one in trace_histories(days)]


def draw_everything() -> list[Markup]:
    """Drawings of all kinds, with usual data and with names that are too long."""
    chance = random.Random(3)
    times = [[seconds * chance.lognormvariate(0, 0.03) for _ in range(90)] for seconds in (1.03e-6, 1.1e-6)]
    rows = [[0.03 + chance.gauss(0, 0.006) for _ in range(3)] for _ in range(12)]
    visits = make_visits(rows[:6], fresh=rows[6:])
    stages = {stage: 10 ** (i % 5) * 7.0 for i, stage in enumerate(STAGES)}
    return [
        draw_distributions([Strip("base", [*times[0], 1.0]), Strip("head", times[1])]),
        draw_distributions([Strip(name, times[0][:5]) for name in WIDE]),
        draw_differences(dataclasses.replace(make_time(0.03), visits=visits)),
        draw_differences(make_time(-0.4, 0.05, base_s=3e-3, layouts=0)),
        draw_stages([StageBar("base", stages), StageBar(WIDE[0], dict.fromkeys(STAGES, 3e9))]),
        draw_stages([StageBar(WIDE[1], dict.fromkeys(WIDE, 1e12))]),
        *(draw_history(history, metric) for history in trace_four_cases()[:2] for metric in Metric),
    ]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    style = f"{style_sheet()}body{{margin:8px;color:var(--tm-ink);background:var(--tm-ground)}}"
    path = tmp_path_factory.mktemp("plots") / "plots.html"
    path.write_text(
        '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{style}</style>{''.join(draw_everything())}"
    )
    return path


@pytest.mark.parametrize(("width", "dark"), VIEWS)
def test_texts_stay_within_their_drawings_and_off_each_other(
    browser: Browser, page: Path, width: int, dark: bool
) -> None:
    driver = browser.open(page, width=width, dark=dark)
    assert driver.execute_script(OUTSIDE) == []
    assert driver.execute_script(OVERLAPPING) == []
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    assert driver.execute_script("return window.broken") is None
    assert browser.read_console() == []
    assert browser.list_outer_requests() == []


@pytest.fixture(scope="module")
def history_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plots") / "history.html"
    path.write_text(render_history_page(trace_four_cases()))
    return path


def test_the_page_of_histories_works_by_keyboard_and_asks_for_nothing(browser: Browser, history_page: Path) -> None:
    driver = browser.open(history_page)
    shown = ".case:not([hidden]) h3"
    assert len(driver.find_elements(By.CSS_SELECTOR, shown)) == 4
    driver.switch_to.active_element.send_keys(Keys.TAB)
    assert driver.switch_to.active_element.text == "Skip to the cases"
    driver.switch_to.active_element.send_keys(Keys.TAB)
    driver.switch_to.active_element.send_keys("MUL")
    assert [one.text for one in driver.find_elements(By.CSS_SELECTOR, shown)] == ["Pointwise / mul, Python"]
    assert driver.find_element(By.CSS_SELECTOR, "output").text == "1 of 4"
    assert not driver.find_element(By.ID, "changed").is_displayed()
    driver.switch_to.active_element.send_keys(Keys.BACKSPACE * 3)
    driver.switch_to.active_element.send_keys(Keys.TAB)
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    rows = driver.find_elements(By.CSS_SELECTOR, "details[open] tbody tr")
    assert len(rows) == 40
    assert rows[0].text.startswith("day-39 ")
    assert browser.read_console() == []
    assert browser.list_outer_requests() == []


@pytest.mark.parametrize(("width", "dark"), VIEWS)
def test_the_page_of_histories_fits_every_view(browser: Browser, history_page: Path, width: int, dark: bool) -> None:
    driver = browser.open(history_page, width=width, dark=dark)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    assert driver.execute_script(OUTSIDE) == []
    total, hidden = browser.find_hidden_numbers()
    assert (total > 0, hidden) == (True, [])
    assert browser.read_console() == []


def test_the_command_writes_the_page(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "history.html"
    monkeypatch.setenv("TORCHMARK_STORE", str(tmp_path / "results.db"))
    with open_store(tmp_path / "results.db", create=True) as store:
        for run in make_days([1.0] * 4, [5000] * 2 + [5600] * 2):
            store.add(run)
    done = program("history", "--html", str(page))
    assert done.returncode == 0, done.stderr
    assert "1 case in 4 runs: something changed." in done.stdout
    text = page.read_text()
    assert "instructions +600 (+12.0 %), confirmed" in text
    assert program("history", "--html", "-").stdout == text
    done = program("history", "--html", "-", "--json", "-")
    assert done.returncode == 2
    assert "cannot both go to standard output" in done.stderr
    done = program("history", "--html", str(tmp_path / "none" / "history.html"))
    assert "Cannot write" in done.stderr
