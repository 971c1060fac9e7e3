from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from torchmark.runner.machine import describe_host, describe_sources


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_the_commit_of_a_file_of_benchmarks_is_noted_and_whether_it_has_changed_since(tmp_path: Path) -> None:
    suite = tmp_path / "bench_x.py"
    suite.write_text("BENCHMARKS = {}")
    assert describe_sources([str(suite)])[0].commit is None
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "x")
    (source,) = describe_sources([str(suite), str(suite)])
    assert (source.commit, source.dirty) == (git(tmp_path, "rev-parse", "HEAD"), False)
    suite.write_text("BENCHMARKS = {1: 2}")
    assert describe_sources([str(suite)])[0].dirty


def test_a_suite_that_comes_along_has_no_commit_of_its_own() -> None:
    (source,) = describe_sources(["standard"])
    assert (source.suite, source.commit, source.dirty) == ("standard", None, False)


def test_without_git_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = tmp_path / "bench_x.py"
    suite.write_text("")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert describe_sources([str(suite)])[0].commit is None


def test_the_machine_is_described_with_whatever_can_be_read(tmp_path: Path) -> None:
    host = describe_host({"PATH": str(tmp_path)}, root=tmp_path)
    assert host.cpu_model is None
    assert host.compiler is None
    assert host.system
