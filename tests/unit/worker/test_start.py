from __future__ import annotations

import sys

import pytest

from torchmark.worker.protocol import PROTOCOL, Hello
from torchmark.worker.start import explain_unsupported

COUNTING = Hello(PROTOCOL, "/nowhere", "/nowhere/library.so")
TIMING = Hello(PROTOCOL, "/nowhere", None)


def test_this_python_can_count() -> None:
    assert explain_unsupported(COUNTING) is None


def test_a_free_threaded_python_is_refused_for_counting_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "abiflags", "t")
    assert "free-threaded" in (explain_unsupported(COUNTING) or "")
    assert explain_unsupported(TIMING) is None


def test_another_implementation_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.implementation, "name", "graalpy")
    assert "graalpy" in (explain_unsupported(COUNTING) or "")
