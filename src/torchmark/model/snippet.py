"""C++ to be measured, as the user wrote it, and where to find it once it is compiled."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Snippet:
    """A C++ statement, the setup before its loop in the same function, and what stands at file scope."""

    stmt: str
    setup: str = ""
    global_setup: str = ""


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A snippet as a function of a shared library: the library's path, and the key that its symbols are named by."""

    library: str
    key: str
