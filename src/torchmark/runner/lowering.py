"""Has Inductor compile for processors that Valgrind knows.

It compiles for the processor at hand, with AVX-512 where there is some, and Valgrind ends a program that uses that. So
the compiler that it finds is a script of ours, which asks the real one for AVX2 instead.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from torchmark.errors import SetupError
from torchmark.files import is_ours

COMPILERS = ("g++", "clang++", "c++")
SCRIPT = """#!/bin/sh
# Asks for AVX2 instead of whatever this processor has.
for argument do
  shift
  [ "$argument" = -march=native ] && argument=-march=x86-64-v3
  set -- "$@" "$argument"
done
exec {compiler} "$@"
"""


def lower_variables(environ: Mapping[str, str], folder: Path, root: Path = Path("/")) -> dict[str, str]:
    """Variables for a worker that counts what Inductor compiles; the script lies in the folder. None need no lowering.

    A processor with less than AVX2, or of another make, has nothing that Valgrind does not know.
    """
    if not knows_avx2(root):
        return {}
    compiler = _find_compiler(environ)
    if compiler is None:
        # Inductor says so itself; other back ends need none.
        return {"ATEN_CPU_CAPABILITY": "avx2"}
    return {
        "ATEN_CPU_CAPABILITY": "avx2",
        "CXX": str(write_script(compiler, folder)),
        # Inductor would keep 150 MB more of them, and make them anew for each script.
        "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
    }


def knows_avx2(root: Path = Path("/"), processor: str | None = None) -> bool:
    """Whether this is an x86-64 processor with AVX2."""
    if (processor or platform.machine()) != "x86_64":
        return False
    try:
        lines = (root / "proc/cpuinfo").read_text().splitlines()
    except OSError:
        return False
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    return "avx2" in flags


def _find_compiler(environ: Mapping[str, str]) -> list[str] | None:
    """The C++ compiler as a command: the user's `CXX`, or the first that is found."""
    wanted = shlex.split(environ.get("CXX", ""))
    for first, *rest in [wanted] if wanted else [[name] for name in COMPILERS]:
        found = shutil.which(first, path=environ.get("PATH", os.defpath))
        if found is not None:
            return [found, *rest]
    return None


def write_script(compiler: list[str], folder: Path) -> Path:
    """The script for a compiler. It has the same name, by which Inductor knows what flags to use."""
    text = SCRIPT.format(compiler=shlex.join(compiler))
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = folder / f"lowering-{key}" / Path(compiler[0]).name
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_ours(path.parent):
            raise SetupError(
                f"Other users may write to {path.parent}.",
                missing="cache",
                advice="Remove it, or name another folder in TORCHMARK_CACHE.",
            )
        if is_ours(path) and os.access(path, os.X_OK) and path.read_text(errors="replace") == text:
            return path
        # Another process may be doing the same: whoever is last puts the same content in place, in one step.
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.chmod(temporary, 0o755)
        os.replace(temporary, path)
    except OSError as error:
        if isinstance(error, SetupError):
            raise
        raise SetupError(
            f"The cache {folder} cannot be written: {error.strerror}.",
            missing="cache",
            advice="Name another folder in TORCHMARK_CACHE.",
        ) from error
    return path
