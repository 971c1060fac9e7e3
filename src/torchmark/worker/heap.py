"""The C library's heap of a zygote: what lies free between other things is used up before a child is forked.

An allocator that finds gaps walks from one to the next, and meets a page that is still shared with the zygote every few
runs of a statement. So children were slower for their first 4000 runs of a small operator, and for 700 without gaps.
"""

from __future__ import annotations

import ctypes

from torchmark.worker.process import release_free_memory

# From what is just small enough to lie in the heap to the smallest block, each three quarters of the one before.
LARGEST_GAP = 1 << 16
SMALLEST_GAP = 32
# Blocks are taken in batches of so many bytes, for asking how much is free takes longer than taking a block.
BATCH_BYTES = 1 << 16
MOST_IN_BATCH = 256
# There are hundreds of kilobytes of gaps, not more than this.
MOST_BYTES = 256 << 20

# Where the next block lies behind all others, as far as caches and pages are concerned.
ALIGNMENT = 1 << 16

_FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


class _State(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS.split()]


def fill_gaps() -> None:
    """Take whatever is free, and keep it for ever. Where the C library does not tell what is free, nothing happens."""
    release_free_memory()
    libc = ctypes.CDLL(None)
    ask = getattr(libc, "mallinfo2", None)  # glibc 2.33
    if ask is None:
        return
    ask.restype = _State
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]

    def count_free() -> int:
        """Without what lies behind everything else, which is no gap."""
        state = ask()
        return int(state.fordblks - state.keepcost)

    size, taken = LARGEST_GAP, 0
    while size >= SMALLEST_GAP and taken < MOST_BYTES:
        number = max(1, min(MOST_IN_BATCH, BATCH_BYTES // size))
        before = count_free()
        for _ in range(number):
            libc.malloc(size)
        taken += number * size
        if before - count_free() < number * size // 2:
            # Most of it came from behind: there are no gaps of this size any more.
            size = size * 3 // 4 & ~15
    # What follows lies alike in all processes, however much lies before it.
    here = libc.malloc(SMALLEST_GAP)
    libc.malloc(ALIGNMENT - (here + SMALLEST_GAP + 32) % ALIGNMENT)
