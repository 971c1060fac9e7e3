"""What a result was measured in: enough to tell whether two results may be compared."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Environment:
    """An interpreter, its torch, and what was around them."""

    python: str
    """Path of the interpreter."""
    python_version: str
    torch_version: str
    cpu_capability: str | None = None
    """The instruction set that torch's kernels used where they were measured."""
    native_capability: str | None = None
    """The instruction set that they use outside Valgrind."""
    debug_symbols: bool = False
    """Whether torch was built with them, so that functions have source files."""
    valgrind: str | None = None
    hash_seed: str | None = None
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables that may change how torch behaves, in alphabetical order."""
    torch_commit: str | None = None
    """The commit that torch was built from."""
    torch_build: str | None = None
    """How torch was built, in its own words."""
