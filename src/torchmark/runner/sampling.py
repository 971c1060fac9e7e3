"""Looks at a running statement many times a second, with py-spy, which starts the process that it looks at.

A process may look into those that it has started itself, so this needs no privilege on most systems.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from torchmark.errors import SetupError
from torchmark.model.bout import Part
from torchmark.model.outcome import Failure, FailureKind

# What importing torch and a setup may take besides.
STARTING_S = 120.0
# As py-spy words it when the system does not let it look.
_REFUSED = re.compile(r"permission denied|operation not permitted|ptrace", re.IGNORECASE)

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
    with tempfile.TemporaryDirectory(prefix="torchmark-") as folder:
        file, output = Path(folder, SCRIPT_NAME), Path(folder, "stacks.txt")
        file.write_text(script, encoding="utf-8")
        looking = [py_spy, "record", "--format", "raw", "--function", "--rate", str(rate), "--output", str(output)]
        running = [python, str(file), part.place.cwd, str(part.threads), str(seconds)]
        try:
            done = subprocess.run(
                [*looking, *(["--native"] if native else []), "--", *running],
                capture_output=True,
                text=True,
                errors="replace",
                cwd=part.place.cwd,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                timeout=STARTING_S + 2 * seconds,
            )
        except subprocess.TimeoutExpired:
            return Failure(FailureKind.TIMED_OUT, f"It did not end within {STARTING_S + 2 * seconds:g} s.")
        text = output.read_text(errors="replace") if output.exists() else ""
    if "_torchmark_measure" in text and "Traceback (most recent call last)" not in done.stderr:
        return Sampled(text, seconds)
    return _explain(done.stderr)


def _explain(errors: str) -> Failure:
    if "Traceback (most recent call last)" in errors:
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
