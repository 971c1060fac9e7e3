from __future__ import annotations

import ast
import typing
from pathlib import Path

import pytest

import torchmark
from tests.made_judgements import DOUBTS, make_judgement
from torchmark.model.caveats import (
    Caveat,
    ComparisonCaveat,
    Drift,
    FewSamples,
    HighOverhead,
    Incomparable,
    LeftOut,
    OtherInstructionSet,
    OtherPlaces,
    TwoModes,
    Unmatched,
    Variation,
)
from torchmark.report.caveats import (
    CATALOGUE,
    AnyCaveat,
    describe_advice,
    describe_caveat,
    describe_fact,
    explain_doubts,
)

SOURCE = Path(torchmark.__file__).parent

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


@pytest.mark.parametrize("family", [Caveat, ComparisonCaveat], ids=["results", "comparisons"])
def test_every_kind_of_a_family_is_in_the_catalogue_with_a_mark_of_its_own(family: object) -> None:
    kinds = typing.get_args(family)
    marks = [CATALOGUE[kind].mark for kind in kinds if CATALOGUE[kind].mark]
    assert len(set(marks)) == len(marks)
    assert {kind for kind in kinds if not CATALOGUE[kind].mark} <= {OtherInstructionSet}


@pytest.mark.parametrize("kind", CATALOGUE, ids=lambda kind: kind.kind)
def test_the_module_that_the_catalogue_names_decides_whether_a_caveat_applies(kind: type[AnyCaveat]) -> None:
    tree = ast.parse((SOURCE / CATALOGUE[kind].rule).read_text())
    assert kind.__name__ in {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def test_a_case_with_two_caveats_of_a_kind_is_one_case() -> None:
    both = [LeftOut(side=side, metric="wall", rounds=1, of=3) for side in ("base", "head")]
    other = make_judgement(caveats=(LeftOut(side="base", metric="wall", rounds=2, of=3),))
    told = explain_doubts([make_judgement(caveats=tuple(both)), other])
    assert [(mark, text.partition(":")[0]) for mark, text in told] == [("e", "2 cases, at worst")]


@pytest.mark.parametrize(
    ("caveat", "fact"), list(zip(DOUBTS, FACTS, strict=True)), ids=lambda one: getattr(one, "kind", "")
)
def test_every_doubt_is_a_fact_followed_by_advice(caveat: ComparisonCaveat, fact: str) -> None:
    assert describe_fact(caveat) == fact
    assert describe_caveat(caveat) == f"{fact} {describe_advice(caveat)}"
    assert describe_advice(caveat).endswith((".", "?"))


@pytest.mark.parametrize("what", ["cpu", "capability", "hash_seed", "definition", "layouts", "valgrind", "variables"])
def test_whatever_differs_is_told_with_both_values(what: str) -> None:
    text = describe_caveat(Incomparable(what, "one", "other"))
    assert ": base one, head other. " in text
    assert not text.startswith("The sides differ")
    assert "alike" not in text


def test_what_has_no_words_yet_is_told_nevertheless() -> None:
    assert describe_fact(Incomparable("moon", "full", "new")) == "The sides differ: base full, head new."


def test_long_values_are_cut_and_do_not_steer_the_terminal() -> None:
    text = describe_fact(Incomparable("definition", "stmt: " + "x" * 500, "\x1b[31m\n"))
    assert len(text) < 150
    assert text.isprintable()


def test_a_system_that_does_not_allow_layouts_is_told_apart_from_libraries() -> None:
    text = describe_caveat(Unmatched("personality"))
    assert "libraries" not in text
    assert "seccomp" in text
    assert describe_fact(Unmatched("libraries")).startswith("Base and head load different native libraries, so")


@pytest.mark.parametrize(
    ("caveat", "fact"),
    [
        (FewSamples(1, 6), "1 sample; an interval of the median takes 6."),
        (FewSamples(3, 6), "3 samples; an interval of the median takes 6."),
        (Variation(0.12), "The result is unsteady: the middle half of the samples spans 12% of the median."),
        (Variation(0.3), "The result is unreliable: the middle half of the samples spans 30% of the median."),
        (Drift(0.08), "The statement became 8% slower while it was measured."),
        (Drift(-0.5), "The statement became 50% faster while it was measured."),
        (
            TwoModes(1e-6, 1.9e-6, 0.64),
            "The samples fall into two groups, around 1.00 us and 1.90 us (64% in the slow one).",
        ),
        (
            OtherPlaces(metric="wall", rounds=2, of=5, what=("cpu",), nodes=("n-3", "n-7")),
            "2 of 5 rounds of times are left out, taken with another processor (n-3, n-7).",
        ),
        (
            OtherPlaces("count", 1, 2, ("torch", "valgrind")),
            "1 of 2 rounds of counts is left out, taken with another torch and another Valgrind.",
        ),
        (HighOverhead(0.034), "Starting the loop and reading the clock takes 3.4% of each block."),
    ],
)
def test_every_caveat_is_a_fact_followed_by_advice(caveat: Caveat, fact: str) -> None:
    text = describe_caveat(caveat)
    assert text.startswith(fact + " ")
    assert len(text) > len(fact) + 10


def test_options_are_spelt_as_where_they_are_used() -> None:
    assert "min_run_time=" in describe_caveat(FewSamples(1, 6), "python")
    assert "--min-run-time" in describe_caveat(FewSamples(1, 6), "shell")
    assert "adaptive_autorange()" in describe_caveat(Variation(0.2), "python")
    assert "--adaptive" in describe_caveat(Variation(0.2), "shell")


def test_what_is_in_use_is_not_advised() -> None:
    assert "--adaptive" not in describe_caveat(Variation(0.2), "shell", {"adaptive"})
    assert "Give --number a larger value" in describe_caveat(HighOverhead(0.5), "shell", {"number"})
    assert "--number" not in describe_caveat(HighOverhead(0.5), "shell")


def test_what_to_do_about_other_places_depends_on_whether_there_are_nodes() -> None:
    assert "nodes of one kind" in describe_caveat(
        OtherPlaces(metric="wall", rounds=1, of=2, what=("cpu",), nodes=("n-3",))
    )
    assert "--resume" in describe_caveat(OtherPlaces("wall", 1, 2, ("torch",)))
    assert describe_caveat(OtherPlaces(metric="wall", rounds=1, of=2, what=("cpu",), nodes=("\x1b[31m",))).isprintable()


@pytest.mark.parametrize(
    ("slow_share", "where"), [(0.19, "lies in the fast"), (0.45, "may lie in either"), (0.8, "lies in the slow")]
)
def test_the_median_of_two_groups_is_said_to_lie_where_it_lies(slow_share: float, where: str) -> None:
    assert f"The median {where} group" in describe_caveat(TwoModes(1.23e-6, 5.86e-6, slow_share))
