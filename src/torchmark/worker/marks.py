"""Talks to Callgrind from inside the process it watches, through the small library of client requests."""

from __future__ import annotations

import ctypes

from torchmark.wire.profiles import DISCARDED
from torchmark.worker.calls import Calls

# Those of a job, and one to ring with.
DESCRIPTORS = 6
# What os.fork calls before it forks, then in the child, and in the parent. They are part of Python's documented C API.
AROUND_FORK = ("PyOS_BeforeFork", "PyOS_AfterFork_Child", "PyOS_AfterFork_Parent")


class Marks:
    """Tells Callgrind when to write. `clock` is for a loop, which reads its clock just before and just after."""

    def __init__(self, library: str) -> None:
        # Not CDLL: that one lets go of the interpreter's lock around each call, which would be counted too.
        loaded = ctypes.PyDLL(library)
        self._start = loaded.torchmark_start
        self._arm = loaded.torchmark_arm
        self._arm.argtypes = [ctypes.c_char_p]
        self._running = loaded.torchmark_running
        self._running.restype = ctypes.c_ulong
        self._dump = loaded.torchmark_dump
        self._dump.argtypes = [ctypes.c_char_p]
        self._scatter = loaded.torchmark_scatter
        self._scatter.argtypes = [ctypes.c_ulong]
        self._serve = loaded.torchmark_serve
        self._serve.argtypes = [ctypes.c_int, ctypes.c_void_p, *[ctypes.c_void_p] * len(AROUND_FORK)]
        self._around_fork = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p) for name in AROUND_FORK]
        self._descriptors = (ctypes.c_int * DESCRIPTORS)()
        # A foreign function with no Python around it: whatever it costs between its request and the loop is counted.
        self.clock = loaded.torchmark_clock
        self.clock.restype = ctypes.c_double
        self.calls: Calls | None = None
        """Makes Python functions visible, where they are to be."""
        self.started = False
        """Whether what runs is looked at. It is not at first, which makes it several times as fast."""

    @property
    def watched(self) -> bool:
        """Whether this process runs under Valgrind."""
        return bool(self._running())

    def start(self) -> None:
        """Instrument and collect from here on."""
        self._start()
        self.started = True

    def arm(self, name: str) -> None:
        """Let the next loop that has `clock` for its clock write its profile, under this name."""
        self._arm(name.encode())

    def forget(self) -> None:
        """Let Callgrind start anew, which it does after it has written what it has."""
        self._dump(DISCARDED.encode())

    def serve(self, control: int) -> tuple[int, ...] | None:
        """Fork for every job, outside Python; see `worker/loop.py` for what this does and gives."""
        if not self._serve(control, self._descriptors, *self._around_fork):
            return None
        return tuple(self._descriptors[:DESCRIPTORS])

    def scatter(self, seed: int) -> object:
        """Change the layout of the heap in a way that the seed decides; holds as long as what it gives is kept."""
        self._scatter(seed)
        return _scatter_objects(seed)


# Enough to touch every size class of Python's own allocator several times.
_SMALL_OBJECTS = 300
_LARGEST_SMALL_OBJECT_BYTES = 480


def _scatter_objects(seed: int) -> list[bytes]:
    """Python keeps small objects in pools of its own: fill some, with holes.

    The numbers come from the generator of Knuth's MMIX, the same in every version of Python.
    """
    state, kept = seed, []
    for _ in range(_SMALL_OBJECTS):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        piece = bytes(1 + (state >> 33) % _LARGEST_SMALL_OBJECT_BYTES)
        if (state >> 60) & 1:
            kept.append(piece)
    return kept
