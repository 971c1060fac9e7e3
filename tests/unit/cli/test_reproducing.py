"""Commands that measure a case again: they mean that case, whatever its labels are."""

from __future__ import annotations

import shlex

from hypothesis import given
from hypothesis import strategies as st

from tests.made_summaries import make_case
from torchmark.api.report_data import Labels, Sides, join_path, spell_again, spell_commands
from torchmark.define.selection import Selection, Word, parse, select
from torchmark.model.case import AutogradMode, Case, RuntimeMode
from torchmark.model.task import Language

ONE, TWO = (
    Sides("run"),
    Sides(head="after", head_python="/b/python", base="before", base_python="/a/python", store="my store.db"),
)


def find_meant(command: str, cases: list[Case]) -> list[Case]:
    words = shlex.split(command)
    if "-k" not in words:
        return cases
    return list(select(cases, Selection(expression=parse(words[words.index("-k") + 1]))))


def test_a_label_that_others_begin_with_means_only_itself() -> None:
    cases = [make_case("Pointwise", name) for name in ("add", "add_", "add_ scalar", "mul")]
    command = spell_commands(cases[0], Labels(cases), ONE)[0].text
    assert find_meant(command, cases) == [cases[0]]
    assert command == (
        """torchmark run standard -k '"Pointwise / add" and not "Pointwise / add_"' """
        "--language python --runtime eager --autograd forward --threads 1"
    )


@given(st.lists(st.text("ab /", min_size=1), min_size=1, max_size=30))
def test_a_label_leaves_out_the_shortest_of_those_that_hold_it(labels: list[str]) -> None:
    cases = [make_case(label) for label in labels]
    paths = {join_path(case) for case in cases} - {""}
    for path in paths:
        longer = [other for other in paths if path in other and path != other]
        least = [one for one in longer if not any(other in one for other in longer if other != one)]
        expected = [path, *sorted(least, key=lambda text: (len(text), text))] if len(least) <= 3 else [path]
        assert str(Labels(cases).name_exactly(path)) == " and not ".join(str(Word(text)) for text in expected)


def test_labels_are_compared_in_one_pass_however_many_there_are() -> None:
    # Looking for each of them in all others would not end.
    cases = [make_case("Pointwise", f"op{i:05}", "x" * 100) for i in range(5_000)]
    labels = Labels([*cases, make_case("Pointwise", "op00001", "x" * 50)])
    found = [command.text for case in cases[:2] for command in spell_commands(case, labels, ONE)[:1]]
    assert [" and not " in text for text in found] == [False, False]
    assert str(labels.name_exactly(f"Pointwise / op00001 / {'x' * 50}")).count("op00001") == 2


@given(st.lists(st.text(min_size=1), min_size=1, max_size=3))
def test_any_label_can_be_typed_and_is_found_again(label: list[str]) -> None:
    case = make_case(*label)
    for command in spell_commands(case, Labels([case]), ONE):
        assert command.text.isprintable()
        assert case in find_meant(command.text, [case])


def test_variants_are_spelt_as_the_options_that_select_them() -> None:
    case = make_case(
        "f",
        runtime=RuntimeMode.JIT,
        autograd=AutogradMode.FORWARD_BACKWARD,
        language=Language.CPP,
        threads=2,
        suite="my suite.py",
    )
    text = spell_commands(case, Labels([case]), ONE)[0].text
    assert (
        text == "torchmark run 'my suite.py' -k f --language cpp --runtime torchscript --autograd backward --threads 2"
    )


def test_two_interpreters_are_compared_in_turns_and_runs_as_they_are_kept() -> None:
    anew, kept = (command.text for command in spell_commands(make_case("f"), Labels([make_case("f")]), TWO))
    assert anew.startswith("torchmark ab standard -k f ")
    assert anew.endswith(" --base /a/python --head /b/python")
    assert kept.startswith("torchmark compare before after -k f ")
    assert kept.endswith(" --store 'my store.db'")


def test_runs_of_one_interpreter_are_measured_again_one_by_one() -> None:
    sides = Sides("after", "/a/python", "before", "/a/python")
    assert spell_commands(make_case("f"), Labels([make_case("f")]), sides)[0].text.startswith("torchmark run ")


def test_the_page_itself_can_be_had_again() -> None:
    assert spell_again(TWO)[0].text == "torchmark report after before --store 'my store.db'"
    assert spell_again(ONE)[0].text == "torchmark report run"
    assert spell_again(TWO, ("--force",))[0].text == "torchmark report after before --force --store 'my store.db'"
