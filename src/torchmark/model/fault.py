"""What is wrong with a definition of benchmarks."""

from __future__ import annotations

import dataclasses

from torchmark.model.case import Label


@dataclasses.dataclass(frozen=True)
class Fault:
    """Something wrong with a definition: where, what, and what to try."""

    file: str
    label: Label
    message: str
    advice: str | None = None
    line: int | None = None
