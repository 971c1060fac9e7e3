"""What kind of worker is wanted: in which interpreter, with which environment, and for what."""

from __future__ import annotations

import dataclasses
import importlib.machinery
import os
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Mapping

from torchmark.errors import InterpreterError, SetupError
from torchmark.runner.layouts import LAYOUT_VARIABLES, Layout
from torchmark.runner.variables import choose_variables

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
    """The variables that the user gave."""
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
    return WorkerSpec(
        python=sys.executable,
        variables=tuple(sorted(choose_variables(_with_temporary_folder(environ), given or {}, own=True).items())),
        counting=counting,
        simulate=simulate,
        own=True,
        sys_path=None if path is None else tuple(path),
        given=tuple(given or ()),
    )


def other_worker(
    python: str, environ: Mapping[str, str], given: Mapping[str, str], *, counting: bool = True, simulate: bool = False
) -> WorkerSpec:
    """A worker in any interpreter, which sees nothing of this one's modules."""
    return WorkerSpec(
        python=python,
        variables=tuple(sorted(choose_variables(_with_temporary_folder(environ), given, own=False).items())),
        counting=counting,
        simulate=simulate,
        given=tuple(given),
    )


def _with_temporary_folder(environ: Mapping[str, str]) -> dict[str, str]:
    """One that can be used, should the user's not be."""
    return {**environ, "TMPDIR": tempfile.gettempdir()} if "TMPDIR" in environ else dict(environ)


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
    ordinary = not (sys.flags.no_site or sys.flags.no_user_site)
    return None if origin is not None and ordinary and _is_installed(origin) else path


def _is_installed(file: str) -> bool:
    folders = (*site.getsitepackages(), site.getusersitepackages())
    return any(file.startswith(os.path.join(folder, "")) for folder in folders)


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
    command = [found, "-c", "import sys; print(sys.executable)"]
    try:
        done = subprocess.run(
            command,
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
