"""The report in a real browser: what people do with it, and what a hostile text does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

from tests.browser import Browser
from tests.made_reports import make_hostile, make_many, make_small, make_uncompared, make_uncounted
from torchmark.model.report_data import ReportData
from torchmark.report.html.report_page import render_report

WAIT_S = 10
MAKERS: dict[str, Callable[[], ReportData]] = {
    "small": make_small,
    "single": lambda: make_small(compared=False),
    "uncounted": make_uncounted,
    "uncompared": make_uncompared,
    "hostile": make_hostile,
    "many": lambda: make_many(1000),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    found = {name: folder / f"{name}.html" for name in MAKERS}
    for name, path in found.items():
        path.write_text(render_report(MAKERS[name]()), errors="replace")
    return found


@pytest.fixture(autouse=True)
def nothing_goes_wrong(browser: Browser) -> Iterator[None]:
    """Whatever a test does, the console stays empty and nothing leaves the page."""
    yield
    assert browser.read_console() == []
    assert browser.list_outer_requests() == []


def find(driver: Chrome, selector: str) -> WebElement:
    return driver.find_element(By.CSS_SELECTOR, selector)


def find_all(driver: Chrome, selector: str) -> list[WebElement]:
    return driver.find_elements(By.CSS_SELECTOR, selector)


def names(driver: Chrome) -> list[str]:
    """What stands in the first column, from above."""
    script = "return [...document.querySelectorAll('.cases > tbody > tr > th')].map(one => one.textContent.trim())"
    return list(driver.execute_script(script))


def wait(driver: Chrome, script: str) -> None:
    WebDriverWait(driver, WAIT_S).until(lambda _: driver.execute_script(f"return {script}"))


def run(driver: Chrome, script: str, *arguments: object) -> object:
    return driver.execute_script(script, *arguments)


def test_columns_sort_in_both_directions_by_mouse_and_by_keyboard(browser: Browser, pages: dict[str, Path]) -> None:
    driver = browser.open(pages["small"])
    head = find(driver, "th[data-key=case]")
    button = head.find_element(By.TAG_NAME, "button")
    before = names(driver)
    button.click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert names(driver) == sorted(before, key=str.casefold)
    button.send_keys(Keys.ENTER)
    assert head.get_attribute("aria-sort") == "descending"
    assert names(driver) == sorted(before, key=str.casefold, reverse=True)
    find(driver, "th[data-key=change] button").send_keys(Keys.SPACE)
    assert head.get_attribute("aria-sort") is None
    # What was not measured comes last, whichever way.
    assert "Linear" in names(driver)[-1]
    assert "add" in names(driver)[0]
    find(driver, "th[data-key=change] button").click()
    assert "mul" in names(driver)[0]
    assert "Linear" in names(driver)[-1]


def test_filters_narrow_the_table_and_say_how_many_are_left(browser: Browser, pages: dict[str, Path]) -> None:
    driver = browser.open(pages["small"])
    shown = find(driver, "[role=status]")
    assert shown.text == "All of 5 cases"
    Select(find(driver, "select[name=language]")).select_by_value("C++")
    assert (shown.text, len(names(driver))) == ("1 of 5 cases", 1)
    find(driver, "button[type=reset]").click()
    assert shown.text == "All of 5 cases"
    find(driver, ".tile.slower").click()
    assert find(driver, ".tile.slower").get_attribute("aria-pressed") == "true"
    assert (shown.text, len(names(driver))) == ("2 of 5 cases", 2)
    find(driver, ".tile.slower").click()
    assert shown.text == "All of 5 cases"


def test_searching_looks_into_names_statements_functions_and_errors(browser: Browser, pages: dict[str, Path]) -> None:
    driver = browser.open(pages["small"])
    field = find(driver, "input[type=search]")
    for text, number in (("x.div()", 1), ("ARGPARSER", 4), ("has no attribute", 1), ("pointwise c++", 1), ("zebra", 0)):
        field.clear()
        field.send_keys(text)
        wait(driver, f"document.querySelector('.shown').textContent === '{number} of 5 cases'")
        assert len(names(driver)) == number
    assert find(driver, "p.none").is_displayed()


def test_a_view_is_kept_in_the_address_and_comes_back(browser: Browser, pages: dict[str, Path]) -> None:
    driver = browser.open(pages["small"])
    find(driver, "th[data-key=time] button").click()
    Select(find(driver, "select[name=verdict]")).select_by_value("slower")
    find(driver, "button.open").click()
    address, before = driver.current_url, names(driver)
    assert "sort=-time" in address
    driver.get("about:blank")
    driver.get(address)
    assert names(driver) == before
    assert find(driver, "button.open").get_attribute("aria-expanded") == "true"
    assert Select(find(driver, "select[name=verdict]")).first_selected_option.get_attribute("value") == "slower"


def test_a_case_opens_in_place_by_mouse_and_by_keyboard(browser: Browser, pages: dict[str, Path]) -> None:
    driver = browser.open(pages["small"])
    button = find(driver, "button.open")
    assert not find_all(driver, ".detail")
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    text = find(driver, ".detail").text
    for part in ("Verdict: slower, +12 %", "argument parsing", "torch::PythonArgParser::parse", "x.add()", "Median"):
        assert part in text
    whole = [cell.text for cell in find_all(driver, ".numbers.sums tr:last-child td")]
    counted = [cell.text for cell in find_all(driver, ".measures tr") if cell.text.startswith("Instructions")]
    assert len(whole) == 7, "base, head and the change of both tables, and no stage of all functions"
    assert counted == ["Instructions " + " ".join(whole[:2])]
    assert [*whole[:3], "", *whole[:3]] == whole
    assert find_all(driver, f"#{button.get_attribute('aria-controls')} svg.samples circle")
    button.send_keys(Keys.ENTER)
    assert button.get_attribute("aria-expanded") == "false"
    assert not find_all(driver, ".detail")


def test_a_link_leads_to_a_case_whatever_was_filtered_out(browser: Browser, pages: dict[str, Path]) -> None:
    driver = browser.open(pages["small"])
    link = find(driver, ".bars a")
    row = str(link.get_attribute("href")).rpartition("#")[2]
    Select(find(driver, "select[name=verdict]")).select_by_value("failed")
    assert not find_all(driver, f"#{row}")
    link.click()
    wait(driver, "document.querySelectorAll('.detail').length === 1")
    assert find(driver, f"#{row} button.open").get_attribute("aria-expanded") == "true"
    assert driver.switch_to.active_element == find(driver, f"#{row} button.open")


def test_a_failure_is_told_with_its_traceback(browser: Browser, pages: dict[str, Path]) -> None:
    driver = browser.open(pages["single"])
    find(driver, ".fails a").click()
    wait(driver, "document.querySelector('.failures')")
    assert "Traceback (most recent call last)" in find(driver, ".failures pre").text


def test_a_flame_graph_is_drawn_on_demand_and_its_frames_zoom(browser: Browser, pages: dict[str, Path]) -> None:
    driver = browser.open(pages["small"])
    find(driver, "button.open").click()
    assert not find_all(driver, ".tmf")
    find(driver, "button.flame").click()
    wait(driver, "document.querySelectorAll('.tmf-frame').length > 3")
    assert find(driver, "button.flame").text == "Hide flame graph of the difference"
    frame = next(one for one in find_all(driver, ".tmf-frame") if "free" in str(one.get_attribute("textContent")))
    before = frame.size["width"]
    frame.click()
    found = "[...document.querySelectorAll('.tmf-frame')].find(one => one.textContent.includes('free'))"
    wait(driver, f"{found}.getBoundingClientRect().width > {2 * before}")
    find(driver, "button.flame").click()
    assert not find(driver, ".flame-place").is_displayed()
    assert find(driver, "button.flame").text == "Flame graph of the difference"


def test_what_became_worse_stands_before_what_became_better(browser: Browser, pages: dict[str, Path]) -> None:
    driver = browser.open(pages["small"])
    titles = [one.text for one in find_all(driver, ".panel h2")]
    assert titles[:2] == ["Became slower", "What failed"]
    assert titles[-1] == "Became faster"
    assert [one.text.split()[-1] for one in find_all(driver, ".tile")] == ["slower", "failed", "faster", "same"]
    verdicts = [one.text.split()[-1] for one in find_all(driver, "td.verdict")]
    assert verdicts == ["slower", "slower", "failed", "faster", "same"]


def test_many_caveats_take_a_line_each_until_they_are_opened(browser: Browser, pages: dict[str, Path]) -> None:
    driver = browser.open(pages["small"], width=390, height=844)
    div = next(i for i, name in enumerate(names(driver)) if "div" in name)
    find_all(driver, "button.open")[div].click()
    for place in (".caveats", ".detail .hedged"):
        folds = find_all(driver, f"{place} details")
        assert len(folds) > 2
        assert all(one.get_attribute("open") is None and one.size["height"] < 40 for one in folds)
        fold = next(one for one in folds if "spans 50%" in str(one.get_attribute("textContent")))
        fold.find_element(By.TAG_NAME, "summary").click()
        assert [one.text for one in fold.find_elements(By.TAG_NAME, "code")] == ["torchmark doctor"]
    assert not run(driver, "return document.body.innerText.includes('`')")


def test_two_caveats_are_shown_whole(browser: Browser, pages: dict[str, Path]) -> None:
    driver = browser.open(pages["uncounted"])
    folds = find_all(driver, ".caveats details")
    assert 0 < len(folds) <= 2
    assert all(one.get_attribute("open") is not None for one in folds)


def test_sides_that_are_not_compared_have_a_flame_graph_each_and_no_difference(
    browser: Browser, pages: dict[str, Path]
) -> None:
    driver = browser.open(pages["uncompared"])
    assert "base" not in find(driver, ".cases > tbody > tr").text
    find(driver, "button.open").click()
    script = (
        "return [...document.querySelectorAll('.detail table.sums')].map(t => [...t.rows].map(r => r.cells.length))"
    )
    assert [set(cells) for cells in run(driver, script)] == [{3}, {4}]  # type: ignore[attr-defined]
    text = find(driver, ".detail").text
    for part in ("Each side is shown alone, without a difference.", "The sides do not measure the same: base x.add()"):
        assert part in text
    assert "Change" not in text
    assert [one.text for one in find_all(driver, "button.flame")] == ["Flame graph: before", "Flame graph: after"]


@pytest.mark.parametrize("page", ["small", "single", "uncounted"])
def test_every_number_of_every_table_is_to_be_seen_on_a_telephone(
    browser: Browser, pages: dict[str, Path], page: str
) -> None:
    driver = browser.open(pages[page], width=390, height=844)
    run(driver, "document.querySelectorAll('button.open').forEach(one => one.click())")
    wait(driver, "document.querySelectorAll('.functions').length > 3")
    total, hidden = browser.find_hidden_numbers()
    assert total > 100
    assert hidden == []


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("page", ["small", "single", "hostile"])
def test_nothing_is_wider_than_the_screen_and_no_text_does_anything(
    browser: Browser, pages: dict[str, Path], page: str, width: int
) -> None:
    driver = browser.open(pages[page], width=width)
    run(driver, "document.querySelectorAll('button.open').forEach(one => one.click())")
    run(driver, "document.querySelectorAll('button.flame').forEach(one => one.click())")
    wait(driver, "document.querySelectorAll('.detail').length > 3")
    run(driver, "document.querySelectorAll('.copy').forEach(one => one.click())")
    assert run(driver, "return document.documentElement.scrollWidth") == width
    assert run(driver, "return window.harmed") is None
    assert run(driver, "return document.scripts.length") == 3
    links = run(driver, "return [...document.querySelectorAll('[href], [src]')].map(one => one.href || one.src)")
    assert isinstance(links, list)
    assert all(link.startswith(f"{pages[page].as_uri()}#") for link in links)


def test_columns_give_way_on_a_telephone_and_sorting_does_not(browser: Browser, pages: dict[str, Path]) -> None:
    driver = browser.open(pages["small"], width=390, height=844)
    assert not find(driver, "td.delta").is_displayed()
    assert find(driver, "td.change").is_displayed()
    Select(find(driver, "select[name=sort]")).select_by_value("-case")
    assert names(driver) == sorted(names(driver), key=str.casefold, reverse=True)
    find(driver, "button.open").click()
    panel, table = find(driver, ".detail"), find(driver, ".cases")
    assert panel.size["width"] >= table.size["width"] - 2


def test_dark_and_light_have_their_grounds_and_paper_is_white(browser: Browser, pages: dict[str, Path]) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    assert run(browser.open(pages["small"]), ground) == "rgb(255, 255, 255)"
    driver = browser.open(pages["small"], dark=True)
    assert run(driver, ground) == "rgb(21, 24, 29)"
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert run(driver, ground) == "rgb(255, 255, 255)"
    assert not find(driver, ".controls").is_displayed()
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_thousand_cases_sort_filter_and_come_as_they_are_reached(browser: Browser, pages: dict[str, Path]) -> None:
    driver = browser.open(pages["many"])
    assert find(driver, ".shown").text == "All of 1000 cases"
    assert len(names(driver)) < 1000
    find(driver, "th[data-key=change] button").click()
    values = run(driver, "return [...document.querySelectorAll('td.change')].map(one => parseFloat(one.textContent))")
    assert isinstance(values, list)
    assert values == sorted(values, reverse=True)
    while find(driver, "button.more").is_displayed():
        run(driver, "document.querySelector('button.more').click()")
    assert len(set(names(driver))) == 1000
    Select(find(driver, "select[name=language]")).select_by_value("C++")
    assert find(driver, ".shown").text == "500 of 1000 cases"


def test_without_scripts_the_table_is_complete(browser: Browser, pages: dict[str, Path]) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver = browser.open(pages["small"])
        assert len(find_all(driver, ".cases > tbody > tr")) == 5
        assert "need JavaScript" in find(driver, "noscript").text
        assert not find(driver, ".controls").is_displayed()
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_every_control_and_table_has_a_name_for_those_who_hear_the_page(
    browser: Browser, pages: dict[str, Path]
) -> None:
    driver = browser.open(pages["small"])
    find(driver, "button.open").click()
    find(driver, "button.flame").click()
    nameless = run(
        driver,
        """return [...document.querySelectorAll('button, input, select')]
        .filter(one => !one.hidden && !one.textContent.trim() && !one.labels?.length && !one.getAttribute('aria-label'))
        .map(one => one.outerHTML)""",
    )
    assert nameless == []
    assert run(driver, "return [...document.querySelectorAll('table')].every(one => one.querySelector('th[scope]'))")
    assert run(driver, "return document.querySelectorAll('h1').length") == 1
    assert find_all(driver, "main, header, footer")
