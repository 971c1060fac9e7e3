"""What compiling C++ against this process's torch needs, and TorchScript models in files."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import sysconfig
import tempfile

import torch

from torchmark.measure.source import open_source
from torchmark.model.environment import Sdk

# Of torch builds that do not say.
USUAL_STANDARD = 17


def read_sdk() -> Sdk:
    folder = os.path.dirname(os.path.abspath(torch.__file__))
    include = sysconfig.get_paths()["include"]
    try:
        flags = str(torch.__config__._cxx_flags())
    except (AttributeError, RuntimeError):
        flags = "-O2"
    return Sdk(
        python=sys.executable,
        folder=folder,
        version=str(torch.__version__),
        git_version=str(getattr(torch.version, "git_version", "")),
        cxx11_abi=bool(getattr(torch._C, "_GLIBCXX_USE_CXX11_ABI", True)),
        cxx_flags=flags,
        cxx_standard=_read_standard(folder),
        python_include=include if os.path.isdir(include) else None,
    )


def _read_standard(folder: str) -> int:
    """The version of C++ that torch's own tool for extensions uses. Read as text: to import it takes long."""
    try:
        with open(os.path.join(folder, "utils", "cpp_extension.py"), encoding="utf-8", errors="replace") as file:
            standards = re.findall(r"-std=c\+\+(\d\d)\b", file.read())
    except OSError:
        standards = []
    return max(map(int, standards), default=USUAL_STANDARD)


# Weights are the same in all variants of a benchmark: each starts from here.
SEED = 0


class ScriptRefused(Exception):
    """This torch has no TorchScript, or does not make it of that model."""


def script_model(source: str, path: str) -> None:
    """Run the source, which makes `jit_model`, and save that. The caller has seeded the generator."""
    if getattr(torch, "jit", None) is None or not hasattr(torch.jit, "script"):
        raise ScriptRefused(f"torch {torch.__version__} has no TorchScript.")
    # TorchScript reads the text of what it compiles.
    file = open_source(source, "")
    namespace = {"__name__": "torchmark_model", "torch": torch}
    exec(compile(source, file.name, "exec", dont_inherit=True), namespace)
    model = namespace.get("jit_model")
    if not isinstance(model, (torch.jit.ScriptFunction, torch.jit.ScriptModule)):
        raise ScriptRefused(f"The model did not become TorchScript but {type(model)}.")
    # Whoever sees the file sees all of it. `files.py`, which does the same for others, is not in this process.
    handle, draft = tempfile.mkstemp(prefix=f"{os.path.basename(path)}.", dir=os.path.dirname(path))
    try:
        torch.jit.save(model, draft)
        os.fsync(handle)
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
        raise
    finally:
        os.close(handle)
