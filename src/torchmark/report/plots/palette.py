"""The colours of all plots and pages: for stages of a call, for verdicts and for the two sides.

A page gets them as CSS custom properties from `style_sheet`, once. A drawing names them by `colour`, with a fallback
that can be seen on white and on black alike. They can be told apart with any of the usual kinds of colour vision, and
still none of them is to say something alone: there is always a word beside it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from torchmark.analysis.stages import STAGES
from torchmark.model.judgement import Side, Verdict

PREFIX = "--tm-"


class Shade(NamedTuple):
    """One colour: on a light ground, on a dark one, and where nobody knows what the ground is."""

    light: str
    dark: str
    either: str


# As text they have a contrast of at least 4.5 to their grounds; the last of three has 3 to white and to black.
GREY = Shade("#6a717b", "#969eaa", "#7d848e")
VERDICTS = {
    Verdict.SLOWER: Shade("#9e1b12", "#f9703e", "#d9562b"),
    Verdict.FASTER: Shade("#1a5fc0", "#5aa2ff", "#3f86d8"),
    Verdict.SAME: GREY,
    Verdict.UNDECIDED: Shade("#8d6c00", "#f0cf6a", "#a97f1a"),
    Verdict.FAILED: Shade("#4d0a3a", "#ffb0e0", "#c04a8a"),
}
SIDES = {Side.BASE: GREY, Side.HEAD: Shade("#6d3fc0", "#b794f6", "#8d66d9")}

# Neighbours in a bar differ most. On their grounds they have a contrast of at least 3.
_STAGE_SHADES = (
    Shade("#2f2899", "#7d709b", "#6a5fb0"),
    Shade("#4071a7", "#5cc1fc", "#4a8ac4"),
    Shade("#f36865", "#d04466", "#e0555f"),
    Shade("#868af7", "#7a7be2", "#8083ee"),
    Shade("#a99511", "#f1b027", "#a99511"),
    Shade("#7d470a", "#c36e38", "#a5631f"),
    Shade("#bc546c", "#d899b2", "#bc546c"),
    Shade("#0b5a2b", "#94dc79", "#3f8f4f"),
    Shade("#33a2b2", "#1fe3ee", "#2f9aaa"),
    Shade("#8b9097", "#f1f4f9", "#84898f"),
)
STAGE_SHADES = dict(zip(STAGES, _STAGE_SHADES, strict=True))

# The grounds that all of this is meant for. Pages that use the style sheet use them too.
GROUND = Shade("#ffffff", "#15181d", "transparent")
INK = Shade("#1b1f24", "#e6e8eb", "currentColor")


def _name(text: str) -> str:
    """A text as a part of a CSS name.

    >>> _name("__torch_function__"), _name("argument parsing")
    ('torch-function', 'argument-parsing')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


_SHADES = {
    "ground": GROUND,
    "ink": INK,
    **{verdict.value: shade for verdict, shade in VERDICTS.items()},
    **{side.value: shade for side, shade in SIDES.items()},
    **{f"stage-{_name(stage)}": shade for stage, shade in STAGE_SHADES.items()},
}


def colour(of: Verdict | Side) -> str:
    """The colour of a verdict or of a side, as a CSS value.

    >>> colour(Side.HEAD)
    'var(--tm-head,#8d66d9)'
    """
    return _spell(of.value)


def stage_colour(stage: str) -> str:
    """The colour of a stage, as a CSS value; of one that is not known, that of all others.

    >>> stage_colour("kernel")
    'var(--tm-stage-kernel,#3f8f4f)'
    """
    return _spell(f"stage-{_name(stage if stage in STAGE_SHADES else STAGES[-1])}")


def _spell(name: str) -> str:
    return f"var({PREFIX}{name},{_SHADES[name].either})"


def style_sheet() -> str:
    """All colours as custom properties of a page, `--tm-ground` and `--tm-ink` among them.

    What is dark on a screen is light on paper.
    """
    light = "".join(f"{PREFIX}{name}:{shade.light};" for name, shade in _SHADES.items())
    dark = "".join(f"{PREFIX}{name}:{shade.dark};" for name, shade in _SHADES.items())
    return f":root{{color-scheme:light dark;{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
