from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from torchmark.model.plan import AutogradMode, AutoLabels, Case, RuntimeMode, TimerArgs
from torchmark.model.task import Language
from torchmark.report.text.names import LONGEST, make_slug, name_files


def make_case(*label: str, language: Language = Language.PYTHON) -> Case:
    return Case(label, AutoLabels(RuntimeMode.EXPLICIT, AutogradMode.EXPLICIT, language), TimerArgs("pass"))


def test_a_case_is_told_by_its_labels() -> None:
    case = make_case("mixed add", "Tensor, SubTensor")
    assert name_files([case]) == {case: "mixed-add-tensor-subtensor"}


def test_languages_are_told_where_there_are_several() -> None:
    one, other = make_case("add"), make_case("add", language=Language.CPP)
    assert name_files([one, other]) == {one: "add-python", other: "add-cpp"}


def test_names_that_would_be_alike_are_numbered() -> None:
    cases = [make_case("x + y"), make_case("x - y"), make_case("x * y")]
    assert list(name_files(cases).values()) == ["x-y", "x-y-2", "x-y-3"]


@given(st.text())
def test_any_text_is_a_harmless_name(text: str) -> None:
    slug = make_slug(text)
    assert slug
    assert len(slug) <= LONGEST
    assert all(letter in "abcdefghijklmnopqrstuvwxyz0123456789_-" for letter in slug)
    assert not slug.startswith("-")
