"""Runs the compiler and the linker, several at a time, and ends them if nobody wants their work any more."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from torchmark.native.cache import Prelude, note_headers
from torchmark.native.render import Rendered
from torchmark.native.toolchain import Toolchain
from torchmark.processes import run_guarded

# A hundred snippets take half a minute on a slow machine.
TIMEOUT_S = 900.0
LOOKING_INTERVAL_S = 0.2


class ProgramResult(NamedTuple):
    """How a program ended: its exit code, what it said, and whether it had to be ended."""

    code: int
    output: str
    timed_out: bool = False


class Stopped(Exception):
    """The work was given up."""


class Compiler:
    """A toolchain at work."""

    def __init__(self, toolchain: Toolchain, environ: Mapping[str, str], stop: threading.Event) -> None:
        self.toolchain = toolchain
        self._stop = stop
        # Messages in English, which we read.
        self._environ = {**environ, "LC_ALL": "C.UTF-8", "LANGUAGE": "C"}

    @property
    def is_stopped(self) -> bool:
        """Whether nobody wants its work any more."""
        return self._stop.is_set()

    def stop(self) -> None:
        """End what runs, and start nothing more."""
        self._stop.set()

    def compile(
        self, rendered: Rendered, folder: Path, prelude: Prelude | None = None, own_headers: bool = False
    ) -> tuple[ProgramResult, dict[str, tuple[int, int]]]:
        """Compile to `unit.o` in this folder; also gives the state of the headers that were read.

        A prelude that was compiled before saves most of the time. With `own_headers`, files that are included with
        quotes are looked for in the user's folder.
        """
        source = rendered.source if prelude else rendered.prelude + rendered.source
        (folder / "unit.cpp").write_text(source, encoding="utf-8", newline="")
        for name, text in rendered.parts.items():
            # The compiler quotes lines from files of the names it was told.
            (folder / name).write_text(text, encoding="utf-8", newline="")
        flags = ["-include", str(prelude.header)] if prelude else []
        flags += ["-iquote", self.toolchain.folder] if own_headers else []
        run, headers = self._compile([*flags, "-c", "unit.cpp", "-o", "unit.o"], folder)
        return run, {**headers, **(prelude.headers if prelude else {})}

    def precompile(self, prelude: Path, folder: Path) -> tuple[ProgramResult, dict[str, tuple[int, int]]]:
        """Compile a prelude to a form that is quick to load, `prelude.gch` in this folder."""
        run, headers = self._compile(["-x", "c++-header", str(prelude), "-o", "prelude.gch"], folder)
        return run, {path: state for path, state in headers.items() if path != str(prelude)}

    def _compile(self, arguments: Sequence[str], folder: Path) -> tuple[ProgramResult, dict[str, tuple[int, int]]]:
        started_ns = time.time_ns()
        toolchain = self.toolchain
        command = [*toolchain.compiler, *toolchain.compile_flags, "-MD", "-MF", "unit.d", *arguments]
        run = self._run(command, folder)
        if run.code != 0:
            return run, {}
        paths = read_dependencies((folder / "unit.d").read_text(errors="surrogateescape"))
        own = str(folder)
        return run, note_headers([p for p in paths if os.path.isabs(p) and not p.startswith(own)], started_ns)

    def link(self, folder: Path, *, complete: bool) -> ProgramResult:
        """Make `unit.so` of `unit.o`; a complete one has no names left to be found later."""
        flags = ["-Wl,--no-undefined"] if complete else []
        command = [*self.toolchain.compiler, "unit.o", *flags, *self.toolchain.link_flags, "-o", "unit.so"]
        return self._run(command, folder)

    def _run(self, command: Sequence[str], folder: Path) -> ProgramResult:
        if self.is_stopped:
            raise Stopped
        end = time.monotonic() + TIMEOUT_S
        # A file, not a pipe that could fill up.
        with open(folder / "output", "w+b") as output:
            # The compiler starts other programs, which have to end with it, and with us.
            with run_guarded(
                command,
                cwd=folder,
                # What a compiler that is killed leaves behind goes with the folder.
                env={**self._environ, "TMPDIR": str(folder)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            ) as process:
                timed_out = not self._await(process, end)
            output.seek(0)
            return ProgramResult(process.returncode, output.read().decode(errors="replace"), timed_out)

    def _await(self, process: subprocess.Popen[bytes], end: float) -> bool:
        """Whether it ended by itself in time."""
        while time.monotonic() < end:
            try:
                process.wait(LOOKING_INTERVAL_S)
                return True
            except subprocess.TimeoutExpired:
                if self._stop.is_set():
                    raise Stopped from None
        return False


def read_dependencies(text: str) -> list[str]:
    """The files that a rule for make names behind its colon.

    >>> read_dependencies("unit.o: unit.cpp \\\\\\n /a/my\\\\ file.h /b.h")
    ['unit.cpp', '/a/my file.h', '/b.h']
    """
    _, _, files = text.replace("\\\n", " ").partition(": ")
    return [re.sub(r"\\([\s#])", r"\1", name).replace("$$", "$") for name in re.findall(r"(?:\\.|\S)+", files)]
