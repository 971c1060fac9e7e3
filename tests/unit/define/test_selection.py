from __future__ import annotations

import pytest

from torchmark.define.selection import Selection, keywords, missing_words, nearby, nearest, parse, select
from torchmark.model.case import AutogradMode, AutoLabels, Case, CompileMode, RuntimeMode, TimerArgs
from torchmark.model.task import Language


def case(
    *label: str,
    runtime: RuntimeMode = RuntimeMode.EAGER,
    autograd: AutogradMode = AutogradMode.FORWARD,
    language: Language = Language.PYTHON,
    threads: int = 1,
    tags: tuple[str, ...] = (),
    compiling: CompileMode | None = None,
) -> Case:
    labels = AutoLabels(runtime, autograd, language, compiling)
    return Case(label, labels, TimerArgs("f(x)", num_threads=threads, language=language), tags=tags)


ADD = case("Pointwise", "Math", "add", tags=("quick",))
ADD_CPP = case("Pointwise", "Math", "add", language=Language.CPP)
LINEAR = case("nn Modules", "Linear", runtime=RuntimeMode.JIT, autograd=AutogradMode.FORWARD_BACKWARD, threads=2)
COMPILED = case("Linear", runtime=RuntimeMode.COMPILE, compiling=CompileMode("inductor", "max-autotune"))
BARE = case("x", runtime=RuntimeMode.EXPLICIT, autograd=AutogradMode.EXPLICIT)
ALL = (ADD, ADD_CPP, LINEAR, COMPILED, BARE)


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), ALL),
        (Selection(languages=(Language.CPP,)), (ADD_CPP,)),
        (Selection(languages=(Language.CPP, Language.PYTHON)), ALL),
        (Selection(runtimes=(RuntimeMode.JIT, RuntimeMode.COMPILE)), (LINEAR, COMPILED)),
        (Selection(autograd=(AutogradMode.EXPLICIT,)), (BARE,)),
        (Selection(autograd=(AutogradMode.FORWARD,)), (ADD, ADD_CPP, COMPILED)),
        (Selection(threads=(2, 4)), (LINEAR,)),
        (Selection(tags=("slow", "quick")), (ADD,)),
        (Selection(tags=("qui",)), ()),
        (Selection(parse("linear"), threads=(1,)), (COMPILED,)),
    ],
)
def test_one_of_each_that_is_given_has_to_fit(selection: Selection, expected: tuple[Case, ...]) -> None:
    assert select(ALL, selection) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ADD", (ADD, ADD_CPP)),
        ("'math / add'", (ADD, ADD_CPP)),
        ("c++", (ADD_CPP,)),
        ("cpp", (ADD_CPP,)),
        ("add and python", (ADD,)),
        ("max-autotune", (COMPILED,)),
        ("backward", (LINEAR,)),
        ("'2 threads'", (LINEAR,)),
        ("quick or torchscript", (ADD, LINEAR)),
        ("not (eager or linear)", (BARE,)),
        ("addEager", ()),
    ],
)
def test_words_are_found_in_any_keyword(text: str, expected: tuple[Case, ...]) -> None:
    assert select(ALL, Selection(parse(text))) == expected


def test_what_has_no_name_is_no_keyword() -> None:
    assert keywords(BARE) == ("x", "Python", "1 threads")


def test_words_that_no_case_has_are_told_once_and_those_nearby_are_found() -> None:
    assert missing_words(parse("add and (liner or not liner or nope)"), ALL) == ("liner", "nope")
    assert nearby("liner", ALL) == ("Linear",)
    assert nearby("moduls", ALL) == ("Modules", "nn Modules")
    assert nearby("zzzz", ALL) == ()


@pytest.mark.parametrize(("word", "expected"), [("STANDART", ("standard",)), ("qqq", ())])
def test_a_slip_is_recognised(word: str, expected: tuple[str, ...]) -> None:
    assert nearest(word, ["standard", "modern"]) == expected
