"""The command line in the process of the tests, for claims that do not depend on one of its own."""

from __future__ import annotations

import dataclasses
import functools
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from torchmark.api.timer_engines import get_worker
from torchmark.cli.main import main
from torchmark.runner.spec import WorkerSpec

Program = Callable[..., "subprocess.CompletedProcess[str]"]


Choice = Callable[[WorkerSpec], WorkerSpec]


def forget_rehearsal(spec: WorkerSpec) -> WorkerSpec:
    """One that has rehearsed TorchScript would have to be started for it; any other can do the same, more slowly."""
    return dataclasses.replace(spec, scripting=False)


class LentWorker:
    """One of the pool, for a command that ends its worker when it is done: this one stays, for others to use."""

    def __init__(self, spec: WorkerSpec, environ: object = None, choose: Choice = forget_rehearsal) -> None:
        self._worker = get_worker(choose(spec))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._worker, name)

    def close(self) -> None:
        """Whoever lends it ends it."""

    abandon = close


def lend_workers(monkeypatch: pytest.MonkeyPatch, choose: Choice = forget_rehearsal) -> None:
    """Have commands in this process use workers of the pool; `choose` says which, instead of the one they want."""
    lend = functools.partial(LentWorker, choose=choose)
    for module in ("runner.worker", "api.inputs"):
        monkeypatch.setattr(f"torchmark.{module}.Worker", lend)


def make_program(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Program:
    """What runs the program with shared workers, and gives what a process of its own would have left."""
    lend_workers(monkeypatch)
    path = list(sys.path)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        # Commands put the working folder in front of it: once, as in a process of its own, or jobs would differ.
        monkeypatch.setattr(sys, "path", list(path))
        capfd.readouterr()
        code = main(list(arguments))
        return subprocess.CompletedProcess(arguments, code, *capfd.readouterr())

    return run
