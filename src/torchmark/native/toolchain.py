"""Finds compilers, asks them for their versions, and runs them, several at a time."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import platform
import re
import shlex
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from torchmark.errors import SetupError, UsageError
from torchmark.files import find_command
from torchmark.model.environment import Sdk
from torchmark.model.task import Snippet
from torchmark.native.cache import Prelude, note_headers
from torchmark.native.render import CompileUnit, KeyedSnippet, Rendered, render, scan
from torchmark.processes import run_guarded

COMPILERS = ("c++", "g++", "clang++")
VERSION_TIMEOUT_S = 30
# Raised when the files that are made change their form.
FORMAT = 1
# Stands for what we put around all snippets.
_SAMPLE = CompileUnit((KeyedSnippet(Snippet("stmt", "setup", "global_setup"), "key"),), ())

# Of torch's own flags, those that change what code means or how it is made. Warnings, debug information and where
# files come from are not among them.
_KEPT = ("-D", "-O", "-f", "-m")
_DROPPED = ("-fdiagnostics", "-ffile-prefix-map", "-fmacro-prefix-map", "-fdebug-prefix-map", "-fopenmp", "-flto")
# Errors are told with their places, all of them, without colours; nobody reads warnings.
_OWN_FLAGS = ("-fPIC", "-w", "-fdiagnostics-color=never", "-fmax-errors=0")
# What of torch a snippet may call; whatever it does not call is not loaded on its behalf.
_LIBRARIES = (
    "torch", "torch_cpu", "c10", "torch_python", "torch_cuda", "c10_cuda", "torch_hip", "c10_hip", "torch_xpu",
    "c10_xpu",
)  # fmt: skip
# Flags whose next word is a path.
_BEFORE_A_PATH = ("-I", "-L", "-isystem", "-iquote", "-idirafter", "-include", "-imacros")
# Where compilers look for headers and libraries unasked.
_VARIABLES = ("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH")


@dataclasses.dataclass(frozen=True)
class Toolchain:
    """How to compile against one torch. `identity` is all that the result depends on, in one text."""

    compiler: tuple[str, ...]
    compile_flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    folder: str
    """Where the user's own headers are, those that are included with quotes."""
    identity: str

    def key(self, snippet: Snippet) -> str:
        """What stands for this snippet, compiled this way: equal keys, equal code."""
        own = [self.folder] if self.includes_own(snippet) else []
        return digest(self.identity, snippet.stmt, snippet.setup, snippet.global_setup, *own)

    def includes_own(self, snippet: Snippet) -> bool:
        """Whether it includes a file with quotes, or by a macro: that may be one in the working folder."""
        texts = (snippet.stmt, snippet.setup, snippet.global_setup)
        return any(not name.startswith("<") for text in texts for name in scan(text).includes)


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:32]


def make_toolchain(sdk: Sdk, environ: Mapping[str, str], folder: str) -> Toolchain:
    """The toolchain for a torch, with the compiler that `environ` names or has; SetupError says what is missing."""
    include = Path(sdk.folder, "include")
    if not (include / "torch/csrc/api/include/torch/torch.h").is_file():
        raise SetupError(
            f"The torch of {sdk.python} has no C++ headers: there is no torch/torch.h in {include}.",
            missing="headers",
            advice="Install them (Debian, Ubuntu: apt-get install libtorch-dev; torch from PyPI has them).",
        )
    compiler = find_compiler(environ)
    described = _describe_compiler(tuple(compiler))
    given = {name: _own_flags(name, environ, folder) for name in ("CPPFLAGS", "CXXFLAGS", "LDFLAGS")}
    compile_flags = (
        *_torch_flags(sdk),
        *_OWN_FLAGS,
        # Lets a precompiled prelude have its templates made once and for all.
        *(["-fpch-instantiate-templates"] if any("clang" in text for text in described) else []),
        # Their warnings are not the user's, and their names come after the user's own.
        *(flag for path in _include_folders(sdk, environ) for flag in ("-isystem", path)),
        *given["CPPFLAGS"],
        *given["CXXFLAGS"],
    )
    lib = Path(sdk.folder, "lib")
    link_flags = (
        "-shared",
        f"-L{lib}",
        "-Wl,--as-needed",
        *(f"-l{name}" for name in _LIBRARIES if (lib / f"lib{name}.so").exists()),
        *given["CXXFLAGS"],
        *given["LDFLAGS"],
    )
    identity = "\0".join(
        (
            f"{FORMAT} {platform.machine()} {sdk}",
            *render(_SAMPLE)[:2],
            *described,
            *compile_flags,
            *link_flags,
            *(f"{name}={environ.get(name)}" for name in _VARIABLES),
            _describe_processor() if any("native" in flag for flag in compile_flags) else "",
        )
    )
    return Toolchain(tuple(compiler), compile_flags, link_flags, folder=folder, identity=identity)


def find_compiler(environ: Mapping[str, str]) -> list[str]:
    """The C++ compiler as a command: the user's `CXX`, or the first that is found."""
    wanted = _split("CXX", environ)
    found = find_command(wanted, COMPILERS, environ)
    if found is not None:
        return [os.path.abspath(found[0]), *found[1:]]
    raise SetupError(
        f"There is no C++ compiler ({' '.join(wanted) or ', '.join(COMPILERS)}).",
        missing="compiler",
        advice="Install one (Debian, Ubuntu: apt-get install g++), or name yours in CXX.",
    )


def _split(name: str, environ: Mapping[str, str]) -> list[str]:
    try:
        return shlex.split(environ.get(name, ""))
    except ValueError as error:
        raise UsageError(f"{name} is {environ[name]!r}, which is no command line: {error}.") from error


def _own_flags(name: str, environ: Mapping[str, str], folder: str) -> list[str]:
    """The user's flags, with folders that mean the same elsewhere: the compiler does not run in the user's."""
    flags = _split(name, environ)
    for i, flag in enumerate(flags):
        if flag[:2] in ("-I", "-L") and len(flag) > 2:
            flags[i] = flag[:2] + os.path.join(folder, flag[2:])
        elif i and flags[i - 1] in _BEFORE_A_PATH:
            flags[i] = os.path.join(folder, flag)
    return flags


def _describe_processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(dict.fromkeys(line for line in lines if line.startswith(("model name", "flags", "Features"))))


def _torch_flags(sdk: Sdk) -> Iterator[str]:
    """The flags that torch was compiled with, as far as they matter to others."""
    for flag in shlex.split(sdk.cxx_flags):
        if flag.startswith(_KEPT) and not flag.startswith(_DROPPED):
            yield flag
    if "-O" not in sdk.cxx_flags:
        yield "-O2"
    yield f"-std=c++{sdk.cxx_standard}"
    yield f"-D_GLIBCXX_USE_CXX11_ABI={int(sdk.cxx11_abi)}"


def _include_folders(sdk: Sdk, environ: Mapping[str, str]) -> Iterator[str]:
    include = os.path.join(sdk.folder, "include")
    yield include
    yield os.path.join(include, "torch/csrc/api/include")
    if sdk.python_include is not None:
        yield sdk.python_include
    if environ.get("CONDA_PREFIX"):
        yield os.path.join(environ["CONDA_PREFIX"], "include")


@functools.lru_cache
def _describe_compiler(compiler: tuple[str, ...]) -> tuple[str, ...]:
    """Its version, and which file it is: an update may keep the version."""
    try:
        done = subprocess.run(
            [*compiler, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_TIMEOUT_S,
        )
        status = os.stat(compiler[0])
        lines = (done.stderr or done.stdout).strip().splitlines()
        problem = "".join(lines[:1]) if done.returncode else None
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = str(error)
    if problem is not None:
        raise SetupError(
            f"The C++ compiler {shlex.join(compiler)} does not work: {problem}.",
            missing="compiler",
            advice="Name another in CXX.",
        )
    return (*compiler, os.path.realpath(compiler[0]), done.stdout, f"{status.st_size} {status.st_mtime_ns}")


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
        self.stop = stop
        """Once it is set, what runs is ended, and nothing more is started."""
        # Messages in English, which we read.
        self._environ = {**environ, "LC_ALL": "C.UTF-8", "LANGUAGE": "C"}

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
        return run, note_headers([p for p in paths if os.path.isabs(p) and not p.startswith(str(folder))], started_ns)

    def link(self, folder: Path, *, complete: bool) -> ProgramResult:
        """Make `unit.so` of `unit.o`; a complete one has no names left to be found later."""
        flags = ["-Wl,--no-undefined"] if complete else []
        command = [*self.toolchain.compiler, "unit.o", *flags, *self.toolchain.link_flags, "-o", "unit.so"]
        return self._run(command, folder)

    def _run(self, command: Sequence[str], folder: Path) -> ProgramResult:
        if self.stop.is_set():
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
                if self.stop.is_set():
                    raise Stopped from None
        return False


def read_dependencies(text: str) -> list[str]:
    """The files that a rule for make names behind its colon.

    >>> read_dependencies("unit.o: unit.cpp \\\\\\n /a/my\\\\ file.h /b.h")
    ['unit.cpp', '/a/my file.h', '/b.h']
    """
    _, _, files = text.replace("\\\n", " ").partition(": ")
    return [re.sub(r"\\([\s#])", r"\1", name).replace("$$", "$") for name in re.findall(r"(?:\\.|\S)+", files)]
