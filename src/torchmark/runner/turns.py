"""Runs of one user on one machine take turns: while one of them times, none of the others works.

Two locks on files, which the system releases for whoever is gone. All that may share the machine hold the room
together; whoever times holds it alone. Who wants to time holds the gate first, so that the others begin nothing more.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from pathlib import Path


class Turns:
    """One run's part in it. Nothing here ever waits. Where files cannot be locked, nobody is kept from anything."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(tempfile.gettempdir())
        self._descriptors: list[int] = []
        self._shares = False
        with contextlib.suppress(OSError):
            for name in ("gate", "room"):
                path = self._folder / f"torchmark-{os.getuid()}.{name}"
                self._descriptors.append(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def share(self) -> bool:
        """Whether work may begin that shares the machine; it then counts as under way until `leave`."""
        if not self._works:
            return True
        gate, room = self._descriptors
        if not _try(gate, fcntl.LOCK_SH):
            return False
        self._shares = self._shares or _try(room, fcntl.LOCK_SH)
        _release(gate)
        return self._shares

    def claim(self) -> bool:
        """Whether the machine is this run's alone, until `leave`. Once asked for, others begin nothing more."""
        if not self._works:
            return True
        gate, room = self._descriptors
        return _try(gate, fcntl.LOCK_EX) and _try(room, fcntl.LOCK_EX)

    def leave(self) -> None:
        """Let the others work."""
        self._shares = False
        for descriptor in self._descriptors:
            _release(descriptor)

    def close(self) -> None:
        """Be no part of it any more."""
        while self._descriptors:
            os.close(self._descriptors.pop())

    @property
    def _works(self) -> bool:
        return len(self._descriptors) == 2


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks
    return True


def _release(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
