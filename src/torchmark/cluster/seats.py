"""A core of a node for each of those who count there, so that no two of them share one.

Who counts is held to one core, as on one machine: what the C library finds out about cores is counted, too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path


class Seat:
    """One of these cores that nobody else sits on; the last, if there is none. The system frees it for who is gone."""

    def __init__(self, cores: Sequence[int], folder: Path | None = None) -> None:
        self._descriptor: int | None = None
        self.core = cores[-1]
        for core in cores:
            path = (folder or Path(tempfile.gettempdir())) / f"torchmark-{os.getuid()}.core{core}"
            with contextlib.suppress(OSError):
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                if _try(descriptor):
                    self._descriptor, self.core = descriptor, core
                    return
                os.close(descriptor)

    def close(self) -> None:
        """Leave it to others."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
