"""Gaps in the heap of a zygote, used up."""

from __future__ import annotations

import json
import subprocess
import sys

# In a process of its own: what is taken is never given back.
PROGRAM = """
import ctypes, json
from torchmark.worker import zygote

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
libc.mallinfo2.restype = zygote._State
blocks = [libc.malloc(3000) for _ in range(2000)]
for block in blocks[::2]:
    libc.free(block)

def gaps():
    state = libc.mallinfo2()
    return state.fordblks - state.keepcost

before = gaps()
zygote.fill_gaps()
# Keeps what it gets, as its results would be in the way.
after = gaps()
here = libc.malloc(200)
print(json.dumps([before, after, here % zygote.ALIGNMENT, max(blocks) < here]))
"""


def test_what_lies_free_between_blocks_is_taken_and_what_follows_is_aligned() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    before, after, offset, behind = json.loads(done.stdout)
    assert before > 2_000_000
    assert after < before / 20
    assert behind
    # Python's own use of the zygote may come in between.
    assert offset < 65536
