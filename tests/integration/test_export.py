"""`torchmark export` of stored runs, read by the programs that its formats are for."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sample_runs import ADD, COUNT, RESULTS, make_run, sample_run, tally
from torchmark.cli.main import main
from torchmark.model.plan import Target
from torchmark.model.task import Times
from torchmark.store.documents import import_run
from torchmark.store.runs import open_store

NAME = "Pointwise / add / Eager / Forward / Python / 1 thread"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs: `old`, `new` that is twice as slow, `counts` without times, and `pair` of two targets."""
    path = tmp_path_factory.mktemp("store") / "runs.db"
    slow = {key: _slow_down(result) if isinstance(result, Times) else result for key, result in RESULTS.items()}
    runs = {
        "old": sample_run(),
        "new": make_run(slow),
        "counts": make_run({(ADD, COUNT, 0): tally(100, 500)}, [ADD], metrics=[COUNT]),
        "pair": sample_run([Target("left"), Target("right")]),
    }
    with open_store(path, create=True) as opened:
        for number, (name, run) in enumerate(runs.items()):
            info = dataclasses.replace(run.info, id=f"{number:032x}", name=name)
            opened.add(dataclasses.replace(run, info=info))
    return path


def _slow_down(times: Times) -> Times:
    return dataclasses.replace(times, raw_times=tuple(2 * t for t in times.raw_times))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Path) -> Path:
    """A working folder of its own, and the runs at hand."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHMARK_STORE", str(store))
    return tmp_path


def export(*arguments: str) -> None:
    assert main(["export", *arguments]) == 0


def run_program(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stderr.lower()
    return done.stdout


@pytest.mark.usefixtures("folder")
def test_pyperf_compares_two_runs() -> None:
    for name in ("old", "new"):
        export(name, "--format", "pyperf", "-o", f"{name}.json", "--metric", "wall")
    out = run_program("pyperf", "compare_to", "old.json", "new.json")
    assert f"{NAME}: Mean +- std dev: [old] 1.55 us +- 0.08 us -> [new] 3.10 us +- 0.15 us: 2.00x slower" in out


@pytest.mark.usefixtures("folder")
def test_pyperf_reads_times_and_counts_of_all_rounds() -> None:
    export("old", "--format", "pyperf", "-o", "run.json")
    stats = run_program("pyperf", "stats", "run.json")
    assert "Number of benchmarks: 5" in stats
    assert "Number of run with values: 2" in stats
    assert "Median +- MAD:   1.55 us +- 0.04 us" in stats
    assert f"{NAME} (instructions): Mean +- std dev: 5000.8" in run_program("pyperf", "show", "run.json")
    assert "All benchmarks seem to be stable" in run_program("pyperf", "check", "run.json")
    assert "torch_version: 2.13.0" in run_program("pyperf", "metadata", "run.json")


@pytest.mark.usefixtures("folder")
def test_pytest_benchmark_compares_two_runs() -> None:
    # It takes files in the order of their names.
    export("old", "--format", "pytest-benchmark", "-o", "1_old.json")
    export("new", "--format", "pytest-benchmark", "-o", "2_new.json")
    out = run_program("pytest_benchmark", "compare", "1_old.json", "2_new.json", "--between", "median")
    assert "benchmark 'Pointwise / add': 1 tests, 2 sources" in out
    assert "+100.0%" in out


def test_pytest_benchmark_makes_a_table_and_csv_of_a_run(folder: Path) -> None:
    export("old", "--format", "pytest-benchmark", "-o", "run.json")
    out = run_program("pytest_benchmark", "compare", "run.json", "--group-by", "param:language", "--csv", "out.csv")
    assert "benchmark 'language=Python': 2 tests" in out
    rows = list(csv.DictReader(io.StringIO((folder / "out.csv").read_text())))
    by_name = {row["name"]: row for row in rows}
    assert float(by_name[f"standard::{NAME}"]["median"]) == pytest.approx(1.555e-6)
    assert by_name[f"standard::{NAME}"]["param:runtime"] == "Eager"


@pytest.mark.usefixtures("folder")
def test_the_newest_run_goes_to_standard_output_as_json(store: Path, capfd: pytest.CaptureFixture[str]) -> None:
    export()
    out, err = capfd.readouterr()
    with open_store(store, read_only=True) as opened:
        assert import_run(json.loads(out)) == opened.load(opened.find("pair").id, profiles=True)
    assert err == ""


@pytest.mark.usefixtures("folder")
def test_a_part_of_a_run_can_be_imported(capfd: pytest.CaptureFixture[str]) -> None:
    export("pair", "-k", "add", "--env", "left", "--metric", "count")
    run = import_run(json.loads(capfd.readouterr().out))
    assert run.plan.cases == (ADD,)
    assert [outcome.order.metric for outcome in run.outcomes] == [COUNT, COUNT]


def test_a_file_says_its_format_by_its_name(folder: Path) -> None:
    export("old", "-o", "run.csv")
    export("old", "-o", "run.md")
    assert (folder / "run.csv").read_text().startswith("suite,label,")
    assert (folder / "run.md").read_text().startswith("| benchmark |")


@pytest.mark.usefixtures("folder")
def test_cases_metrics_and_targets_can_be_chosen(capfd: pytest.CaptureFixture[str]) -> None:
    export("pair", "--format", "upstream", "--env", "left", "-k", "add", "--metric", "count")
    out, err = capfd.readouterr()
    (values,) = json.loads(out)["values"].values()
    assert values["times"] == []
    assert len(values["counts"]) == 6
    assert err == ""


@pytest.mark.usefixtures("folder")
def test_what_has_no_place_in_a_format_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    export("old", "--format", "bmf")
    assert "Left out for want of results: 3 of 6 cases." in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pair", "--format", "upstream"], "choose one of 'left', 'right' with --env"),
        (["pair", "--env", "rihgt"], "This run has no target 'rihgt'. There is 'right'."),
        (["counts", "--format", "google"], "Run counts has no times to export. It has counts"),
        (["counts", "--metric", "wall"], "In this run only count was measured."),
        (["old", "--metric", "walls"], "'walls' is not one of wall, count"),
        (["old", "--format", "xml"], "'xml' is not one of"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_cannot_be_exported_is_refused(
    arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", *arguments]) == 2
    out, err = capfd.readouterr()
    assert message in err
    assert out == ""


@pytest.mark.usefixtures("folder")
def test_what_selects_nothing_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "old", "-k", "ad and sub"]) == 1
    out, err = capfd.readouterr()
    assert "None of 6 cases is selected" in err
    assert out == ""


def test_a_file_is_replaced_whole_and_keeps_its_rights(folder: Path) -> None:
    target = folder / "target.csv"
    target.write_text("before")
    target.chmod(0o640)
    (folder / "link.csv").symlink_to(target)
    export("old", "-o", "link.csv")
    assert (folder / "link.csv").is_symlink()
    assert target.read_text().startswith("suite,")
    assert target.stat().st_mode & 0o777 == 0o640
    assert main(["export", "counts", "--format", "google", "-o", "target.csv"]) == 2
    assert target.read_text().startswith("suite,")
    assert sorted(os.listdir(folder)) == ["link.csv", "target.csv"]


def test_a_file_that_cannot_be_written_is_told(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "old", "-o", "nowhere/run.csv"]) == 4
    assert "Cannot write nowhere/run.csv: No such file or directory." in capfd.readouterr().err
    (folder / "sub").mkdir()
    assert main(["export", "old", "-o", "sub"]) == 4
    assert "Cannot write sub: Is a directory." in capfd.readouterr().err
    assert os.listdir(folder) == ["sub"]
