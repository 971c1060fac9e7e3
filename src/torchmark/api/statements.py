"""A statement as a case, for whatever takes cases."""

from __future__ import annotations

from torchmark.model.case import AutogradMode, AutoLabels, Case, RuntimeMode, TimerArgs
from torchmark.report.text import one_line


def make_case(args: TimerArgs) -> Case:
    """A statement as a case of its own."""
    labels = AutoLabels(RuntimeMode.EXPLICIT, AutogradMode.EXPLICIT, args.language)
    return Case((one_line(args.stmt),), labels, args)
