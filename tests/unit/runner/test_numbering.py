from __future__ import annotations

import os
import subprocess

import pytest

from torchmark.runner.worker import LARGEST_KEPT, skip_small_pids


@pytest.mark.parametrize(("pid", "started"), [(7, 1), (LARGEST_KEPT, 1), (LARGEST_KEPT + 1, 0), (70_000, 0)])
def test_numbers_are_used_up_only_where_they_are_small(monkeypatch: pytest.MonkeyPatch, pid: int, started: int) -> None:
    run, codes = subprocess.run, []

    def note(*args: object, **options: object) -> None:
        codes.append(run(*args, **options).returncode)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "getpid", lambda: pid)
    monkeypatch.setattr(subprocess, "run", note)
    skip_small_pids()
    assert codes == [0] * started
