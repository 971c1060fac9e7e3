"""What kind of worker: its interpreter, its environment variables, and its layout of memory."""

from __future__ import annotations

import dataclasses
import importlib.machinery
import os
import re
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from torchmark.errors import InterpreterError, SetupError, UsageError
from torchmark.model.job import BARE_LAYOUT

# The system puts libraries below the room that it leaves to the stack, which is as large as the stack may grow. The
# first is above the 128 MiB that it leaves at the least; a step is no multiple of the size of a large page.
FIRST_STACK_BYTES = 256 << 20
STEP_BYTES = 921 * 4096
# What `personality` takes to lay every process out alike, and what the file in /proc shows then.
ADDR_NO_RANDOMIZE = 0x0040000

HASH_SEED = "PYTHONHASHSEED"
PADDING = "TORCHMARK_PADDING"
LAYOUT_VARIABLES = (HASH_SEED, PADDING)

# Runs in our own interpreter for a moment: what it sets stays when the program that it becomes is loaded. A system that
# does not allow it is found out afterwards.
_LAUNCH = """
import ctypes, os, resource, sys
try:
    ctypes.CDLL(None).personality(ctypes.c_ulong(int(sys.argv[1])))
except AttributeError:
    pass
try:
    resource.setrlimit(resource.RLIMIT_STACK, (int(sys.argv[2]), resource.getrlimit(resource.RLIMIT_STACK)[1]))
except (OSError, ValueError):
    pass
os.execv(sys.argv[3], sys.argv[3:])
"""


@dataclasses.dataclass(frozen=True)
class Layout:
    """One of many layouts, by its number; `padding_bytes` evens out what differs in length between two programs."""

    number: int
    padding_bytes: int = 0

    @property
    def stack_bytes(self) -> int:
        return FIRST_STACK_BYTES + self.number * STEP_BYTES

    @property
    def variables(self) -> dict[str, str]:
        return {HASH_SEED: str(self.number + 1), PADDING: "x" * self.padding_bytes}


def layout_command(layout: Layout, python: str) -> list[str]:
    numbers = (str(ADDR_NO_RANDOMIZE), str(layout.stack_bytes))
    return [sys.executable, "-I", "-S", "-c", _LAUNCH, *numbers, python]


def even_out(base: str, head: str) -> tuple[int, int]:
    """How many bytes of padding make the stacks of two programs begin alike.

    A program's path lies there twice: as its name and as its first argument.

    >>> even_out("/usr/bin/python3", "/venv/bin/python")
    (0, 0)
    >>> even_out("/a", "/abc")
    (4, 0)
    """
    longer = len(os.fsencode(base)) - len(os.fsencode(head))
    return 2 * max(0, -longer), 2 * max(0, longer)


class Mapped(NamedTuple):
    """A part of a file in memory that can be executed."""

    start: int
    size: int
    name: str


@dataclasses.dataclass(frozen=True)
class Map:
    """What lies where in a process, as far as it is code; and whether the system was kept from drawing addresses."""

    fixed: bool
    code: frozenset[Mapped]


def read_map(pid: int, root: Path = Path("/proc")) -> Map | None:
    """The map of a process; None where the system does not tell."""
    try:
        text = (root / str(pid) / "maps").read_text(errors="replace")
        persona = int((root / str(pid) / "personality").read_text(), 16)
    except (OSError, ValueError):
        return None
    return Map(bool(persona & ADDR_NO_RANDOMIZE), frozenset(_parse_maps(text)))


def _parse_maps(text: str) -> list[Mapped]:
    """The files that are mapped for execution, without their folders, which may differ.

    >>> _parse_maps("1000-3000 r-xp 00000000 08:01 7 /usr/lib/libc.so.6")
    [Mapped(start=4096, size=8192, name='libc.so.6')]
    """
    found = []
    for line in text.splitlines():
        parts = line.split(None, 5)
        if len(parts) == 6 and "x" in parts[1] and parts[5].startswith("/"):
            low, high = (int(end, 16) for end in parts[0].split("-"))
            found.append(Mapped(low, high - low, os.path.basename(parts[5])))
    return found


@dataclasses.dataclass(frozen=True)
class Match:
    """Whether two processes are laid out alike; if not, whether the system is to blame, or which files differ."""

    alike: bool
    refused: bool = False
    libraries: tuple[str, ...] = ()


def match_maps(base: Map | None, head: Map | None) -> Match:
    """Compare two maps. The interpreters themselves may have other names."""
    if base is None or head is None or not (base.fixed and head.fixed):
        return Match(alike=False, refused=True)
    if {(part.start, part.size) for part in base.code} == {(part.start, part.size) for part in head.code}:
        return Match(alike=True)
    ours, theirs = ({part.name: part.size for part in side.code} for side in (base, head))
    # Those of another size, and those that only one has; the largest first.
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    names.sort(key=lambda name: (-max(ours.get(name, 0), theirs.get(name, 0)), name))
    return Match(alike=False, libraries=tuple(names))


# Where things are and how text is written; they do not change what torch does.
PLAIN = ("HOME", "LANG", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
# Of these, what is of the person, not of the machine.
SPOKEN = ("LANG", "LOGNAME", "TZ", "USER")
# Read by torch, by the libraries it computes with, or by the runtimes of its threads.
TELLING_PREFIXES = (
    "ATEN_",
    "BLIS_",
    "CUBLAS_",
    "CUDA_",
    "DNNL_",
    "GOMP_",
    "GOTO_",
    "HIP_",
    "KMP_",
    "MKL_",
    "ONEDNN_",
    "OMP_",
    "OPENBLAS_",
    "PYTORCH_",
    "TORCH",
    "XPU_",
)
# Our own, of which none is for the worker.
OURS = "TORCHMARK_"
# Where torch keeps what it compiles, which says nothing about results. Parts of torch set it for their own process when
# they are first used; handed on, it would make the next worker one of another kind.
TEMPORARY = "TORCHINDUCTOR_CACHE_DIR"
# Where shared libraries are found: right for the interpreter that was started with it, wrong for any other.
OWN_INTERPRETER_ONLY = ("LD_LIBRARY_PATH", "LD_PRELOAD")

# Names of variables that hold secrets. What is recorded is kept in stores, exported and shown in reports.
_SECRET = re.compile(
    r"TOKEN(?!IZ)|SECRET|PASSW|PASSPHRASE|CREDENTIAL|APIKEY"
    r"|(?:^|_)(?:KEYS?|PASS|PWD|PAT|COOKIES?|AUTH(?!ORS?(?:_|$))[A-Z]*)(?:_|$)",
    re.IGNORECASE,
)
# A name and a password in an address, such as redis://user:password@host.
_LOGIN = re.compile(r"(?<=://)[^/@\s]+(?=@)")
HIDDEN = "(hidden)"

# Fixed unless the user gives another value for workers. The library under NumPy starts its threads while it is
# imported, and a process with threads cannot be forked.
FIXED = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
# Unless the user has set it anywhere. Threads that wait must not count to millions while they do.
PREFERRED = {"OMP_WAIT_POLICY": "passive"}


def choose_variables(environ: Mapping[str, str], given: Mapping[str, str], *, own: bool) -> dict[str, str]:
    """A worker's environment: from the parent's what torch needs, then what is fixed, then what the user gave.

    >>> chosen = choose_variables({"PATH": "/bin", "OMP_NUM_THREADS": "2", "EDITOR": "vi"}, {"A": "1"}, own=False)
    >>> list(chosen)
    ['OMP_WAIT_POLICY', 'PATH', 'OMP_NUM_THREADS', 'PYTHONHASHSEED', 'OPENBLAS_NUM_THREADS', 'A']
    """
    places = (*PLAIN, *OWN_INTERPRETER_ONLY) if own else PLAIN
    handed = {
        name: value for name, value in environ.items() if name in places or name.startswith("LC_") or _is_telling(name)
    }
    return {**PREFERRED, **handed, **FIXED, **given}


def select_telling(variables: Mapping[str, str], given: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Those worth recording with a result: what torch reads, and what the user gave. Secrets are hidden in both.

    >>> select_telling({"TORCH_API_KEY": "x1", "TORCH_LOGS": "recompiles", "MY_TOKEN": "x2"}, ["MY_TOKEN"])
    (('MY_TOKEN', '(hidden)'), ('TORCH_API_KEY', '(hidden)'), ('TORCH_LOGS', 'recompiles'))
    """
    telling = (name for name in variables if name in given or _is_telling(name) or name in OWN_INTERPRETER_ONLY)
    # A placeholder that tells nothing of the value, not even whether it has changed.
    return tuple(
        (name, HIDDEN if _SECRET.search(name) else _LOGIN.sub(HIDDEN, variables[name])) for name in sorted(telling)
    )


def travels(name: str) -> bool:
    """Whether a variable is the same on all machines of a run: it says something of the run, not of the machine.

    >>> [name for name in ("PATH", "OMP_NUM_THREADS", "LANG", "TORCHMARK_CACHE", "EDITOR") if travels(name)]
    ['OMP_NUM_THREADS', 'LANG']
    """
    return _is_telling(name) or name in SPOKEN or name.startswith("LC_")


def _is_telling(name: str) -> bool:
    return name.startswith(TELLING_PREFIXES) and not name.startswith(OURS) and name != TEMPORARY


INTERPRETER_TIMEOUT_S = 60.0


@dataclasses.dataclass(frozen=True)
class WorkerSpec:
    """What kind of worker: equal ones are interchangeable."""

    python: str
    variables: tuple[tuple[str, str], ...]
    """The whole environment it starts with."""
    counting: bool = True
    simulate: bool = False
    """Also simulate caches and branch prediction."""
    checking: bool = False
    """Whether it also compares results, for which it loads more of torch."""
    compiling: bool = False
    """For statements that use `torch.compile`, which is then loaded and warm."""
    scripting: bool = False
    """For suites, some of whose statements load TorchScript: under Valgrind, three seconds less for each of these."""
    own: bool = False
    """Whether it is the calling program's own interpreter, with all that this program can import."""
    sys_path: tuple[str, ...] | None = dataclasses.field(default=None, compare=False)
    """Where an own interpreter finds torch, if it needs to be told. Not compared: jobs bring the path of their own time
    along."""
    lowered: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    """The variables that keep it from using all that the processor has."""
    given: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    stacks: bool = False
    """For counting with all callers, those in Python too. Such counts are of a layout of their own."""
    known_as: str | None = dataclasses.field(default=None, compare=False)
    """What results call the interpreter, where `python` is another name for it."""
    probed: bool = dataclasses.field(default=True, compare=False)
    """Whether a second process asks the same torch for its build and for what it can do here. That makes the start take
    longer; without it the worker's environment does not have them."""
    layout: Layout | None = None
    """Where its memory is to lie; None leaves that to the system, which draws it anew for each process."""

    @property
    def irrelevant(self) -> tuple[str, ...]:
        """The variables that say nothing of what torch can do on this processor."""
        return (*self.lowered, *(LAYOUT_VARIABLES if self.layout is not None else ()))


def own_worker(
    environ: Mapping[str, str], given: Mapping[str, str] | None = None, *, counting: bool = True, simulate: bool = False
) -> WorkerSpec:
    """A worker in the interpreter that runs this, with the variables it needs and those that are given."""
    if not sys.executable:
        raise SetupError(
            "This program does not know its own Python.", missing="python", advice="Run it with a Python interpreter."
        )
    path = path_to_torch()
    spec = _make_spec(sys.executable, environ, given or {}, counting=counting, simulate=simulate, own=True)
    return dataclasses.replace(spec, sys_path=None if path is None else tuple(path))


def other_worker(
    python: str, environ: Mapping[str, str], given: Mapping[str, str], *, counting: bool = True, simulate: bool = False
) -> WorkerSpec:
    """A worker in any interpreter, which sees nothing of this one's modules."""
    return _make_spec(python, environ, given, counting=counting, simulate=simulate, own=False)


def _make_spec(
    python: str, environ: Mapping[str, str], given: Mapping[str, str], *, counting: bool, simulate: bool, own: bool
) -> WorkerSpec:
    # A folder that can be used, should the user's not be.
    temporary = {"TMPDIR": tempfile.gettempdir()} if "TMPDIR" in environ else {}
    variables = tuple(sorted(choose_variables({**environ, **temporary}, given, own=own).items()))
    return WorkerSpec(python, variables, counting, simulate, own=own, given=tuple(given))


def visible_path() -> list[str]:
    """Where this program finds its modules, spelt so that it holds in any folder."""
    # Python itself passes over what is no path.
    entries: list[object] = list(sys.path)
    return [os.path.abspath(os.fsdecode(entry)) for entry in entries if isinstance(entry, (str, bytes, os.PathLike))]


def path_to_torch() -> list[str] | None:
    """Where a worker in this interpreter has to look for torch; None if it finds the same one by itself.

    Left to itself if possible, for it then knows nothing of this program's folders. Files come and go there; Python
    lists the folders that it searches, and the lists would lie in the heap that every count starts from.
    """
    path = visible_path()
    found = importlib.machinery.PathFinder.find_spec("torch", path)
    origin = found.origin if found is not None else None
    if origin is None or sys.flags.no_site or sys.flags.no_user_site:
        return path
    installed = tuple(os.path.join(folder, "") for folder in (*site.getsitepackages(), site.getusersitepackages()))
    return None if origin.startswith(installed) else path


def find_interpreter(python: str, variables: Mapping[str, str]) -> str:
    """The program itself, which a name on the path or a script in between may stand for. InterpreterError if not."""
    found = shutil.which(python, path=variables.get("PATH", os.defpath))
    if not found:
        exists = os.path.exists(python)
        raise InterpreterError(python, "it is not a file that can be run" if exists else "there is no such program")
    # Not the real path: a virtual environment's Python is a link, and knows what it is by its name.
    found = os.path.abspath(found)
    if found == sys.executable:
        return found
    try:
        done = subprocess.run(
            [found, "-c", "import sys; print(sys.executable)"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=dict(variables),
            cwd="/",
            timeout=INTERPRETER_TIMEOUT_S,
        )
        real, problem = done.stdout.strip(), done.stderr.strip().splitlines()[-1:]
    except (OSError, subprocess.TimeoutExpired) as error:
        real, problem = "", [str(error)]
    if not os.path.isfile(real):
        raise InterpreterError(python, "".join(problem) or "it does not answer as one")
    return real


def choose_layouts(number: int) -> tuple[int, ...]:
    """The seeds of so many layouts: the same on every run."""
    if number < 1:
        raise UsageError(f"`layouts` must be at least 1, not {number}.")
    return (BARE_LAYOUT,) if number == 1 else tuple(range(1, number + 1))
