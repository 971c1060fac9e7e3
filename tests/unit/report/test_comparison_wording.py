from __future__ import annotations

import typing

import pytest

from tests.made_judgements import DOUBTS
from torchmark.model.comparison import ComparisonCaveat, Incomparable, Unmatched
from torchmark.report.caveats import advise, state_doubt, word_doubt

FACTS = [
    "The sides ran on different processors: base Xeon, head EPYC.",
    "Base and head load different native libraries (libtorch_cpu.so), so they cannot be laid out alike in memory: "
    "the interval is wider.",
    "It ran in 2 layouts of memory; an interval that can be relied on takes 4.",
    "Its time moves by 1.4 % with the layout of memory.",
    "Both sides were timed one after the other, whatever the machine did meanwhile.",
    "It was only counted, and not timed: every process would have to compile it anew.",
    "One side was timed in 1 round; to know how far processes are apart takes 3.",
    "Another kind of machine measured 1 round of 3 of the times of base; that is left out.",
    "It uses 2 threads: neither times nor counts repeat as those of one do.",
    "A run takes 20.0 ns: the loop around it is a large part of what was timed.",
    "A run takes 50.0 ms, too long for taking turns to cancel what disturbs the machine.",
    "The machine was 1.9 times slower for 64 % of the time; the ratio holds, times do not.",
    "20 % of the pairs of blocks differ by more than 10 %.",
    "30 % of the blocks used pages of memory for the first time.",
    "Other programs interrupted 10 % of the blocks.",
]


def test_every_kind_is_among_the_samples() -> None:
    assert {type(caveat) for caveat in DOUBTS} == set(typing.get_args(ComparisonCaveat))


@pytest.mark.parametrize(
    ("caveat", "fact"), list(zip(DOUBTS, FACTS, strict=True)), ids=lambda one: getattr(one, "kind", "")
)
def test_every_doubt_is_a_fact_followed_by_advice(caveat: ComparisonCaveat, fact: str) -> None:
    assert state_doubt(caveat) == fact
    assert word_doubt(caveat) == f"{fact} {advise(caveat)}"
    assert advise(caveat).endswith((".", "?"))


@pytest.mark.parametrize("what", ["cpu", "capability", "hash_seed", "definition", "layouts", "valgrind", "variables"])
def test_whatever_differs_is_told_with_both_values(what: str) -> None:
    text = word_doubt(Incomparable(what, "one", "other"))
    assert ": base one, head other. " in text
    assert not text.startswith("The sides differ")
    assert "alike" not in text


def test_what_has_no_words_yet_is_told_nevertheless() -> None:
    assert state_doubt(Incomparable("moon", "full", "new")) == "The sides differ: base full, head new."


def test_long_values_are_cut_and_do_not_steer_the_terminal() -> None:
    text = state_doubt(Incomparable("definition", "stmt: " + "x" * 500, "\x1b[31m\n"))
    assert len(text) < 150
    assert text.isprintable()


def test_a_system_that_does_not_allow_layouts_is_told_apart_from_libraries() -> None:
    text = word_doubt(Unmatched("personality"))
    assert "libraries" not in text
    assert "seccomp" in text
    assert state_doubt(Unmatched("libraries")).startswith("Base and head load different native libraries, so")
