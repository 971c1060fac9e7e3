"""What holds for all tests."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def colours_as_if_nobody_had_said_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own NO_COLOR does not change what tables look like in tests."""
    monkeypatch.delenv("NO_COLOR", raising=False)
