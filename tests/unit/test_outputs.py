"""What the program writes is what it wrote before, to the letter; `python -m tests.outputs` writes what it shall be."""

from __future__ import annotations

import difflib
import re

import pytest

from tests.outputs import FOLDER, SCENES, perform, read_stored
from torchmark.cli.startup import COMMANDS

MOST_LINES = 200


def compare(name: str, stored: str | None, found: str | None) -> list[str]:
    """The difference of a text, in lines that are not too long to be read."""
    before, after = ([] if one is None else one.splitlines() for one in (stored, found))
    lines = difflib.unified_diff(before, after, f"stored {name}", f"found {name}", lineterm="", n=1)
    return [line[:1000] for line in lines] or [f"{name}: line ends differ, or one of both is not there"]


@pytest.mark.parametrize("name", SCENES)
def test_the_output_is_the_same_to_the_letter(name: str) -> None:
    stored, found = read_stored(name), perform(name)
    lines = [
        line
        for ending in sorted({*stored, *found})
        if stored.get(ending) != found.get(ending)
        for line in compare(f"{name}.{ending}", stored.get(ending), found.get(ending))
    ]
    assert not lines, "\n".join(
        [
            *lines[:MOST_LINES],
            "",
            f"If that is as it should be: python -m tests.outputs {name}, and look at the change.",
        ]
    )


def test_every_stored_text_is_of_a_scene() -> None:
    files = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file()}
    known = {f"{name}.{ending}" for name in SCENES for ending in read_stored(name)}
    assert files == known


def test_every_command_is_carried_out_in_some_scene() -> None:
    texts = [read_stored(name).get("txt", "") for name in SCENES]
    carried_out = {
        found[1]
        for text in texts
        for found in re.finditer(r"^\$ torchmark ([a-z]+)(?!.*--help)", text, re.MULTILINE)
        if not text.startswith("$ torchmark nonsense")
    }
    assert set(COMMANDS) <= carried_out
