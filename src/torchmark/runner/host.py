"""What a run notes of the machine it runs on, and of where its definitions come from."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from torchmark.model.run import Host, Source
from torchmark.runner.machine import COMPILERS, find_tool, read_cpu_model, read_cpu_quota

GIT_TIMEOUT_S = 10


def describe_host(environ: Mapping[str, str], root: Path = Path("/")) -> Host:
    """The machine, as far as results depend on it."""
    named = environ.get("CXX", "").strip()
    compiler = find_tool([named] if named else COMPILERS, environ.get("PATH", os.defpath))
    return Host(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpu_model=read_cpu_model(root),
        cores_online=os.cpu_count(),
        cores_allowed=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        cpu_quota=read_cpu_quota(root),
        compiler=compiler.version if compiler else None,
    )


def describe_sources(suites: Iterable[str]) -> tuple[Source, ...]:
    """Each suite once; of those that are files, the commit of the repository they lie in."""
    return tuple(_describe_source(suite) for suite in dict.fromkeys(suites))


def _describe_source(suite: str) -> Source:
    if not os.path.isfile(suite):
        return Source(suite)
    folder = os.path.dirname(os.path.abspath(suite))
    commit = _ask_git(folder, "rev-parse", "HEAD")
    if not commit:
        return Source(suite)
    # Of the file's own folder: what else is being worked on in the repository is another matter.
    return Source(suite, commit, dirty=bool(_ask_git(folder, "status", "--porcelain", "--", ".")))


def _ask_git(folder: str, *arguments: str) -> str | None:
    """What git answers; None where there is no git, or no repository."""
    command = ["git", "-C", folder, "--no-optional-locks", *arguments]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=GIT_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
