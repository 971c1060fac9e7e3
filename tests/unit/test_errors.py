from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.errors import DefinitionError, ExitCode, InterpreterError, SetupError, StoreError, TorchmarkError, point

COMPARING = Path(__file__).parents[2] / "docs" / "comparing.md"


def test_the_documentation_lists_all_exit_codes() -> None:
    table = COMPARING.read_text().partition("| exit code |")[2].partition("\n\n")[0]
    listed = {int(number) for number in re.findall(r"^\| (\d+)", table, re.MULTILINE)}
    assert listed == {0, *(code for name, code in vars(ExitCode).items() if name.isupper())}


@pytest.mark.parametrize(
    ("kind", "code"),
    [(TorchmarkError, 1), (DefinitionError, 2), (InterpreterError, 2), (SetupError, 3), (StoreError, 4)],
)
def test_errors_end_the_program_with_a_code_of_the_list(kind: type[TorchmarkError], code: int) -> None:
    assert kind.exit_code == code


def test_a_definition_error_is_what_scripts_have_learned_to_catch() -> None:
    for kind in (TorchmarkError, ValueError, AssertionError):
        with pytest.raises(kind, match="nothing"):
            raise DefinitionError("nothing")


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("abc", 0, "  abc\n  ^"),
        ("abc", 3, "  abc\n     ^"),
        ("a\nbc\nd", 3, "  bc\n   ^"),
        ("a\nbc", 1, "  a\n   ^"),
        ("a\n", 2, "  \n  ^"),
        ("\tab", 2, "  \tab\n  \t ^"),
        ("", 0, "  \n  ^"),
    ],
)
def test_a_caret_stands_below_its_place(text: str, position: int, expected: str) -> None:
    assert point(text, position) == expected


@given(st.text(), st.data())
def test_the_line_that_is_shown_has_the_place(text: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(text)))
    line, caret = point(text, position).split("\n")
    assert line[2:] == text.split("\n")[text[:position].count("\n")]
    assert len(caret) - 3 == len(text[:position].split("\n")[-1])


def test_a_place_is_shown_if_it_is_known() -> None:
    assert str(DefinitionError("Wrong.", text="ab", position=1)) == "Wrong.\n  ab\n   ^"
    assert str(DefinitionError("Wrong.", text="ab")) == "Wrong."


def test_a_definition_error_can_be_copied_and_sent() -> None:
    error = DefinitionError("Wrong.", text="ab", position=1)
    for other in (copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert str(other) == str(error)
        assert (other.problem, other.text, other.position) == ("Wrong.", "ab", 1)
