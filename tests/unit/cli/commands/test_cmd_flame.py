from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.in_process import Program
from tests.made_flames import BASE, HEAD, make_deep_stacks
from tests.pictures import read_size
from torchmark.cli.flame_output import FORMATS, choose_format
from torchmark.errors import UsageError
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.plan import Case
from torchmark.report.flame.formats import Graph
from torchmark.report.flame.picture import WIDTH


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ("x.svg", "svg"),
        ("X.SVG", "svg"),
        ("x.png", "png"),
        ("x.htm", "html"),
        ("x.speedscope.json", "speedscope"),
        ("x.json", "speedscope"),
        ("x.folded", "collapsed"),
        ("-", "svg"),
        ("folder/", "svg"),
    ],
)
def test_the_name_of_a_file_tells_its_format(output: str, kind: str) -> None:
    assert choose_format(None, output) == kind


def test_a_name_that_tells_nothing_needs_a_format() -> None:
    with pytest.raises(UsageError, match=r"\.svg, \.png, \.html, \.json or \.txt, or say --format"):
        choose_format(None, "x.gif")
    assert choose_format("svg", "x.gif") == "svg"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x + y", "x - y"], "One statement at a time"),
        (["standard", "x + y"], "neither a suite nor a file"),
        (["standard", "--setup", "x = 1"], "setups of their own"),
        (["standard"], "cases. Select one with -k"),
        (["standard", "-o", "x.svg"], "-o x.svg/"),
        (["x + y", "-k", "add"], "no suite and no file"),
        (["x + y", "--python", "a", "--base", "b"], "either --python"),
        (["x + y", "--head", "b"], "nothing to compare with"),
        (["x + y", "--base", "b", "--sampled"], "Only exact graphs"),
        (["x + y", "--sampled", "--seconds", "0"], "look at nothing"),
        (["x + y", "--threads", "1,2"], "one number of --threads"),
        (["x" * 300, "-o", "x.gif"], "does not tell the format"),
        (["x + y", "--format", "png", "-o", "-"], "Name a file, such as -o flame.png"),
    ],
)
def test_what_makes_no_sense_is_refused(program: Program, arguments: list[str], message: str) -> None:
    done = program("flame", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize("how", [(), ("--sampled",), ("--base", "/some/python")])
def test_a_file_that_cannot_be_written_is_told_before_anything_is_measured(
    program: Program, how: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[object] = []
    monkeypatch.setattr("torchmark.api.flames.Tracer", measured.append)
    monkeypatch.setattr("torchmark.api.flames.sample_case", measured.append)
    done = program("flame", "x + y", *how, "-o", str(tmp_path / "no" / "x.svg"))
    assert done.returncode == 2
    assert f"There is no folder {tmp_path}/no to write x.svg to." in done.stderr
    assert measured == []


@pytest.mark.parametrize("how", [(), ("--sampled",), ("--base", "/some/python")])
def test_a_picture_that_cannot_be_drawn_is_told_before_anything_is_measured(
    program: Program, how: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[object] = []
    monkeypatch.setattr("torchmark.api.flames.Tracer", measured.append)
    monkeypatch.setattr("torchmark.api.flames.sample_case", measured.append)
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    done = program("flame", "x + y", *how, "-o", str(tmp_path / "x.png"))
    assert done.returncode == 3
    assert "pip install 'torchmark[png]'" in done.stderr
    assert measured == []


@pytest.mark.parametrize("how", [(), ("--base", "/some/python")])
def test_a_picture_is_written_of_one_build_and_of_a_difference(
    program: Program, how: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(cases: Sequence[Case], *_: object, **__: object) -> Iterator[tuple[Case, Graph]]:
        yield cases[0], Graph(HEAD, "x + y", "", BASE if how else None)

    monkeypatch.setattr("torchmark.api.flames.find_faults", lambda *_: {})
    monkeypatch.setattr("torchmark.api.flames._trace_all", find)
    done = program("flame", "x + y", *how, "-o", str(tmp_path / "x.png"))
    assert done.returncode == 0, done.stderr
    assert f"{tmp_path}/x.png" in done.stdout
    assert read_size((tmp_path / "x.png").read_bytes())[0] == 2 * WIDTH


def test_a_statement_that_fails_at_once_comes_with_advice(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = Failure(FailureKind.RAISED, "NameError: name 'y' is not defined")
    monkeypatch.setattr("torchmark.api.flames.find_faults", lambda cases, target: dict.fromkeys(cases, unknown))
    done = program("flame", "y + 1")
    assert done.returncode == 1
    assert 'such as --setup "y = torch.ones(4)"' in done.stderr


def test_what_is_wrong_with_a_statement_is_told_when_it_is_sampled_too(program: Program, tmp_path: Path) -> None:
    done = program("flame", "x +", "--sampled", "-o", str(tmp_path / "x.svg"))
    assert done.returncode == 1
    assert "SyntaxError: invalid syntax" in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_selected_is_said(program: Program) -> None:
    done = program("flame", "standard", "-k", "nothing_like_it")
    assert done.returncode == 1
    assert "nothing_like_it" in done.stderr + done.stdout


def test_only_plain_python_is_sampled(program: Program, tmp_path: Path) -> None:
    done = program("flame", "int y = 1;", "--language", "cpp", "--sampled", "-o", str(tmp_path / "x.svg"))
    assert done.returncode == 1
    assert "Only plain statements of Python" in done.stderr
    assert not (tmp_path / "x.svg").exists()


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("compared", [False, True])
def test_a_chain_of_calls_may_be_as_deep_as_it_likes(kind: str, compared: bool) -> None:
    graph = Graph(make_deep_stacks(3000), "deep", "", make_deep_stacks(3000, leaf=7) if compared else None)
    assert "f2999" in graph.render(kind)
