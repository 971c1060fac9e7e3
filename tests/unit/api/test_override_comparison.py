"""What a comparison of overrides keeps if it comes to no good end. Nothing is measured here."""

from __future__ import annotations

import contextlib
import signal
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.made_flames import make_stacks
from tests.made_judgements import fail, make_judgement, make_time
from tests.made_overrides import make_override
from tests.pictures import read_size
from torchmark.api import override_comparison
from torchmark.cli.cases import Loaded
from torchmark.cli.main import main
from torchmark.compare.session import ComparisonResult
from torchmark.define.selection import Selection
from torchmark.errors import SetupError, StoreError, WorkerError
from torchmark.model.costs import Frame, Stacks
from torchmark.model.judgement import Side
from torchmark.model.plan import Case
from torchmark.report.flame.picture import WIDTH

ADD, NEG, SHAPE = (make_override(call, "SubTensor") for call in ("add", "neg", "shape"))


def go_on() -> None:
    """Nothing happens."""


class Tracing:
    """Traces nothing; `on_start` and `on_case` happen while it does."""

    def __init__(self) -> None:
        self.on_start: Callable[[], object] = go_on
        self.on_case: dict[Case, Callable[[], object]] = {}

    @contextlib.contextmanager
    def open(self, target: object) -> Iterator[Tracing]:
        yield self

    def start(self, base: Tracing, head: Tracing) -> None:
        self.on_start()

    def trace(self, cases: Sequence[Case], number: int) -> Iterator[tuple[Case, Stacks]]:
        for case in cases:
            self.on_case.pop(case, go_on)()
            yield case, make_stacks(((Frame("f"),), 100))


@pytest.fixture
def tracing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Tracing:
    monkeypatch.chdir(tmp_path)
    tracing = Tracing()
    changes = {ADD: 0.05, NEG: 0.04, SHAPE: 0.0}
    found = ComparisonResult(
        judgements=tuple(make_judgement(case=case, time=make_time(by)) for case, by in changes.items())
    )
    monkeypatch.setattr(override_comparison, "run_comparison", lambda *_, **__: found)
    monkeypatch.setattr(override_comparison, "Tracer", tracing.open)
    monkeypatch.setattr(override_comparison, "start_together", tracing.start)
    loaded = Loaded((ADD, NEG, SHAPE), (ADD, NEG, SHAPE), (), Selection())
    monkeypatch.setattr("torchmark.cli.overrides_options.load_cases", lambda *_: loaded)
    return tracing


def compare(output: str = "x.zip", *options: str) -> int:
    return main(["overrides", "--base", "/a", "--head", "/b", "-o", output, "-q", "--store", "x.db", *options])


def read_bundle() -> dict[str, str]:
    with zipfile.ZipFile("x.zip") as archive:
        names = [name for name in archive.namelist() if not name.endswith(".png")]
        return {Path(name).name: archive.read(name).decode() for name in names}


def read_pictures() -> dict[str, bytes]:
    with zipfile.ZipFile("x.zip") as archive:
        return {Path(name).name: archive.read(name) for name in archive.namelist() if name.endswith(".png")}


def list_graphs() -> set[str]:
    return {name for name in read_bundle() if name.startswith("difference-")}


def test_what_became_slower_is_drawn_and_told(tracing: Tracing, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare() == 0
    assert list_graphs() == {"difference-add-subtensor.svg", "difference-neg-subtensor.svg"}
    told = capsys.readouterr().out
    assert "3 cases: 2 slower" in told
    assert "flame graphs of 2 of 2 cases" in told


def test_every_graph_is_there_as_a_picture_to_paste(tracing: Tracing) -> None:
    assert compare() == 0
    pictures = read_pictures()
    graphs = {name.removesuffix(".svg") for name in read_bundle() if name.endswith(".svg")}
    assert {name.removesuffix(".png") for name in pictures} == graphs
    assert {read_size(png)[0] for png in pictures.values()} == {2 * WIDTH}


def test_without_a_renderer_the_graphs_are_there_as_svg_and_it_is_said_why_before_measuring(
    tracing: Tracing, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    tracing.on_start = lambda: told.append(capsys.readouterr().err)
    told: list[str] = []
    assert compare() == 0
    assert "pip install 'torchmark[png]'" in told[0]
    assert list_graphs() == {"difference-add-subtensor.svg", "difference-neg-subtensor.svg"}
    assert read_pictures() == {}
    assert "There are no PNG files" in read_bundle()["README.md"]


def test_tracers_that_do_not_start_cost_the_graphs_alone(tracing: Tracing, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise SetupError("There is no Valgrind.", missing="valgrind", advice="Install it.")

    tracing.on_start = fail
    assert compare() == 0
    told = capsys.readouterr()
    assert "3 cases: 2 slower" in told.out
    assert "flame graphs of 0 of 2 cases" in told.out
    assert "no more flame graphs: There is no Valgrind." in told.err
    assert list_graphs() == set()
    assert read_bundle()["README.md"].count("no flame graph: There is no Valgrind. Install it.") == 2


def test_a_worker_that_is_lost_leaves_the_graphs_that_there_are(
    tracing: Tracing, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise WorkerError("The worker is gone.", kind="died")

    tracing.on_case[NEG] = fail
    assert compare() == 0
    assert "3 cases: 2 slower" in capsys.readouterr().out
    assert list_graphs() == {"difference-add-subtensor.svg"}


def test_an_interrupt_stops_after_the_case_that_was_begun(tracing: Tracing, capsys: pytest.CaptureFixture[str]) -> None:
    tracing.on_case[ADD] = lambda: signal.raise_signal(signal.SIGINT)
    assert compare() == 130
    assert "3 cases: 2 slower" in capsys.readouterr().out
    assert list_graphs() == {"difference-add-subtensor.svg"}
    assert "no flame graph: It was stopped before" in read_bundle()["README.md"]


def interrupt_twice() -> None:
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("event", "code"), [(interrupt_twice, 130), (lambda: signal.raise_signal(signal.SIGTERM), 128 + signal.SIGTERM)]
)
def test_what_ends_it_at_once_leaves_the_verdicts(
    tracing: Tracing, event: Callable[[], None], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    tracing.on_start = event
    assert compare() == code
    assert "3 cases: 2 slower" in capsys.readouterr().out
    assert "tables.md" in read_bundle()


def test_verdicts_are_told_before_the_bundle_is_written(
    tracing: Tracing, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torchmark.cli.overrides_options.check_output", lambda *_: None)
    assert compare("no/such/x.zip") == StoreError.exit_code
    told = capsys.readouterr()
    assert "3 cases: 2 slower" in told.out
    assert "Cannot write no/such/x.zip" in told.err


def test_a_gate_does_not_pass_a_branch_that_fails_where_base_does_not(
    tracing: Tracing, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = make_judgement(case=NEG, failures=fail(Side.HEAD))
    fine = [make_judgement(case=case, time=make_time(0.0)) for case in (ADD, SHAPE)]
    found = ComparisonResult(judgements=(fine[0], broken, fine[1]))
    monkeypatch.setattr(override_comparison, "run_comparison", lambda *_, **__: found)
    assert compare() == 0
    assert compare("x.zip", "--fail-on", "slower") == 1
    assert "head failed there" in capsys.readouterr().out
