"""What a profile is called by the worker that has it written, and by the parent that looks for it."""

from __future__ import annotations

DISCARDED = "discarded"


def name_layout(layout: int) -> str:
    """The name of a statement's profile in one layout."""
    return f"layout {layout}"
