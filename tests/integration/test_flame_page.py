"""Flame graphs in a real browser: as an SVG on its own, as a page, and as a picture in somebody else's page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.browser import Browser
from tests.made_flames import HOSTILE, compared_flame, hostile_flame, large_flame, make_deep_stacks, plain_flame
from torchmark.analysis.flames import draw_flame
from torchmark.model.costs import Flame
from torchmark.report.flame.page import pack_flames, render_html, render_svg
from torchmark.report.flame.picture import TREE_WIDTH
from torchmark.report.html.templates import load_asset

FIND_FRAME = """
const [name, level] = arguments;
return Array.from(document.querySelectorAll(".tmf-frame")).find(
  (one) => one.getAttribute("aria-level") === level && one.getAttribute("aria-label").split(";")[0] === name);
"""
WRITERS = {"svg": render_svg, "html": render_html}
# The contrast that normal text needs by WCAG, level AA.
LEAST_CONTRAST = 4.5
FRAME = ".tmf-frame"
# Of each element: the colour of its text, and of its rectangle or the first ground below it that is not transparent.
READ_COLOURS = """
return Array.from(document.querySelectorAll(arguments[0]), (element) => {
  const clear = "rgba(0, 0, 0, 0)";
  const [rect, text] = ["rect", "text"].map((tag) => element.querySelector(tag));
  const ink = text ? getComputedStyle(text).fill : getComputedStyle(element).color;
  if (text && getComputedStyle(rect).fill !== clear) return [ink, getComputedStyle(rect).fill];
  let ground = element;
  while (ground && getComputedStyle(ground).backgroundColor === clear) ground = ground.parentElement;
  return [ink, ground ? getComputedStyle(ground).backgroundColor : "rgb(255, 255, 255)"];
});
"""


@pytest.fixture(params=list(WRITERS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def show(browser: Browser, folder: Path, flame: Flame, kind: str, *, width: int = 1440, dark: bool = False) -> Chrome:
    file = folder / f"graph.{kind}"
    file.write_text(WRITERS[kind](flame), encoding="utf-8")
    return browser.open(file, width=width, dark=dark)


def run(driver: Chrome, script: str, *arguments: object) -> Any:
    return driver.execute_script(script, *arguments)


def find(driver: Chrome, name: str, level: int) -> WebElement | None:
    """The first frame that has this name and is on this level; None where there is none."""
    found: WebElement | None = run(driver, FIND_FRAME, name, str(level))
    return found


def frame(driver: Chrome, name: str, level: int) -> WebElement:
    found = find(driver, name, level)
    assert found, f"{name} is not drawn on level {level}"
    return found


def width_of(driver: Chrome, name: str, level: int) -> float:
    tree = float(driver.find_element(By.CSS_SELECTOR, ".tmf-tree").size["width"])
    return float(frame(driver, name, level).find_element(By.TAG_NAME, "rect").size["width"]) / tree


def label(element: WebElement) -> str:
    return str(element.find_element(By.TAG_NAME, "text").get_attribute("textContent"))


def tip(driver: Chrome) -> list[str]:
    return driver.find_element(By.CSS_SELECTOR, ".tmf-tip").text.splitlines()


def focused(driver: Chrome) -> str:
    return str(run(driver, "return document.activeElement.getAttribute('aria-label')")).split(";")[0]


def press(driver: Chrome, *keys: str) -> None:
    """As a person does: to whatever has the focus."""
    for key in keys:
        ActionChains(driver).send_keys(key).perform()


def test_a_click_zooms_and_the_button_resets(browser: Browser, tmp_path: Path, kind: str) -> None:
    driver = show(browser, tmp_path, plain_flame(), kind)
    hook = ("Sub.__torch_function__", 3)
    assert width_of(driver, *hook) == pytest.approx(0.690, abs=0.002)
    frame(driver, *hook).click()
    assert width_of(driver, *hook) == pytest.approx(1, abs=0.002)
    assert find(driver, "at::old_path()", 3) is None
    for above in (("all", 1), ("run", 2)):
        assert "tmf-up" in str(frame(driver, *above).get_attribute("class"))
        assert width_of(driver, *above) == pytest.approx(1, abs=0.002)
    driver.find_element(By.CSS_SELECTOR, ".tmf-bar button").click()
    assert width_of(driver, *hook) == pytest.approx(0.690, abs=0.002)
    assert browser.read_console() == []
    assert browser.list_outer_requests() == []


def test_all_can_be_reached_and_zoomed_with_the_keyboard(browser: Browser, tmp_path: Path, kind: str) -> None:
    driver = show(browser, tmp_path, plain_flame(), kind)
    driver.find_element(By.CSS_SELECTOR, ".tmf-bar input").click()
    press(driver, Keys.TAB)
    # The button is not to be reached while there is nothing to reset.
    assert focused(driver) == "all"
    press(driver, Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert focused(driver) == "Sub.__torch_function__"
    assert tip(driver)[2:4] == ["690.5 instructions per run, 69% of all", "69% of its caller"]
    press(driver, Keys.ARROW_RIGHT)
    assert focused(driver) == "at::old_path()"
    press(driver, Keys.ARROW_LEFT, Keys.ARROW_DOWN, Keys.ENTER)
    assert focused(driver).startswith("at::_ops::add_Tensor::call")
    assert width_of(driver, focused(driver), 4) == pytest.approx(1, abs=0.002)
    assert run(driver, "return document.querySelectorAll('[tabindex=\"0\"].tmf-frame').length") == 1
    press(driver, Keys.ARROW_UP, Keys.ARROW_UP, Keys.ARROW_UP, Keys.ARROW_UP)
    assert focused(driver) == "all"
    press(driver, Keys.ESCAPE)
    assert width_of(driver, "Sub.__torch_function__", 3) == pytest.approx(0.690, abs=0.002)
    press(driver, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.HOME)
    assert focused(driver) == "all"
    assert browser.read_console() == []


def test_searching_shows_what_share_matches_and_counts_nothing_twice(
    browser: Browser, tmp_path: Path, kind: str
) -> None:
    driver = show(browser, tmp_path, plain_flame(), kind)
    driver.find_element(By.CSS_SELECTOR, ".tmf-bar input").click()
    press(driver, Keys.TAB)
    press(driver, "/")
    found = driver.find_element(By.CSS_SELECTOR, ".tmf-found")
    # The loop lies within the call of add: 490.5 and 110 of 1000.5.
    press(driver, "LIBTORCH_cpu")
    assert found.text == "3 frames, 60% of all"
    assert len(driver.find_elements(By.CSS_SELECTOR, ".tmf-hit")) == 3
    press(driver, Keys.ESCAPE)
    assert found.text == ""
    assert driver.find_elements(By.CSS_SELECTOR, ".tmf-miss") == []
    press(driver, "no such thing")
    assert found.text == "0 frames, 0% of all"
    press(driver, Keys.ESCAPE, Keys.TAB)
    ActionChains(driver).key_down(Keys.CONTROL).send_keys("f").key_up(Keys.CONTROL).perform()
    assert focused(driver) == "Search frames"


@pytest.mark.parametrize("flame", [plain_flame(), compared_flame()], ids=["plain", "compared"])
def test_the_script_tells_the_same_of_a_frame_that_was_not_drawn_as_of_one_that_was(
    browser: Browser, tmp_path: Path, flame: Flame
) -> None:
    driver = show(browser, tmp_path, flame, "svg")
    svg = "{http://www.w3.org/2000/svg}"
    groups = ElementTree.fromstring(render_svg(flame)).iterfind(f".//{svg}g[{svg}title]")
    drawn = [(str(one.findtext(f"{svg}title")).replace("\n", "; "), one.findtext(f"{svg}text")) for one in groups]
    script = """return Array.from(document.querySelectorAll('.tmf-frame'),
    (one) => [one.getAttribute('aria-label'), one.querySelector('text').textContent])"""
    assert [told for told, _ in run(driver, script)] == [told for told, _ in drawn]
    hook = frame(driver, "Sub.__torch_function__", 3)
    ActionChains(driver).move_to_element(hook).perform()
    assert "; ".join(tip(driver)) == hook.get_attribute("aria-label")
    # In a page of many, all but the outermost frame is told, and labelled, by the script.
    driver = show_many(browser, tmp_path, [flame], width=TREE_WIDTH)
    assert [tuple(one) for one in run(driver, script)] == drawn


def test_a_difference_points_at_what_grew_itself(browser: Browser, tmp_path: Path) -> None:
    driver = show(browser, tmp_path, compared_flame(), "html")
    (strongest,) = driver.find_elements(By.CSS_SELECTOR, ".tmf-frame.tmf-more5")
    assert label(strongest) == "+120 Sub.__torch_function__"
    (gone,) = driver.find_elements(By.CSS_SELECTOR, ".tmf-frame.tmf-gone")
    assert label(gone).startswith("−110")
    first = driver.find_element(By.CSS_SELECTOR, "tbody tr")
    assert first.text.split() == ["200", "320", "+120", "+60%", "Sub.__torch_function__", "/site-packages/sub.py:12"]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_all_text_is_legible(browser: Browser, tmp_path: Path, kind: str, dark: bool) -> None:
    for flame in (plain_flame(), compared_flame()):
        driver = show(browser, tmp_path, flame, kind, dark=dark)
        check_contrast(driver, dark)
        frame(driver, "Sub.__torch_function__", 3).click()
        check_contrast(driver, dark)
        driver.find_element(By.CSS_SELECTOR, ".tmf-bar input").send_keys("malloc")
        check_contrast(driver, dark)


def check_contrast(driver: Chrome, dark: bool) -> None:
    """Of all that has text, on a ground that goes with the scheme."""
    texts = f"{FRAME}, .tmf-title, .tmf-note, .tmf-legend li, .tmf-found, .tmf-keys, button, td, th, p, h1, h2"
    colours = run(driver, READ_COLOURS, texts)
    assert len(colours) > 8
    for ink, ground in colours:
        assert contrast(ink, ground) >= LEAST_CONTRAST, (ink, ground)
    (_, ground), *_ = run(driver, READ_COLOURS, ".tmf-found")
    assert (luminance(ground) < 0.1) is dark


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    red, green, blue, *_ = (float(part) / 255 for part in re.findall(r"[\d.]+", colour))
    weights = ((red, 0.2126), (green, 0.7152), (blue, 0.0722))
    return sum(w * (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4) for c, w in weights)


def test_every_colour_of_the_style_carries_text(browser: Browser, tmp_path: Path) -> None:
    names = sorted(set(re.findall(r"\.(tmf-(?:c|more|less)\d+|tmf-none)", load_asset("flame.css"))))
    boxes = "".join(f'<svg class="tmf-frame {name}"><rect /><text>x</text></svg>' for name in names)
    file = tmp_path / "colours.html"
    file.write_text(f"<!DOCTYPE html><style>{load_asset('flame.css')}</style><div class='tmf'>{boxes}</div>")
    for dark in (False, True):
        driver = browser.open(file, dark=dark)
        colours = run(driver, READ_COLOURS, FRAME)
        assert len(colours) == len(names)
        for name, (ink, ground) in zip(names, colours, strict=True):
            assert contrast(ink, ground) >= LEAST_CONTRAST, name


def test_hostile_names_run_nothing(browser: Browser, tmp_path: Path, kind: str) -> None:
    driver = show(browser, tmp_path, hostile_flame(), kind)
    drawn = driver.find_elements(By.CSS_SELECTOR, FRAME)
    assert len(drawn) == 1 + 2 * len(HOSTILE)
    assert drawn[1].tag_name == "g"
    ActionChains(driver).move_to_element(drawn[1]).click().perform()
    assert driver.find_elements(By.CSS_SELECTOR, "img, .tmf script") == []
    # An alert would be in the way of this, too.
    assert browser.read_console() == []
    assert browser.list_outer_requests() == []


def show_many(browser: Browser, folder: Path, flames: list[Flame], width: int = 1440) -> Chrome:
    """Graphs as a report holds them, drawn at once, below an input of the page's own."""
    places = "".join(f"<div id=g{i}></div>" for i in range(len(flames)))
    file = folder / "report.html"
    file.write_text(
        f"<!DOCTYPE html><style>{load_asset('flame.css')} body {{ margin: 0 }}</style><input id=mine>{places}"
        f"<script>{load_asset('flame.js')}torchmarkFlames('{pack_flames(flames)}').then((flames) => "
        "flames.graphs.forEach((graph, i) => torchmarkFlame(document.getElementById(`g${i}`), flames.names, graph)));"
        "</script>"
    )
    driver = browser.open(file, width=width)
    last = f"#g{len(flames) - 1} .tmf-frame"
    WebDriverWait(driver, 10).until(lambda _: driver.find_elements(By.CSS_SELECTOR, last))
    return driver


def test_a_page_shows_several_graphs_from_one_table_of_names(browser: Browser, tmp_path: Path) -> None:
    driver = show_many(browser, tmp_path, [plain_flame(), compared_flame()])
    assert [len(driver.find_elements(By.CSS_SELECTOR, f"#g{i} {FRAME}")) for i in range(2)] == [8, 8]
    # Keys are the page's own where no graph has the focus.
    mine = driver.find_element(By.ID, "mine")
    mine.send_keys("/")
    assert mine.get_attribute("value") == "/"
    driver.find_element(By.CSS_SELECTOR, f"#g1 {FRAME}").click()
    press(driver, "/", "malloc")
    texts = [driver.find_element(By.CSS_SELECTOR, f"#g{i} .tmf-found").text for i in range(2)]
    assert texts == ["", "2 frames, 14% → 14% of all"]
    assert browser.read_console() == []


def test_as_a_picture_in_another_page_it_is_drawn_without_its_script(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "graph.svg").write_text(render_svg(plain_flame()), encoding="utf-8")
    file = tmp_path / "page.html"
    inline = render_svg(plain_flame()).partition("\n")[2]
    file.write_text(f'<!DOCTYPE html><meta charset="utf-8"><img src="graph.svg" alt="">{inline}', encoding="utf-8")
    driver = browser.open(file)
    assert run(driver, "return document.images[0].naturalWidth") == 1200
    assert driver.find_elements(By.CSS_SELECTOR, "[tabindex]") == []
    assert len(driver.find_elements(By.CSS_SELECTOR, "#tmf-still g > title")) == 8
    assert not driver.find_element(By.TAG_NAME, "input").is_displayed()
    assert browser.read_console() == []


def test_it_follows_the_width_of_its_window(browser: Browser, tmp_path: Path, kind: str) -> None:
    driver = show(browser, tmp_path, plain_flame(), kind, width=390)
    name = "at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&)"
    assert label(frame(driver, name, 4)) == "at::_ops::add_Tensor::call"
    assert label(frame(driver, "at::old_path()", 3)) != "at::old_path"
    assert run(driver, "return document.documentElement.scrollWidth") <= 390
    size = {"width": 1440, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wait = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))"
    driver.execute_async_script(wait)
    assert label(frame(driver, "at::old_path()", 3)) == "at::old_path"


def test_a_tree_of_20_000_frames_is_drawn(browser: Browser, tmp_path: Path) -> None:
    driver = show(browser, tmp_path, large_flame(20_000), "svg")
    drawn = len(driver.find_elements(By.CSS_SELECTOR, FRAME))
    assert 100 < drawn < 10_000
    # What was too narrow at first is drawn from the graph on zooming.
    assert find(driver, "leaf900", 3) is None
    frame(driver, "leaf20", 3).click()
    assert width_of(driver, "f19", 22) == pytest.approx(1, abs=0.002)
    driver.find_element(By.CSS_SELECTOR, ".tmf-bar input").send_keys("leaf999")
    assert driver.find_element(By.CSS_SELECTOR, ".tmf-found").text.startswith("1 frame, ")
    assert browser.read_console() == []


@pytest.mark.parametrize("depth", [20_000])
def test_a_chain_of_calls_may_be_as_deep_as_it_likes(browser: Browser, tmp_path: Path, kind: str, depth: int) -> None:
    driver = show(browser, tmp_path, draw_flame(make_deep_stacks(depth), "deep"), kind)
    assert run(driver, "return document.querySelectorAll('.tmf-frame').length") == depth + 1
    field = driver.find_element(By.CSS_SELECTOR, ".tmf-bar input")
    field.click()
    field.send_keys(f"f{depth - 1}")
    assert driver.find_element(By.CSS_SELECTOR, ".tmf-found").text.startswith("1 frame, ")
    run(driver, "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", frame(driver, "f9", 11))
    assert driver.find_element(By.CSS_SELECTOR, "[aria-current]").get_attribute("aria-level") == "11"
    assert browser.read_console() == []
