"""What it takes to compile C++ against the torch of one interpreter."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Sdk:
    """Facts about one installed torch; `folder` is the package's own, where its headers and libraries are."""

    python: str
    folder: str
    version: str
    git_version: str
    cxx11_abi: bool
    cxx_flags: str
    """What torch itself was compiled with, warnings and all."""
    cxx_standard: int
    python_include: str | None
