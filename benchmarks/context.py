"""What a result was measured with: printed above every table, so that a number never stands alone."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import torchmark
from torchmark.runner.machine import probe_machine

ROOT = Path(__file__).parents[1]


def describe() -> str:
    """Machine, versions and commit as a Markdown list."""
    machine = probe_machine()
    torch = machine.torch.version if machine.torch else "no torch"
    kind = "virtual machine" if machine.virtual else "machine"
    return "\n".join(
        [
            f"- {kind}: {machine.cpu_model}, {machine.cores_allowed} cores, {platform.system()} {platform.machine()}",
            f"- {platform.python_implementation()} {platform.python_version()}, torch {torch}, "
            f"torchmark {torchmark.__version__} at {_commit()}",
            f"- command: `python -m {Path(sys.argv[0]).parent.name}.{Path(sys.argv[0]).stem}`",
        ]
    )


def _commit() -> str:
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()

    changed = " with changes" if git("status", "--porcelain", "--untracked-files=no", "--", "src") else ""
    return f"commit {git('rev-parse', '--short', 'HEAD') or 'unknown'}{changed}"
