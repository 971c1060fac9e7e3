"""A core of a node for each of those who count there, so that no two of them share one.

Who counts is held to one core, as on one machine: what the C library finds out about cores is counted, too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

from torchmark.files import Hold, open_lock, try_lock
from torchmark.runner.folders import lock_folder


class Seat:
    """One of these cores that nobody else sits on; the last, if there is none. The system frees it for who is gone.

    Where files cannot be locked, all sit on the last.
    """

    def __init__(self, cores: Sequence[int], folder: Path | None = None) -> None:
        self._descriptor: int | None = None
        self.core = cores[-1]
        folder = folder or lock_folder()
        if folder is None:
            return
        for core in cores:
            with contextlib.suppress(OSError):
                descriptor = open_lock(folder / f"core{core}")
                if try_lock(descriptor, fcntl.LOCK_EX) is Hold.HELD:
                    self._descriptor, self.core = descriptor, core
                    return
                os.close(descriptor)

    def close(self) -> None:
        """Leave it to others."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
