"""`torchmark overrides --base` as a user runs it: two real builds, real Valgrind, and the bundle in a browser."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
import zipfile
from pathlib import Path

import pytest

from tests.browser import Browser
from tests.in_process import Program, forget_rehearsal, lend_workers
from tests.shared_workers import DEBIAN, specify
from torchmark.api import override_comparison
from torchmark.cli.main import main
from torchmark.compare.experiment import DEFAULTS, FEWEST_LAYOUTS
from torchmark.runner.spec import WorkerSpec


def choose(spec: WorkerSpec) -> WorkerSpec:
    """Of those that other tests have started, the one with the same interpreter."""
    if spec.counting and spec.python == sys.executable:
        return dataclasses.replace(specify("counting_worker"), stacks=spec.stacks)
    return forget_rehearsal(spec)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the bundle was unpacked that the one comparison of this file made."""
    folder = tmp_path_factory.mktemp("bundle")
    with (
        pytest.MonkeyPatch.context() as patch,
        open(folder / "shown", "w") as shown,
        contextlib.redirect_stdout(shown),
    ):
        patch.chdir(folder)
        patch.setattr(sys, "path", list(sys.path))
        lend_workers(patch, choose)
        # Each layout has processes of its own, which load torch.
        patch.setattr(override_comparison, "DEFAULTS", dataclasses.replace(DEFAULTS, layouts=FEWEST_LAYOUTS))
        arguments = ["overrides", "--base", DEBIAN, "-k", "shape and (SubTensor or SubWithTorchFunction)", "--quiet"]
        assert main([*arguments, "--json", "out.json"]) == 0
        assert "overrides.zip" in (folder / "shown").read_text()
        with zipfile.ZipFile("overrides.zip") as archive:
            archive.extractall()
    return folder


def test_graphs_are_of_exactly_what_became_slower(bundle: Path) -> None:
    judgements = json.loads((bundle / "out.json").read_text())["judgements"]
    slower = {one["label"][-1].lower() for one in judgements if one["verdict"] == "slower"}
    drawn = {path.name for path in (bundle / "overrides/flames").glob("*.svg")}
    # A property of a subclass takes a third more instructions in torch 2.13 than in 1.13.
    assert slower
    pictures = {path.stem for path in (bundle / "overrides/flames").glob("*.png")}
    assert pictures == {name.removesuffix(".svg") for name in drawn}
    assert drawn == {f"{side}-shape-{name}.svg" for side in ("base", "branch", "difference") for name in slower}


def test_tables_guide_and_raw_results_are_there(bundle: Path) -> None:
    inside = bundle / "overrides"
    assert "shape" in (inside / "tables.md").read_text()
    guide = (inside / "README.md").read_text()
    assert f"torchmark overrides --base {DEBIAN}" in guide
    assert "torch 1.13" in guide
    assert json.loads((inside / "results.json").read_text())["judgements"]
    assert json.loads((inside / "run.json").read_text())


def test_the_run_can_be_taken_in_elsewhere(bundle: Path, program: Program, tmp_path: Path) -> None:
    store = str(tmp_path / "elsewhere.db")
    assert program("import", str(bundle / "overrides/run.json"), "--store", store).returncode == 0
    done = program("compare", "overrides-ab", "--store", store)
    assert "shape" in done.stdout


def test_the_page_opens_with_nothing_else_and_tells_the_story(bundle: Path, browser: Browser) -> None:
    driver = browser.open(bundle / "overrides/report.html")
    text = driver.find_element("tag name", "main").text
    assert "slower" in text
    assert "1.13" in driver.page_source
    assert browser.read_console() == []
    assert browser.list_outer_requests() == []


def test_graphs_open_in_a_browser(bundle: Path, browser: Browser) -> None:
    (graph, *_) = sorted((bundle / "overrides/flames").glob("difference-*.svg"))
    browser.open(graph)
    assert browser.read_console() == []
    assert browser.list_outer_requests() == []
