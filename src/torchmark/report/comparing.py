"""What stands around the judgements on two stored runs: which they are, what is not comparable, what only one has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torchmark.analysis.contrast import Contrast
from torchmark.model.case import Case
from torchmark.model.comparison import Incomparable
from torchmark.model.judgement import Judgement
from torchmark.report.cells import wrap
from torchmark.report.comparison_wording import word_doubt
from torchmark.report.explaining import render_explanation
from torchmark.report.gate import plain_identity
from torchmark.report.judgement_plain import plain_judgement
from torchmark.report.printable import count
from torchmark.report.variants import name_case

# More are counted, and not named.
MOST_NAMES = 20


def list_obstacles(contrast: Contrast) -> list[str]:
    """A sentence for each reason not to compare, with the case that it is of unless it is of all."""
    lines = [word_doubt(obstacle) for obstacle in contrast.obstacles]
    for case, obstacles in contrast.case_obstacles:
        lines += [f"{name_case(case)}: {word_doubt(obstacle)}" for obstacle in obstacles]
    return lines


def tell_refusal(contrast: Contrast, width: int) -> str:
    """Why some or all cases are not compared, and what to do about it."""
    cases = count(len(contrast.case_obstacles), "case")
    what = "These runs are" if contrast.obstacles else f"{cases} {'is' if len(contrast.case_obstacles) == 1 else 'are'}"
    lines = wrap(f"{what} not comparable:", width)
    found = list_obstacles(contrast)
    for text in found[:MOST_NAMES]:
        lines += ["  " + line for line in wrap(text, width - 2, 2)]
    if len(found) > MOST_NAMES:
        lines.append(f"  and {len(found) - MOST_NAMES} more")
    return "\n".join([*lines, *wrap("--force compares them all the same, and keeps the caveat.", width)])


def tell_unpaired(contrast: Contrast, base: str, head: str, width: int) -> str:
    """The cases that only one side has; empty where there are none."""
    return "\n".join(
        [*_name(contrast.missing, f"Only in {base}", width), *_name(contrast.new, f"Only in {head}", width)]
    )


def _name(cases: Sequence[Case], title: str, width: int) -> Iterator[str]:
    if not cases:
        return
    yield f"{title}: {count(len(cases), 'case')}"
    for case in cases[:MOST_NAMES]:
        yield from ("  " + line for line in wrap(name_case(case), width - 2, 2))
    if len(cases) > MOST_NAMES:
        yield f"  and {len(cases) - MOST_NAMES} more"


def explain_judgements(judgements: Sequence[Judgement], width: int) -> str:
    """Where the instructions of these come from or go to, one below the other."""
    return "\n\n".join(
        f"{name_case(one.case)}\n{render_explanation(one.explanation, width)}"
        for one in judgements
        if one.explanation is not None
    )


def plain_contrast(contrast: Contrast, *, forced: bool) -> dict[str, Any]:
    """All of it as plain values for JSON."""
    return {
        "forced": forced,
        "obstacles": [_plain_obstacle(one) for one in contrast.obstacles],
        "case_obstacles": [
            {**plain_identity(case), "obstacles": [_plain_obstacle(one) for one in obstacles]}
            for case, obstacles in contrast.case_obstacles
        ],
        "judgements": [plain_judgement(one) for one in contrast.judgements],
        "missing": [plain_identity(case) for case in contrast.missing],
        "new": [plain_identity(case) for case in contrast.new],
    }


def _plain_obstacle(obstacle: Incomparable) -> dict[str, str]:
    return {"what": obstacle.what, "base": obstacle.base, "head": obstacle.head, "text": word_doubt(obstacle)}
