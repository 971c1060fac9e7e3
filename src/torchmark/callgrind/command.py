"""Valgrind's command line."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys

from torchmark.errors import SetupError

PROCESSORS = ("x86_64", "aarch64")
# How many callers are kept of each instruction, where they are asked for. A call of an operator through two overrides
# has sixty; what is deeper than this loses its outermost ones.
CALLERS = 1000


def find_valgrind(path: str | None = None, system: str = sys.platform, processor: str | None = None) -> str:
    """Where Valgrind is; SetupError where it is not, or cannot be."""
    processor = processor or platform.machine()
    if system != "linux" or processor not in PROCESSORS:
        raise SetupError(
            f"Valgrind is not supported on this platform ({system}, {processor}).",
            missing="valgrind",
            advice="Count on Linux on x86-64 or ARM64, for instance in a container, or use wall time here.",
        )
    found = shutil.which("valgrind", path=path)
    if found is None:
        raise SetupError(
            "Missing: valgrind.",
            missing="valgrind",
            advice="Install it (Debian, Ubuntu: apt-get install valgrind; Fedora: dnf install valgrind).",
        )
    return found


def ask_version(valgrind: str) -> str | None:
    """What Valgrind says it is, such as `valgrind-3.19.0`."""
    try:
        done = subprocess.run([valgrind, "--version"], capture_output=True, text=True, errors="replace", timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def callgrind_command(valgrind: str, scratch: str, *, simulate: bool = False, callers: bool = False) -> list[str]:
    """What to put before the program; with `callers`, names of functions are whole chains of them.

    Nothing is instrumented until the program asks for it, which makes its start cheap. Collecting is on, also for
    threads to come. Files are by process: `%p` is its number.
    """
    simulation = ["--cache-sim=yes", "--branch-sim=yes"] if simulate else []
    return [
        valgrind,
        # Options that the user keeps for other uses of Valgrind are not for this one.
        "--command-line-only=yes",
        "--tool=callgrind",
        "--instr-atstart=no",
        "--collect-atstart=yes",
        f"--callgrind-out-file={scratch.replace('%', '%%')}/%p",
        # No debugger is going to connect, and its pipes would be left behind by a process that is killed.
        "--vgdb=no",
        "--quiet",
        *simulation,
        *([f"--separate-callers={CALLERS}"] if callers else []),
    ]
