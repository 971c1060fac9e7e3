"""How many modules a command passes through, from its first line to the table: `python -m benchmarks.journeys`.

A module counts if one of its functions is called in the process of the command, by whichever thread. Definitions at
import do not count, nor does what runs inside a measured process.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torchmark

SOURCE = Path(torchmark.__file__).parent
# Code of a module or of a class body has no locals of its own, which this flag tells (see `inspect`).
OPTIMIZED = 1

SETUP = ("--setup", "import torch; x = torch.ones(4); y = torch.ones(4)")


def list_commands(base: str) -> dict[str, tuple[str, ...]]:
    """The commands, and what each of them is compared with."""
    return {
        "time": ("time", "x + y", "--setup", "x = y = 1", "--min-run-time", "0.1"),
        "run": ("run", "standard", "-k", "add and python and not backward", "--min-run-time", "0.1"),
        "ab": ("ab", "--base", base, "--head", sys.executable, "--stmt", "x + y", *SETUP),
        "overrides --base": ("overrides", "--base", base, "-k", "shape and SubTensor"),
    }


class Tracer:
    """Takes down each module of which a function is called."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self._seen: set[CodeType] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """For `sys.setprofile`."""
        code = frame.f_code
        if event != "call" or code in self._seen:
            return
        file = Path(code.co_filename)
        if not code.co_flags & OPTIMIZED or SOURCE not in file.parents or file.suffix != ".py":
            self._seen.add(code)
        elif not is_importing(frame):
            self._seen.add(code)
            self.modules.add(str(file.relative_to(SOURCE)))


def is_importing(frame: FrameType | None) -> bool:
    """Whether the call is part of importing a module: a constant, a decorator."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and SOURCE in Path(frame.f_code.co_filename).parents:
            return True
        frame = frame.f_back
    return False


def trace(arguments: list[str]) -> list[str]:
    """Run the command in this process, and list the modules that it passed through."""
    from torchmark.cli.main import main

    tracer = Tracer()
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            main(arguments)
    finally:
        sys.setprofile(None)
    return sorted(tracer.modules)


def measure(arguments: tuple[str, ...]) -> set[str]:
    """The modules of one command, run in a process and a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.journeys", "--trace", json.dumps(arguments)]
        again = "runpy.run_module('benchmarks.journeys', run_name='__main__')"
        code = f"import runpy, sys; sys.argv = {command[2:]!r}; {again}"
        path = [str(Path(__file__).parents[1]), *sys.path]
        bootstrap = f"import sys; sys.path[:0] = {path!r}; {code}"
        done = subprocess.run(
            [sys.executable, "-c", bootstrap], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
        )
    return set(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Count for each command, and print the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default=sys.executable, help="the other interpreter of ab and overrides")
    parser.add_argument("--list", action="store_true", help="name the modules too")
    parser.add_argument("--only", help="commands, separated by commas")
    parser.add_argument("--trace", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.trace:
        print(json.dumps(trace(json.loads(options.trace))))
        return
    beyond = {"ab": "run", "overrides --base": "ab"}
    found: dict[str, set[str]] = {}
    for name, arguments in list_commands(options.base).items():
        if options.only and name not in options.only.split(","):
            continue
        found[name] = measure(arguments)
        text = f"{name}: {len(found[name])} modules"
        shown = found[name]
        if name in beyond and beyond[name] in found:
            for other in found:
                shown = shown - found[other] if other != name and other != "time" else shown
            text += f", {len(shown)} of them beyond {beyond[name]}"
        print(text, flush=True)
        if options.list:
            print("\n".join(f"  {module}" for module in sorted(shown)))


if __name__ == "__main__":
    main()
