from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.define.groups import GroupedBenchmark, GroupedModules, GroupedStmts, GroupedVariants
from torchmark.define.options import GroupedSetup
from torchmark.errors import DefinitionError
from torchmark.model.plan import CompileMode
from torchmark.model.task import Language

SIGNATURE = "f(x, w) -> y"
MODEL, CPP_MODEL = "model = torch.nn.ReLU()", "auto model = torch::nn::ReLU();"


def test_setups_lose_their_indentation() -> None:
    setup = GroupedSetup("\n    x = 1\n    y = 2\n", "    auto x = 1;", "    #include <array>")
    assert (setup.py_setup, setup.cpp_setup, setup.global_setup) == (
        "\nx = 1\ny = 2\n",
        "auto x = 1;",
        "#include <array>",
    )
    for texts in ((None,), ("", 3), ("", "", b"")):
        with pytest.raises(DefinitionError, match="is a text, not"):
            GroupedSetup(*texts)


def test_arguments_can_be_given_by_place_as_scripts_do() -> None:
    setup = GroupedSetup("x = w = torch.ones(1)")
    group = GroupedStmts("  y = x * w", "  auto y = x * w;", setup, SIGNATURE, True, True, (1, 2))
    assert group == GroupedBenchmark(
        py_fwd_stmt="y = x * w",
        cpp_fwd_stmt="auto y = x * w;",
        py_model_setup="def model(x, w):\n    y = x * w\n    return y\n",
        cpp_model_setup=None,
        inferred_model_setup=True,
        setup=setup,
        signature_args=("x", "w"),
        signature_output="y",
        torchscript=True,
        autograd=True,
        num_threads=(1, 2),
    )
    assert GroupedModules(MODEL, CPP_MODEL, setup, "f(x) -> y", True, True, 2).num_threads == (2,)
    assert GroupedVariants("x", "x;", 2)[("",)].num_threads == (2,)


@pytest.mark.parametrize(
    ("python", "cpp", "languages"),
    [
        (MODEL, None, (Language.PYTHON,)),
        (None, CPP_MODEL, (Language.CPP,)),
        (MODEL, CPP_MODEL, (Language.PYTHON, Language.CPP)),
    ],
)
def test_modules_are_called_in_the_languages_that_have_one(
    python: str | None, cpp: str | None, languages: tuple[Language, ...]
) -> None:
    group = GroupedModules(python, cpp, signature="f(x) -> y")
    assert group.languages == languages
    assert group.py_fwd_stmt == ("y = model(x)" if python else None)
    assert group.cpp_fwd_stmt == ("auto y = model->forward(x);" if cpp else None)


def test_new_options_reach_the_group() -> None:
    modes = ("inductor:max-autotune", CompileMode("eager"))
    group = GroupedStmts("y = x", signature="f(x) -> y", compile=modes, check=True, tags="quick")
    assert group.compile == (CompileMode("inductor", "max-autotune"), CompileMode("eager"))
    assert (group.check, group.tags) == (True, ("quick",))
    assert group.py_model_setup == "def model(x):\n    y = x\n    return y\n"
    variants = GroupedVariants("x", check=False, tags=("a", "b"))
    assert (variants[("",)].check, variants[("",)].tags) == (False, ("a", "b"))


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        (
            {"signature": SIGNATURE, "autograd": True},
            {"autograd": True},
            "An output variable must be specified when `autograd=True`.",
        ),
        (
            {"signature": "f(x) -> None"},
            {"signature": "f(x) -> None", "autograd": True},
            "An output variable must be specified when `autograd=True`.",
        ),
        (
            {"signature": "f(x) -> a, b", "torchscript": True, "py_stmt": "a = b = x"},
            {"signature": "f(x) -> a, b", "autograd": True},
            "Multiple return values are not currently allowed: `a, b`",
        ),
        (
            {"signature": SIGNATURE, "torchscript": True},
            {"torchscript": True},
            "signature is needed in order to derive a model.",
        ),
        (
            {"signature": SIGNATURE, "compile": True},
            {"compile": True},
            "signature is needed in order to derive a model.",
        ),
        (
            {"signature": SIGNATURE, "py_stmt": None},
            {"signature": SIGNATURE, "py_stmt": None, "torchscript": True},
            "`py_stmt` must be defined in order to derive a model.",
        ),
        ({"py_stmt": None}, {"py_stmt": None, "cpp_stmt": None}, "There is nothing to measure"),
        ({"signature": SIGNATURE}, {"signature": "x, w -> y"}, "Invalid signature: `x, w -> y`"),
        ({"setup": GroupedSetup("x = 1")}, {"setup": GroupedSetup("x = = 1")}, "`py_setup` is not Python"),
        ({"setup": GroupedSetup("x")}, {"setup": "x"}, "`setup` is a GroupedSetup, not <class 'str'>."),
        ({"setup": GroupedSetup("x")}, {"setup": None}, "`setup` is a GroupedSetup, not <class 'NoneType'>."),
        ({"py_stmt": "y = x"}, {"py_stmt": "y = = x"}, "`py_stmt` is not Python"),
        (
            {"py_stmt": "y = x", "signature": SIGNATURE, "torchscript": True},
            {"py_stmt": "y = = x", "signature": SIGNATURE, "torchscript": True},
            "`py_stmt` is not Python: invalid syntax.\n  y = = x\n      ^",
        ),
        ({"py_stmt": "x"}, {"py_stmt": b"x"}, "`py_stmt` is a text, not <class 'bytes'>."),
        ({"cpp_stmt": "x;"}, {"cpp_stmt": 3}, "`cpp_stmt` is a text, not <class 'int'>."),
        ({"signature": None}, {"signature": 3}, "A signature is a text"),
        ({"autograd": False}, {"autograd": "no"}, "`autograd` is True or False, not 'no'."),
        ({"torchscript": False}, {"torchscript": None}, "`torchscript` is True or False, not None."),
        ({"check": None}, {"check": "yes"}, "`check` is True or False, not 'yes'."),
        ({"num_threads": (1, 4)}, {"num_threads": 1.0}, "`num_threads` is a whole number"),
        ({"tags": ["a"]}, {"tags": None}, "`tags` are texts"),
        ({"compile": False}, {"compile": 0}, "`compile` is True, or back ends"),
        (
            {"signature": "f(model) -> y"},
            {"signature": "f(model) -> y", "torchscript": True},
            "`model` is a name that is generated",
        ),
    ],
)
def test_statements_that_mean_nothing_are_refused(good: dict[str, Any], bad: dict[str, Any], message: str) -> None:
    stmts = {"py_stmt": "y = x", "cpp_stmt": "auto y = x;"}
    assert isinstance(GroupedStmts(**{**stmts, **good}), GroupedBenchmark)
    with pytest.raises(DefinitionError) as caught:
        GroupedStmts(**{**stmts, **bad})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"signature": None}, "signature is needed when initializing from model definitions."),
        ({"py_model_setup": "relu = torch.nn.ReLU()"}, "`py_model_setup` appears to be missing `model` definition."),
        ({"py_model_setup": ""}, "`py_model_setup` appears to be missing `model` definition."),
        ({"cpp_model_setup": "torch::nn::ReLU m;"}, "`cpp_model_setup` appears to be missing `model` definition."),
        ({"py_model_setup": "model = ="}, "`py_model_setup` is not Python: invalid syntax.\n  model = =\n          ^"),
        ({"py_model_setup": None, "cpp_model_setup": None}, "There is nothing to measure"),
        ({"py_model_setup": None, "torchscript": True}, "`torchscript=True` needs a model in Python"),
        ({"py_model_setup": None, "compile": True}, "`compile` needs a model in Python"),
        ({"signature": "f(x) -> None", "autograd": True}, "An output variable must be specified"),
        ({"signature": "f(jit_model) -> y"}, "`jit_model` is a name that is generated"),
        ({"signature": "f(x) -> fpath"}, "`fpath` is a name that is generated"),
        ({"signature": "f(x) -> x"}, "`x` goes in and comes out"),
        ({"py_model_setup": 3}, "`py_model_setup` is a text, not <class 'int'>."),
    ],
)
def test_modules_that_mean_nothing_are_refused(bad: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"py_model_setup": MODEL, "cpp_model_setup": CPP_MODEL, "signature": "f(x) -> y"}
    assert GroupedModules(**good, torchscript=True, autograd=True, compile=True).cpp_model_setup == CPP_MODEL
    assert GroupedModules(MODEL, signature="f(x) -> x").py_fwd_stmt == "x = model(x)"
    with pytest.raises(DefinitionError) as caught:
        GroupedModules(**{**good, **bad})
    assert message in str(caught.value)


def test_every_line_of_a_block_is_a_group_with_the_same_setup() -> None:
    groups = GroupedVariants(
        "# @setup\nx = torch.ones(1)\n# @add\nx += 1; x += 2\n\n# @zero\nx.zero_()",
        "// @global_setup\n#include <array>\n// @setup\nauto x = torch::ones(1);\n// @add\nx += 1;\nx += 2;",
    )
    assert {label: (group.py_fwd_stmt, group.cpp_fwd_stmt) for label, group in groups.items()} == {
        ("add", "Case:  0"): ("x += 1; x += 2", "x += 1;"),
        ("add", "Case:  1"): (None, "x += 2;"),
        ("zero",): ("x.zero_()", None),
    }
    setup = GroupedSetup("x = torch.ones(1)", "auto x = torch::ones(1);", "#include <array>")
    assert {group.setup for group in groups.values()} == {setup}


@pytest.mark.parametrize(
    ("python", "cpp", "message"),
    [
        ("", "", "There is nothing to measure in this block"),
        ("# @setup\nx = 1", "", "There is nothing to measure in this block"),
        ("# @a\nx = = 1", "", "`py_block` is not Python: invalid syntax.\n  x = = 1\n      ^"),
        ("# @setup\nx = = 1\n# @a\nx", "", "`py_block` is not Python"),
        ("for i in x:\n    i", "", "`py_block` is not Python"),
        ("# @global_setup\nx = 1\n# @a\nx", "", "Python has no `global_setup`"),
        ("f(", "", "A statement goes on at the end"),
        (None, "x;", "A block of variants is a text"),
        ("x", 3, "A block of variants is a text"),
    ],
)
def test_blocks_that_mean_nothing_are_refused(python: str, cpp: str, message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        GroupedVariants(python, cpp)
    assert message in str(caught.value)


TEXTS = st.one_of(
    st.none(),
    st.integers(),
    st.text(max_size=9),
    st.sampled_from(["y = x", "y = x\n  z", "def f(:", "\ty", "f(x)->y", MODEL]),
)
OPTIONS = {"torchscript": st.booleans(), "autograd": st.booleans(), "compile": st.one_of(st.booleans(), TEXTS)}
SETUPS = st.one_of(st.just(GroupedSetup()), st.builds(GroupedSetup, st.text(max_size=5)), TEXTS)


@given(TEXTS, TEXTS, SETUPS, TEXTS, st.fixed_dictionaries(OPTIONS))
def test_anything_is_a_group_or_a_definition_error(
    python: Any, cpp: Any, setup: Any, signature: Any, options: dict[str, Any]
) -> None:
    for make in (GroupedStmts, GroupedModules):
        try:
            group = make(python, cpp, setup, signature, **options)
        except DefinitionError:
            continue
        assert group.languages


@given(st.one_of(st.text(), TEXTS), st.one_of(st.text(), TEXTS))
def test_anything_is_a_block_of_variants_or_a_definition_error(python: Any, cpp: Any) -> None:
    try:
        groups = GroupedVariants(python, cpp)
    except DefinitionError:
        return
    assert all(group.languages for group in groups.values())


@pytest.mark.parametrize(
    "stmt", ["z = x", "x += 1\n(z := x)", "for z in x: pass", "import torch as z", "exec('z = 1')", "x, (z, *_) = x"]
)
def test_an_output_that_something_may_assign_is_accepted(stmt: str) -> None:
    GroupedStmts(stmt, signature="f(x) -> z")


def test_an_output_that_nothing_assigns_is_a_fault() -> None:
    with pytest.raises(DefinitionError, match="the output `z`, and nothing assigns it"):
        GroupedStmts("y = x * 2", signature="f(x) -> z")
