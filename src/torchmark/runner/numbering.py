"""The numbers of the processes that count: they too can be seen in a count."""

from __future__ import annotations

import os
import subprocess
import sys

# Python has a ready-made object for each number up to this one.
LARGEST_KEPT = 256

_PROGRAM = f"""
import os
for _ in range({2 * LARGEST_KEPT}):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    if pid > {LARGEST_KEPT}:
        break
"""
_TIMEOUT_S = 60.0


def pass_small_numbers() -> None:
    """Use up the small numbers that the first processes of a container have.

    Modules note the number of their process while they are imported. Where that is one of those that Python keeps, no
    memory is needed for it, all that follows lies elsewhere, and counts differ from those of later workers.
    """
    if os.getpid() <= LARGEST_KEPT:
        # Should it fail, the worker that is started next has a small number; that is all.
        subprocess.run([sys.executable, "-I", "-S", "-c", _PROGRAM], timeout=_TIMEOUT_S, check=False)
