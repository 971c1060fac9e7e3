from __future__ import annotations

from itertools import product

from hypothesis import example, given
from hypothesis import strategies as st

from tests.made_summaries import make_case
from torchmark.analysis.estimate import Estimate
from torchmark.model.plan import AutogradMode, AutoLabels, Case, Metric, Plan, RuntimeMode, Sampling, Target, TimerArgs
from torchmark.model.task import Language
from torchmark.report.text.plan import LEAST_TREE_WIDTH, render_cases, render_plan, summarise_cases
from torchmark.report.text.terminal import measure

EAGER, JIT, BOTH = (RuntimeMode.EAGER,), (RuntimeMode.JIT,), (RuntimeMode.EAGER, RuntimeMode.JIT)
FORWARD, TRAINING = (AutogradMode.FORWARD,), (AutogradMode.FORWARD, AutogradMode.FORWARD_BACKWARD)
PYTHON, ANY = (Language.PYTHON,), tuple(Language)


def cases(
    *label: str,
    runtimes: tuple[RuntimeMode, ...] = EAGER,
    autograd: tuple[AutogradMode, ...] = FORWARD,
    languages: tuple[Language, ...] = ANY,
    threads: tuple[int, ...] = (1,),
    suite: str = "",
    tags: tuple[str, ...] = (),
) -> list[Case]:
    return [
        Case(label, AutoLabels(r, a, language), TimerArgs("f", num_threads=n), suite=suite, tags=tags)
        for n, r, a, language in product(threads, runtimes, autograd, languages)
    ]


MANY = [
    *cases("Empty", "no allocation"),
    *cases("Pointwise", "Math", "add", "Case:  0"),
    *cases("Pointwise", "Math", "add", "Case:  1", languages=PYTHON),
    *cases("nn Modules", "Linear", runtimes=BOTH),
    *cases("training", "simple", runtimes=BOTH, autograd=TRAINING, threads=(1, 2)),
    *cases("training", "mixed", autograd=TRAINING),
    *cases("training", "mixed", runtimes=JIT, languages=PYTHON, threads=(1, 8)),
    *cases("training", "free", runtimes=(RuntimeMode.EXPLICIT,), autograd=(AutogradMode.EXPLICIT,)),
]


def test_labels_are_a_tree_with_the_variants_beside() -> None:
    assert render_cases(MANY).splitlines() == [
        "Empty / no allocation  Eager: Python, C++",
        "Pointwise / Math / add",
        "  Case:  0             Eager: Python, C++",
        "  Case:  1             Eager: Python",
        "nn Modules / Linear    Eager: Python, C++ · TorchScript: Python, C++",
        "training",
        "  simple               Eager: Python, C++ · TorchScript: Python, C++",
        "                       each Forward, Forward + Backward; 1, 2 threads",
        "  mixed                Eager (Forward, Forward + Backward): Python, C++",
        "                       TorchScript (1, 8 threads): Python",
        "  free                 Python, C++",
    ]


def test_a_label_that_others_begin_with_has_its_own_variants() -> None:
    assert render_cases([*cases("a"), *cases("a", "b", languages=PYTHON)]).splitlines() == [
        "a    Eager: Python, C++",
        "  b  Eager: Python",
    ]


def test_runtimes_without_a_name_are_told_from_others() -> None:
    mixed = cases("a", runtimes=(RuntimeMode.EXPLICIT, *EAGER), languages=PYTHON)
    assert render_cases(mixed) == "a  as written: Python · Eager: Python"


def test_suites_are_apart_where_there_are_several() -> None:
    assert render_cases([*cases("a", suite="standard"), *cases("a", suite="x.py", languages=PYTHON)]).splitlines() == [
        "standard",
        "  a  Eager: Python, C++",
        "x.py",
        "  a  Eager: Python",
    ]


@given(
    st.lists(st.lists(st.text(max_size=70), min_size=1, max_size=40), min_size=1, max_size=4),
    st.integers(LEAST_TREE_WIDTH, 100),
)
@example([["000000\u2cef"]], 22)  # a character that takes no column
@example([["000000\u2cef", "0", "0", "0", "0", "0", "00000000000"]], 22)
def test_no_line_is_wider_than_the_terminal(labels: list[list[str]], width: int) -> None:
    found = [case for label in labels for case in cases(*label, runtimes=BOTH, autograd=TRAINING, threads=(1, 2))]
    text = render_cases(found, width) + "\n" + summarise_cases(found, 99, width)
    assert max(map(measure, text.split("\n"))) <= width
    assert not any(line.endswith(" ") for line in text.split("\n") if line.strip())


def test_long_names_push_only_their_own_variants_down() -> None:
    text = render_cases([*cases("x" * 60), *cases("short")])
    assert text.splitlines() == ["x" * 60, "       Eager: Python, C++", "short  Eager: Python, C++"]


def test_the_summary_counts_by_kind_and_names_what_is_unusual() -> None:
    assert summarise_cases(MANY).splitlines() == [
        "33 cases: 18 Python, 15 C++; 19 Eager, 12 TorchScript, 2 as written; 21 Forward,",
        "  10 Forward + Backward, 2 as written; 24 with 1 thread, 8 with 2 threads,",
        "  1 with 8 threads",
    ]
    assert summarise_cases(cases("a", tags=("quick", "core")), of=40) == (
        "2 of 40 cases: 1 Python, 1 C++; 2 Eager\nTags: 2 quick, 2 core"
    )
    assert summarise_cases(cases("a", languages=PYTHON, runtimes=(RuntimeMode.EXPLICIT,)), of=1) == "1 case: 1 Python"


def test_variants_stand_below_each_other_whatever_script_a_label_is_written_in() -> None:
    named = [case for name in ("add", "加算", "e\u0301te\u0301", "🔥") for case in cases("ops", name)]
    lines = render_cases(named).splitlines()[1:]
    assert {measure(line.partition("Eager")[0]) for line in lines} == {8}
    assert max(map(measure, render_cases(cases("ops", "長" * 200), 40).splitlines())) <= 40


CASES = make_case("a"), make_case("b")


def test_a_plan_says_what_where_and_for_how_long() -> None:
    text = render_plan(Plan(CASES), Estimate(75.0, 130.0, 0, 4), 2, 80, of=9)
    assert text.splitlines() == [
        "2 of 9 cases: 2 Python; 2 Eager",
        "Timed: one after the other, each for 200 ms or more",
        "Counted: in 5 memory layouts",
        "Where: 2 cores",
        "4 results: about 75 s, 2 min of processor time (a rough guess: none of these has",
        "  been measured here)",
    ]


def test_a_plan_names_environments_and_rounds_and_leaves_out_what_is_not_asked_for() -> None:
    plan = Plan(CASES, (Target("old"), Target()), Sampling((Metric.COUNT,), layouts=(1,), repeat=3))
    lines = render_plan(plan, Estimate(75.0, 130.0, 5, 12), 1, 80).splitlines()
    assert lines[1:4] == [
        "Counted: in 1 memory layout",
        "Rounds: 3",
        "Where: 1 core; 2 environments: old, this one",
    ]
    assert "from 5 of 12 earlier durations" in lines[4]


def test_nothing_left_to_measure_is_said() -> None:
    assert render_plan(Plan(CASES), Estimate(0.0, 0.0, 0, 0), 1, 80).endswith("Nothing is left to measure.")
