"""Files of other users, for tests that run as root and for tests that do not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

STRANGER = 65534


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file belong to somebody else; where that is not allowed, let this process be somebody else."""
    if os.getuid() == 0:
        os.chown(path, STRANGER, -1, follow_symlinks=False)
    else:
        own = os.getuid()
        monkeypatch.setattr(os, "geteuid", lambda: own + 1)
