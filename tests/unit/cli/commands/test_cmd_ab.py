"""What `torchmark ab` refuses before it begins, and its exit codes. What it does is in tests/integration/test_ab.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.in_process import Program
from tests.made_judgements import fail, make_judgement, make_time
from torchmark.compare.session import ComparisonResult
from torchmark.model.judgement import Side


def test_a_page_that_cannot_be_written_is_told_before_anything_is_measured(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[object] = []
    monkeypatch.setattr("torchmark.cli.commands.cmd_ab.run_comparison", lambda *given, **_: measured.append(given))
    done = program("ab", "1", "2", "--html", str(tmp_path))
    assert done.returncode == 2
    assert f"{tmp_path} is a folder. Name a file in it, such as {tmp_path}/ab.html." in done.stderr
    assert measured == []


@pytest.mark.parametrize(
    ("sides", "codes"),
    [
        # Which sides of one of two cases fail, and the codes without a gate and with one.
        ((), (0, 0)),
        ((Side.BASE,), (0, 0)),
        ((Side.BASE, Side.HEAD), (0, 0)),
        ((Side.HEAD,), (0, 1)),
    ],
)
def test_a_gate_does_not_pass_a_head_that_fails_where_base_does_not(
    program: Program, monkeypatch: pytest.MonkeyPatch, sides: tuple[Side, ...], codes: tuple[int, int]
) -> None:
    other = make_judgement("b", time=None if sides else make_time(0.0), failures=fail(*sides))
    found = ComparisonResult(judgements=(make_judgement("a", time=make_time(0.0)), other))
    monkeypatch.setattr("torchmark.cli.commands.cmd_ab.run_comparison", lambda *_, **__: found)
    ab = ("ab", "1", "2", "--metric", "wall")
    assert program(*ab).returncode == codes[0]
    for gate in (["--fail-on", "slower"], ["--limit", "time:2%"]):
        done = program(*ab, *gate)
        assert done.returncode == codes[1]
        assert ("head failed there" in done.stdout) == bool(codes[1])
    done = program(*ab, "--limit", "Ir:1%")
    assert done.returncode == 1
    assert "No case could be held to the limit Ir:1%: none was counted on both sides." in done.stdout


def test_nothing_compared_is_a_failure_with_and_without_a_gate(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ComparisonResult(judgements=(make_judgement("a", failures=fail(Side.BASE)),))
    monkeypatch.setattr("torchmark.cli.commands.cmd_ab.run_comparison", lambda *_, **__: found)
    for gate in ((), ("--fail-on", "slower"), ("--limit", "time:2%")):
        done = program("ab", "1", "2", "--metric", "wall", *gate)
        assert done.returncode == 1
        assert "Nothing was compared: no case has results on both sides." in done.stdout


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("HEAD~1", "HEAD"), "ab compares two statements, or two interpreters, not commits."),
        (("1", "origin/main"), "Build each commit in an environment of its own"),
        (("--base", "/some/python", "x+1"), "To compare a statement in both interpreters, write --stmt x+1."),
        (("--base", "/some/python", "x + y"), "write --stmt 'x + y'."),
        (("--base", "/some/python", "--setup", "x = 1"), "say with --stmt which statement is meant"),
    ],
)
def test_what_was_probably_meant_is_said_before_anything_starts(
    program: Program, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], advice: str
) -> None:
    monkeypatch.setattr("torchmark.cli.commands.cmd_ab.run_comparison", None)
    done = program("ab", *arguments)
    assert done.returncode == 2
    assert advice in done.stderr
