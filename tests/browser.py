"""A real browser for tests of pages: Debian's chromium, without a window and without a network."""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

CHROMIUM, DRIVER = "chromium", "chromedriver"
# It is to ask for nothing by itself: no updates, no field trials, no first-run pages.
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
# What needs no network.
INNER = ("file:", "data:", "blob:", "about:", "chrome:", "chrome-extension:", "devtools:")
# How many numbers the tables show, and those that reach out of their cell, of what scrolls them or of the view.
NUMBERS = r"""
document.querySelectorAll("details").forEach((one) => { one.open = true; });
const hidden = [];
let total = 0;
for (const cell of document.querySelectorAll("td")) {
  if (!/\d/.test(cell.textContent) || cell.querySelector("table")) continue;
  const text = document.createRange();
  text.selectNodeContents(cell);
  const inner = text.getBoundingClientRect();
  if (!inner.width) continue;
  total += 1;
  const scroller = cell.closest(".scroll, .table") || document.documentElement;
  const around = [cell.getBoundingClientRect(), scroller.getBoundingClientRect(), { left: 0, right: innerWidth }];
  const cut = around.some((one) => inner.left < one.left - 1 || inner.right > one.right + 1);
  if (cut) hidden.push(cell.textContent.trim());
}
return [total, hidden];
"""


class Browser:
    """A page at a time, and what it said and asked for."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, page: Path, *, width: int = 1440, height: int = 900, dark: bool = False) -> webdriver.Chrome:
        """Show a file, in a window of this size. Forgets what earlier pages said."""
        scheme = "dark" if dark else "light"
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        # Windows cannot be as narrow as a telephone, views can.
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        self.driver.get("about:blank")
        self.read_console()
        self.list_requests()
        self.driver.get(page.resolve().as_uri())
        return self.driver

    def read_console(self) -> list[str]:
        """What was said in the console since the last time, errors of scripts included."""
        return [entry["message"] for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def list_requests(self) -> list[str]:
        """The addresses that were asked for since the last time."""
        entries = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]  # type: ignore[no-untyped-call]
        sent = (one["params"] for one in entries if one["method"] == "Network.requestWillBeSent")
        return [str(params["request"]["url"]) for params in sent]

    def list_outer_requests(self) -> list[str]:
        """Those of them that would leave the machine, or that a page on its own could not have answered."""
        return [url for url in self.list_requests() if not url.startswith(INNER)]

    def find_hidden_numbers(self) -> tuple[int, list[str]]:
        """How many numbers the tables show, and those that are cut off. Opens everything that is folded."""
        total, hidden = self.driver.execute_script(NUMBERS)
        return total, hidden

    def screenshot(self, file: Path, *, whole: bool = False) -> Path:
        """A picture of what is to be seen, or of the whole page."""
        picture: dict[str, Any] = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole}
        )
        file.write_bytes(base64.b64decode(picture["data"]))
        return file


@contextmanager
def start_browser() -> Iterator[Browser]:
    """One with a profile of its own, which ends with the block."""
    missing = [name for name in (CHROMIUM, DRIVER) if shutil.which(name) is None]
    if missing:
        pytest.fail(f"Missing: {', '.join(missing)}. Debian, Ubuntu: apt-get install chromium chromium-driver.")
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = str(shutil.which(CHROMIUM))
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(str(shutil.which(DRIVER))))
        try:
            yield Browser(driver)
        finally:
            driver.quit()
