"""A process by which something is owned, told apart from all others that had or will have its number."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Owner:
    """A process of some machine. Numbers of processes are used again, by other boots and other containers too."""

    boot: str
    """What the kernel calls this time of being up; no other machine has the same."""
    namespace: int
    """Within which its number counts."""
    pid: int
    started: int
    """In ticks since boot."""


def this_process() -> Owner:
    """The process that asks."""
    pid = os.getpid()
    return Owner(_read_boot(), read_namespace() or 0, pid, read_start(pid) or 0)


def is_alive(owner: Owner) -> bool:
    """Whether that process still runs, as far as can be told from here.

    Of processes in other containers and on other machines nothing is known; they count as gone.
    """
    here = this_process()
    return (owner.boot, owner.namespace) == (here.boot, here.namespace) and read_start(owner.pid) == owner.started


def read_namespace() -> int | None:
    """The number of the namespace that processes are numbered in."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return None


def read_start(pid: int) -> int | None:
    """When a process started, in ticks since boot; None if there is none, or one that has only not been waited for."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name of the program, in brackets, may contain anything; the start is the 20th field after it.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def name_scratch() -> str:
    """What the names of this process's scratch folders begin with, so that they can be removed when it is gone.

    It has the same length for every process: a worker that is told it has the same heap then.
    """
    pid = os.getpid()
    return f"torchmark-{pid:010}-{read_start(pid) or 0:020}-{read_namespace() or 0:020}-"


def _read_boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
