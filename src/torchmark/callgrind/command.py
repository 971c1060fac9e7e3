"""Valgrind's command line, and the libraries that a counting worker loads."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from torchmark.errors import SetupError
from torchmark.files import (
    add_checksum,
    find_command,
    has_checksum,
    is_ours,
    make_private_folder,
    put_in_place,
    writing_to_cache,
)

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
        *(["--cache-sim=yes", "--branch-sim=yes"] if simulate else []),
        *([f"--separate-callers={CALLERS}"] if callers else []),
    ]


# What every counting worker needs, and what makes Python functions visible to Callgrind.
WATCHED = Path(__file__).with_name("watched.c")
FRAMES = Path(__file__).with_name("frames.c")
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-O2", "-shared", "-fPIC")
COMPILE_TIMEOUT_S = 120


def build_library(folder: Path, environ: Mapping[str, str], file: Path = WATCHED) -> Path:
    """The compiled library in this folder; compiles it if it is not there yet. `environ` says where compilers are."""
    source = file.read_bytes()
    key = hashlib.sha256(b"\0".join((source, platform.machine().encode(), *map(str.encode, FLAGS)))).hexdigest()[:16]
    library = folder / f"{file.stem}-{key}.so"
    if not _holds(library):
        compiler = find_compiler(environ)
        with writing_to_cache(folder):
            make_private_folder(folder)
            _compile(compiler, file, library, environ)
    return library


def _holds(library: Path) -> bool:
    """Whether there is a whole one that nobody else can have written."""
    try:
        return is_ours(library) and has_checksum(library.read_bytes())
    except OSError:
        return False


def find_compiler(environ: Mapping[str, str]) -> list[str]:
    """The C compiler as a command: the user's `CC`, or the first that is found."""
    wanted = shlex.split(environ.get("CC", ""))
    found = find_command(wanted, COMPILERS, environ)
    if found is not None:
        return found
    raise SetupError(
        f"There is no C compiler ({' '.join(wanted) or ', '.join(COMPILERS)}).",
        missing="compiler",
        advice="Counting compiles a small file once. Install one (Debian, Ubuntu: apt-get install gcc libc6-dev), "
        "or name yours in CC.",
    )


def _compile(compiler: list[str], file: Path, library: Path, environ: Mapping[str, str]) -> None:
    # What a compiler that fails leaves behind goes with the folder.
    with tempfile.TemporaryDirectory(prefix=f".{file.stem}-", dir=library.parent) as folder:
        made = os.path.join(folder, library.name)
        try:
            done = subprocess.run(
                [*compiler, *FLAGS, "-o", made, str(file)],
                env={**environ, "TMPDIR": folder},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=COMPILE_TIMEOUT_S,
            )
            problem = done.stderr.strip() if done.returncode else None
        except (OSError, subprocess.TimeoutExpired) as error:
            problem = str(error)
        if problem is not None:
            raise SetupError(
                f"{shlex.join(compiler)} cannot compile its library for counting: {problem}",
                missing="compiler",
                advice="Try another compiler: name it in CC.",
            )
        whole = f"{made}.whole"
        Path(whole).write_bytes(add_checksum(Path(made).read_bytes()))
        os.chmod(whole, 0o755)
        put_in_place(whole, library, durable=True)
