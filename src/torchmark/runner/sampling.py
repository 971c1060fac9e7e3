"""Looks at a running statement many times a second, with py-spy, which starts the process that it looks at.

A process may look into those that it has started itself, so this needs no privilege on most systems.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import NamedTuple

from torchmark.errors import SetupError
from torchmark.model.bout import Part
from torchmark.model.outcome import Failure, FailureKind
from torchmark.native.guarding import run_guarded
from torchmark.runner.folders import make_scratch, read_plain_file

# What importing torch and a setup may take besides.
STARTING_S = 120.0
# As py-spy words it when the system does not let it look.
_REFUSED = re.compile(r"permission denied|operation not permitted|ptrace", re.IGNORECASE)

# As Python begins what it says of an error.
TRACEBACK = "Traceback (most recent call last)"
# How many characters are read of what py-spy and the statement write to the standard error.
MOST_SAID = 1_000_000

# The name of the script, which frames of what a setup defines are told by.
SCRIPT_NAME = "torchmark_statement.py"


class Sampled(NamedTuple):
    """What py-spy wrote: a line for each stack, with how often it was seen."""

    text: str
    seconds: float


def find_py_spy(environ: Mapping[str, str]) -> str:
    """Where py-spy is: beside the Python that runs this, or on the path. SetupError where it is not."""
    beside = os.path.dirname(sys.executable) if sys.executable else ""
    path = os.pathsep.join(filter(None, (beside, environ.get("PATH", os.defpath))))
    found = shutil.which("py-spy", path=path)
    if found is None:
        raise SetupError(
            "Missing: py-spy.",
            missing="py-spy",
            advice="Install it (pip install 'torchmark[flame]'), or draw the exact graph, which needs Valgrind.",
        )
    return found


def sample(
    script: str,
    part: Part,
    python: str,
    *,
    seconds: float,
    rate: int,
    native: bool,
    environ: Mapping[str, str] = os.environ,
) -> Sampled | Failure:
    """Run a script that runs the statement for so long, and look `rate` times a second."""
    py_spy = find_py_spy(environ)
    limit_s = STARTING_S + 2 * seconds
    folder = make_scratch()
    try:
        file, output, errors = (folder / name for name in (SCRIPT_NAME, "stacks.txt", "errors.txt"))
        file.write_text(script, encoding="utf-8")
        looking = [py_spy, "record", "--format", "raw", "--function", "--rate", str(rate), "--output", str(output)]
        running = [python, str(file), part.place.cwd, str(part.threads), str(seconds)]
        command = [*looking, *(["--native"] if native else []), "--", *running]
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        try:
            # The statement's process is in the group of py-spy, which does not end it when it is itself ended.
            with (
                errors.open("wb") as stderr,
                run_guarded(
                    command, folder=folder, cwd=part.place.cwd, env=dict(environ), stderr=stderr, **streams
                ) as process,
            ):
                process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return Failure(FailureKind.TIMED_OUT, f"It did not end within {limit_s:g} s.")
        text, said = read_plain_file(output) or "", read_plain_file(errors, MOST_SAID) or ""
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if "_torchmark_measure" in text and TRACEBACK not in said:
        return Sampled(text, seconds)
    return _explain(said)


def _explain(errors: str) -> Failure:
    if TRACEBACK in errors:
        lines = [line for line in errors.splitlines() if not line.startswith(("py-spy>", "Error:"))]
        last = next((line for line in reversed(lines) if line.strip()), "")
        return Failure(FailureKind.RAISED, last, "\n".join(lines))
    if _REFUSED.search(errors):
        raise SetupError(
            f"The system does not let py-spy look into the process that it has started: {_last_line(errors)}",
            missing="ptrace",
            advice="Containers need the capability SYS_PTRACE (docker run --cap-add SYS_PTRACE), other systems sudo. "
            "Or draw the exact graph, which needs no privilege.",
        )
    return Failure(FailureKind.NO_RESULT, f"py-spy saw nothing of the statement. {_last_line(errors)}".strip())


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
