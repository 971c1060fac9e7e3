"""Runs of one user on one machine take turns: while one of them times, none of the others works.

Two locks on files, which the system releases for whoever is gone. All that may share the machine hold the room
together; whoever times holds it alone. Who wants to time holds the gate first, so that the others begin nothing more.
The files lie in a folder that no other user can write to, so nobody waits for another user.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

from torchmark.files import Hold, list_holders, open_lock, try_lock
from torchmark.runner.folders import lock_folder
from torchmark.runner.notices import tell_once

# Others are often done within a few seconds, of which nobody needs to be told.
TELLING_AFTER_S = 5.0
# A process that cannot be seen from here, as in another container, may hold a lock for as long as it times. Large
# suites take about this long. One that is dead may have left the lock to a process that it forked, for ever.
LONGEST_WAIT_FOR_UNSEEN_S = 3600.0


class Turns:
    """One run's part in it. Nothing here ever waits: whoever is refused asks again.

    Where files cannot be locked, nobody is kept from anything.
    """

    def __init__(self, folder: Path | None = None, tell: Callable[[str], None] = tell_once) -> None:
        self._descriptors: list[int] = []
        self._shares = False
        self._tell = tell
        self._refused_since: float | None = None
        folder = folder or lock_folder()
        if folder is None:
            return
        with contextlib.suppress(OSError):
            for name in ("gate", "room"):
                self._descriptors.append(open_lock(folder / name))

    def share(self) -> bool:
        """Whether work may begin that shares the machine; it then counts as under way until `leave`."""
        if not self._works:
            return True
        gate, room = self._descriptors
        if try_lock(gate, fcntl.LOCK_SH) is Hold.BUSY:
            return self._is_given_up(gate)
        self._shares = self._shares or try_lock(room, fcntl.LOCK_SH) is not Hold.BUSY
        _release(gate)
        return self._note_success() if self._shares else self._is_given_up(room)

    def claim(self) -> bool:
        """Whether the machine is this run's alone, until `leave`. Once asked for, others begin nothing more."""
        if not self._works:
            return True
        for descriptor in self._descriptors:
            if try_lock(descriptor, fcntl.LOCK_EX) is Hold.BUSY:
                return self._is_given_up(descriptor)
        return self._note_success()

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

    def _note_success(self) -> bool:
        self._refused_since = None
        return True

    def _is_given_up(self, descriptor: int) -> bool:
        """Whether this run goes on although another one holds a lock. It says who that is, if it takes long."""
        now = time.monotonic()
        if self._refused_since is None:
            self._refused_since = now
        waited_s = now - self._refused_since
        if waited_s < TELLING_AFTER_S:
            return False
        if pids := list_holders(descriptor):
            who = "process " + ", ".join(map(str, pids))
            self._tell(f"Waiting for another run of torchmark on this machine ({who}).")
            return False
        if waited_s < LONGEST_WAIT_FOR_UNSEEN_S:
            self._tell("Waiting for another run of torchmark, which is in another container or has left a process.")
            return False
        self._tell(
            f"Not waiting any longer for a run of torchmark that has held the machine for {waited_s / 60:.0f} minutes "
            "and cannot be seen from here: times may be disturbed by it."
        )
        self.close()
        return True


def _release(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
