"""The processes of a running command, by what they are for: to end one of them, and to see that none is left."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from torchmark.runner.link import BOOTSTRAP

# Handed on to workers as everything is that begins like this, and to compilers as everything is.
MARKER = "TORCH_TRIAL"
LOOKING_INTERVAL_S = 0.002
PARTING_S = 60.0

PARENT, TIMER, COUNTER, CHILD, COMPILER = "parent", "timer", "counter", "child", "compiler"
_COMPILERS = {"c++", "g++", "cc", "gcc", "cc1", "cc1plus", "as", "collect2", "ld"}


def list_victims(parent: int, role: str) -> list[int]:
    """Those of this role that live now: workers, what they fork, and all that compiles."""
    if role == PARENT:
        return [parent]
    found: list[int] = []
    for pid in _children(parent):
        own = _role(pid)
        below = list(_descendants(pid))
        if own in (TIMER, COUNTER):
            found += [pid] if own == role else below if role == CHILD else []
        elif role == COMPILER:
            found += [one for one in (pid, *below) if _read(one, "comm").strip() in _COMPILERS]
    return found


def hunt(process: subprocess.Popen[str], role: str, luck: random.Random, kills: int, longest_s: float) -> int:
    """Kill so many of a role, each at a random moment of its life; says how many it were."""
    done, fates = 0, dict[int, float]()
    while process.poll() is None and done < kills:
        for pid in list_victims(process.pid, role):
            fate = fates.setdefault(pid, time.monotonic() + luck.uniform(0, longest_s))
            if time.monotonic() >= fate and done < kills:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    done += 1
                fates[pid] = float("inf")
        time.sleep(LOOKING_INTERVAL_S)
    return done


def list_marked(mark: str, folder: Path) -> list[str]:
    """All that live with this mark in their environment, or work in this folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            variables = (path / "environ").read_bytes().split(b"\0")
            marked = f"{MARKER}={mark}".encode() in variables or Path(os.readlink(path / "cwd")).is_relative_to(folder)
            if marked and (path / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                found.append((path / "cmdline").read_text().replace("\0", " ")[:200])
    return found


def wait_for(look: Callable[[], object]) -> bool:
    """Until something is so; not for ever."""
    end = time.monotonic() + PARTING_S
    while time.monotonic() < end:
        if look():
            return True
        time.sleep(0.01)
    return False


def _role(pid: int) -> str:
    command = _read(pid, "cmdline").split("\0")
    if BOOTSTRAP not in command:
        return ""
    return COUNTER if "--tool=callgrind" in command else TIMER


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return []


def _descendants(pid: int) -> Iterator[int]:
    for child in _children(pid):
        yield child
        yield from _descendants(child)


def _read(pid: int, name: str) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    return ""
