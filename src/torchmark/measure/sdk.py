"""What the torch of this process needs for compiling C++ against it."""

from __future__ import annotations

import os
import re
import sys
import sysconfig

import torch

from torchmark.model.sdk import Sdk

# Of torch builds that do not say.
USUAL_STANDARD = 17


def read_sdk() -> Sdk:
    """The facts, from the torch that is imported."""
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
