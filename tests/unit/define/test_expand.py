from __future__ import annotations

import ast
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.define.expand import expand, flatten
from torchmark.define.groups import GroupedModules, GroupedStmts, GroupedVariants
from torchmark.define.options import GroupedSetup
from torchmark.define.signature import parse_stmts
from torchmark.errors import DefinitionError
from torchmark.model.plan import (
    AutogradMode,
    AutoLabels,
    Case,
    CompileMode,
    CompileParts,
    RuntimeMode,
    TimerArgs,
)
from torchmark.model.task import Language

PY, CPP = Language.PYTHON, Language.CPP
EAGER, JIT, COMPILE = RuntimeMode.EAGER, RuntimeMode.JIT, RuntimeMode.COMPILE
FORWARD, BACKWARD = AutogradMode.FORWARD, AutogradMode.FORWARD_BACKWARD

PY_INPUTS = "\nx = torch.ones((4, 4))\nw = torch.ones((4, 4), requires_grad=True)\n"
CPP_INPUTS = "\nauto x = torch::ones((4, 4));\nauto w = torch::ones((4, 4));\nw.set_requires_grad(true);\n"
DERIVED = "def model(x, w):\n    y = x * w\n    return y\n"
FILE = "torchscript_example_mul_7a791ed0f50c.pt"
INCLUDES = "\n#include <string>\n#include <vector>\n#include <torch/script.h>\n"

PY_LOADED = f"""{PY_INPUTS}

jit_model = torch.jit.load("{FILE}")

# Warmup `jit_model`
for _ in range(3):
    y = jit_model(x, w)"""
CPP_CALL = """\
std::vector<torch::jit::IValue> ivalue_inputs({
    torch::jit::IValue(x), torch::jit::IValue(w)
});
auto y = jit_model.forward(ivalue_inputs);
"""
CPP_LOADED = f"""{CPP_INPUTS}

const std::string fpath = "{FILE}";
auto jit_model = torch::jit::load(fpath);

// Warmup `jit_model`
for (int i = 0; i < 3; i++) {{
    std::vector<torch::jit::IValue> ivalue_inputs({{
        torch::jit::IValue(x), torch::jit::IValue(w)
    }});
    auto y = jit_model.forward(ivalue_inputs);
"""

benchmark = GroupedStmts(
    py_stmt=r"y = x * w",
    cpp_stmt=r"auto y = x * w;",
    setup=GroupedSetup(
        py_setup="""
            x = torch.ones((4, 4))
            w = torch.ones((4, 4), requires_grad=True)
        """,
        cpp_setup="""
            auto x = torch::ones((4, 4));
            auto w = torch::ones((4, 4));
            w.set_requires_grad(true);
        """,
    ),
    signature="f(x, w) -> y",
    torchscript=True,
    autograd=True,
)
WORKED = {
    (EAGER, FORWARD, PY): ("y = x * w", f"{PY_INPUTS}\n{DERIVED}", ""),
    (EAGER, FORWARD, CPP): ("auto y = x * w;", f"{CPP_INPUTS}\n", ""),
    (EAGER, BACKWARD, PY): ("y = x * w\ny.backward()", f"{PY_INPUTS}\n{DERIVED}", ""),
    (EAGER, BACKWARD, CPP): ("auto y = x * w;\ny.backward();", f"{CPP_INPUTS}\n", ""),
    (JIT, FORWARD, PY): ("y = jit_model(x, w)", f"{PY_LOADED}\n", ""),
    (JIT, FORWARD, CPP): (CPP_CALL, f"{CPP_LOADED}\n}}\n", INCLUDES),
    (JIT, BACKWARD, PY): ("y = jit_model(x, w)\ny.backward()", f"{PY_LOADED}\n    y.backward()\n", ""),
    (JIT, BACKWARD, CPP): (
        f"{CPP_CALL}\ny.toTensor().backward();",
        f"{CPP_LOADED}\n    y.toTensor().backward();\n}}\n",
        INCLUDES,
    ),
}


def find(cases: tuple[Case, ...], *variant: object) -> Case:
    (case,) = (
        case
        for case in cases
        if variant == (case.autolabels.runtime, case.autolabels.autograd, case.autolabels.language)[: len(variant)]
    )
    return case


def test_the_worked_example_is_word_for_word() -> None:
    cases = expand({("example", "mul"): benchmark})
    assert {
        (case.autolabels.runtime, case.autolabels.autograd, case.autolabels.language): (
            case.args.stmt,
            case.args.setup,
            case.args.global_setup,
        )
        for case in cases
    } == WORKED
    assert len(cases) == len(WORKED)
    for case in cases:
        assert (case.args.num_threads, case.args.language) == (1, case.autolabels.language)


def test_the_parts_of_the_worked_example_can_be_used() -> None:
    assert benchmark.py_fwd_stmt == "y = x * w"
    assert benchmark.cpp_fwd_stmt == "auto y = x * w;"
    assert benchmark.setup.py_setup == PY_INPUTS
    assert benchmark.setup.cpp_setup == CPP_INPUTS
    assert benchmark.py_model_setup == DERIVED
    assert (benchmark.signature_args, benchmark.signature_output) == (("x", "w"), "y")


def test_one_model_on_the_disk_serves_all_torchscript_cases() -> None:
    cases = expand({("example", "mul"): benchmark})
    artefacts = {case.artefact for case in cases if case.autolabels.runtime == JIT}
    (artefact,) = artefacts
    assert artefact is not None
    assert (artefact.file, artefact.source) == (FILE, f"{PY_INPUTS}\n{DERIVED}\njit_model = torch.jit.script(model)")
    assert {case.artefact for case in cases if case.autolabels.runtime == EAGER} == {None}


def test_models_that_differ_have_files_that_differ() -> None:
    def file(label: tuple[str, ...], stmt: str = "y = x") -> str:
        group = GroupedStmts(stmt, signature="f(x) -> y", torchscript=True)
        artefact = find(expand({label: group}), JIT).artefact
        assert artefact is not None
        return artefact.file

    assert len({file(("a",)), file(("a",), "y = -x"), file(("b",))}) == 3
    strange = file(('"\\/\n é', "A" * 300))
    assert strange.startswith("torchscript________aaa")
    assert strange.isascii()
    assert len(strange) < 120


def test_a_global_setup_of_variants_reaches_cpp_and_nothing_else() -> None:
    text = """
        Python                                   | C++
        ---------------------------------------- | ----------------------------------------
                                                 | // @global_setup
                                                 | #include <array>
        # @setup                                 | // @setup
        x = 1                                    | auto x = 1;
        # @a                                     | // @a
        x + 1                                    | x + 1;
    """
    python, cpp = expand(flatten({"v": GroupedVariants(*parse_stmts(text))}))
    assert python.args == TimerArgs("x + 1", "x = 1\n")
    assert cpp.args == TimerArgs("x + 1;", "auto x = 1;\n", "#include <array>", language=CPP)
    assert python.label == cpp.label == ("v", "a")


def test_a_global_setup_stands_behind_what_torchscript_includes() -> None:
    setup = GroupedSetup(global_setup="#include <array>")
    group = GroupedStmts("y = x", "auto y = x;", setup, "f(x) -> y", torchscript=True)
    cases = expand({("a",): group})
    assert find(cases, JIT, FORWARD, CPP).args.global_setup == f"{INCLUDES}\n#include <array>"
    assert find(cases, EAGER, FORWARD, CPP).args.global_setup == "#include <array>"
    assert find(cases, JIT, FORWARD, PY).args.global_setup == ""


def test_a_compiled_case_can_be_taken_apart() -> None:
    group = GroupedModules(
        "model = torch.nn.ReLU()",
        "torch::nn::ReLU model;",
        GroupedSetup("x = 1"),
        "f(x) -> y",
        autograd=True,
        compile=("aot_eager", "inductor:max-autotune"),
    )
    compiled = [case for case in expand({("a",): group}) if case.autolabels.runtime == COMPILE]
    assert [case.autolabels.as_dict["runtime"] for case in compiled[::2]] == [
        "torch.compile (aot_eager)",
        "torch.compile (inductor, max-autotune)",
    ]
    assert {case.args.language for case in compiled} == {PY}
    inputs = "x = 1\nmodel = torch.nn.ReLU()"
    last = compiled[-1]
    assert last.parts == CompileParts(inputs, "y = compiled_model(x)", CompileMode("inductor", "max-autotune"))
    assert last.args.stmt == "y = compiled_model(x)\ny.backward()"
    assert last.args.setup == (
        f'{inputs}\ncompiled_model = torch.compile(model, backend="inductor", mode="max-autotune")\n\n'
        "# Warmup `compiled_model`\nfor _ in range(3):\n    y = compiled_model(x)\n    y.backward()\n"
    )


def test_results_are_compared_if_the_group_or_else_the_suite_says_so() -> None:
    for own, suite, expected in ((None, True, True), (None, False, False), (True, False, True), (False, True, False)):
        (case,) = expand({("a",): GroupedStmts("y = x", signature="f(x) -> y", check=own)}, check=suite)
        assert (case.check is not None) == expected
    (case,) = expand({("a",): GroupedStmts("x")}, check=True)
    assert case.check is None


def test_a_check_runs_once_what_is_measured_without_warming_up() -> None:
    case = find(expand({("example", "mul"): benchmark}, check=True), JIT, BACKWARD, CPP)
    assert case.check is not None
    assert case.args.setup.startswith(f"{case.check.setup}\n\n// Warmup")
    assert case.check.stmt == (
        f'{case.args.stmt}\ntorchmark::give("y", y);\n'
        'torchmark::give("x.grad", torchmark::grad(x));\ntorchmark::give("w.grad", torchmark::grad(w));'
    )


def test_a_model_without_output_is_compared_by_what_it_changes() -> None:
    group = GroupedStmts(
        "x.zero_()",
        "x.zero_();",
        GroupedSetup("x = torch.ones(1)", "auto x = torch::ones(1);"),
        "f(x) -> None",
        torchscript=True,
    )
    cases = expand({("a",): group}, check=True)
    eager, script = find(cases, EAGER, FORWARD, CPP).check, find(cases, JIT, FORWARD, CPP).check
    assert eager is not None
    assert script is not None
    assert eager.stmt == 'x.zero_();\ntorchmark::give("x", x);'
    assert script.stmt == find(cases, JIT, FORWARD, CPP).args.stmt + '\ntorchmark::give("x", x);'


def test_a_model_without_output_in_python_alone_is_compared_by_what_it_changes() -> None:
    group = GroupedStmts("x.zero_()", setup=GroupedSetup("x = torch.ones(1)"), signature="f(x) -> None", compile=True)
    eager, compiled = (case.check for case in expand({("a",): group}, check=True))
    assert eager is not None
    assert compiled is not None
    assert eager.stmt == 'x.zero_()\ntorchmark_give("x", x)'
    assert compiled.stmt == 'compiled_model(x)\ntorchmark_give("x", x)'


def test_variables_that_both_statements_assign_are_compared() -> None:
    group = GroupedStmts("y = x + 1", "auto y = x + 1;", GroupedSetup("x = 1", "auto x = 1;"))
    python, cpp = (case.check for case in expand({("a",): group}, check=True))
    assert python is not None
    assert cpp is not None
    assert python.stmt == 'y = x + 1\ntorchmark_give("x", x)\ntorchmark_give("y", y)'
    assert cpp.stmt == 'auto y = x + 1;\ntorchmark::give("x", x);\ntorchmark::give("y", y);'


def test_gradients_of_a_modules_parameters_are_compared() -> None:
    group = GroupedModules(
        "model = Net()", "Net model;", signature="f(x) -> y", autograd=True, torchscript=True, compile=True
    )
    cases = expand({("a",): group}, check=True)
    given = {}
    for case in cases:
        if case.autolabels.autograd == BACKWARD:
            assert case.check is not None
            given[case.autolabels.runtime, case.autolabels.language] = case.check.stmt.splitlines()[-1]
    python = 'torchmark_give("the parameters\' gradients", [one.grad for one in getattr({}, "parameters", list)()])'
    cpp = 'torchmark::give("the parameters\' gradients", torchmark::grads({}));'
    assert given == {
        (EAGER, PY): python.format("model"),
        (EAGER, CPP): cpp.format("model"),
        (JIT, PY): python.format("jit_model"),
        (JIT, CPP): cpp.format("jit_model"),
        (COMPILE, PY): python.format("compiled_model"),
    }


def test_lines_of_variants_are_compared_by_value_and_by_what_they_change() -> None:
    groups = GroupedVariants("# @setup\nx = 1\n# @a\nx + 1", "// @setup\nauto x = 1;\n// @a\nx + 1;")
    python, cpp = expand(flatten({None: groups}), check=True)
    assert python.check is not None
    assert cpp.check is not None
    assert (python.check.setup, cpp.check.setup) == ("x = 1\n", "auto x = 1;\n")
    given = '\ntorchmark_give("the value", torchmark_value)\ntorchmark_give("x", x)'
    assert python.check.stmt == f"torchmark_value = (x + 1){given}"
    given = '\ntorchmark::give("the value", torchmark_value);\ntorchmark::give("x", x);'
    assert cpp.check.stmt == f"auto &&torchmark_value = (x + 1);{given}"


def test_timers_stay_as_they_are() -> None:
    args = TimerArgs("\n    x + 1\n    y\n", "    x = 1", num_threads=2)
    labels = AutoLabels(RuntimeMode.EXPLICIT, AutogradMode.EXPLICIT, PY)
    assert expand({("a",): args}, suite="s", check=True) == (Case(("a",), labels, args, suite="s"),)
    args = TimerArgs("x;", global_setup="#include <array>", language=CPP)
    assert expand({("a",): args})[0].args is args


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"stmt": None}, "`TimerArgs.stmt` is a text, not <class 'NoneType'>."),
        ({"setup": 3}, "`TimerArgs.setup` is a text, not <class 'int'>."),
        ({"stmt": "x ="}, "`TimerArgs.stmt` is not Python"),
        ({"setup": "x ="}, "`TimerArgs.setup` is not Python"),
        ({"global_setup": "import os"}, "Python has no `global_setup`"),
        ({"language": "cpp"}, "`language` of TimerArgs is Language.PYTHON or Language.CPP, not 'cpp'."),
        ({"num_threads": 0}, "`num_threads` of TimerArgs is a whole number from 1 on, not 0."),
        ({"num_threads": "1"}, "not '1'."),
        ({"num_threads": True}, "not True."),
    ],
)
def test_timers_that_mean_nothing_are_refused(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        expand({("a",): TimerArgs(**{"stmt": "x", **bad})})
    assert message in str(caught.value)


def test_what_is_no_benchmark_is_refused() -> None:
    with pytest.raises(DefinitionError, match="What stands at"):
        expand({("a",): "x"})  # type: ignore[dict-item]


MODES = st.lists(st.sampled_from(["inductor", "eager", "inductor:max-autotune", "a:b"]), unique=True, max_size=3)
LANGUAGES = st.sampled_from([(PY,), (CPP,), (PY, CPP)])
SIGNATURES = st.sampled_from(["f(x, w) -> y", "f() -> y", "f(x)->y", " f ( i, _ ) -> y"])


@given(
    st.booleans(),
    LANGUAGES,
    SIGNATURES,
    st.booleans(),
    st.booleans(),
    st.lists(st.integers(1, 64), min_size=1, max_size=3, unique=True),
    MODES,
)
def test_a_group_expands_to_the_product_of_its_options(
    modules: bool,
    languages: tuple[Language, ...],
    signature: str,
    torchscript: bool,
    autograd: bool,
    threads: list[int],
    modes: list[str],
) -> None:
    python, cpp = ("model = f", "auto model = f;") if modules else ("y = x", "auto y = x;")
    from_python = PY in languages
    torchscript, modes = torchscript and from_python, modes if from_python else []
    group = (GroupedModules if modules else GroupedStmts)(
        python if PY in languages else None,
        cpp if CPP in languages else None,
        signature=signature,
        torchscript=torchscript,
        autograd=autograd,
        num_threads=tuple(threads),
        compile=tuple(modes),
        tags=["t"],
    )
    cases = expand({("a", "b"): group}, suite="s", check=True)
    runtimes = [(EAGER, None), *([(JIT, None)] if torchscript else []), *((COMPILE, mode) for mode in group.compile)]
    passes = [FORWARD, BACKWARD] if autograd else [FORWARD]
    expected = [
        (*variant[0], *variant[1:])
        for variant in itertools.product(runtimes, passes, languages, threads)
        if not (variant[0][0] == COMPILE and variant[2] == CPP)
    ]
    assert expected == [
        (labels.runtime, labels.compiling, labels.autograd, labels.language, case.args.num_threads)
        for case in cases
        for labels in (case.autolabels,)
    ]
    assert len({case.key for case in cases}) == len(cases)
    for case in cases:
        assert (case.label, case.tags, case.suite) == (("a", "b"), ("t",), "s")
        assert case.check is not None
        if case.args.language == PY:
            ast.parse(f"{case.args.setup}\n{case.args.stmt}\n{case.check.setup}\n{case.check.stmt}")


LEAF = TimerArgs("x")
KEYS = st.one_of(st.none(), st.text(max_size=2), st.tuples(st.text(max_size=1), st.text(max_size=1)), st.just(()))
TREES = st.recursive(st.just(LEAF), lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=8)
STRANGE = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(), st.just(LEAF)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(tuple),
        st.dictionaries(st.one_of(KEYS, st.integers(), st.tuples(st.integers())), inner, max_size=3),
    ),
)


def test_labels_of_all_levels_are_one_tuple_in_the_order_of_the_definition() -> None:
    group = GroupedStmts("x")
    flat = flatten({"b": {None: LEAF, ("c", "d"): {(): group}}, ("a",): LEAF, "empty": {}})
    assert list(flat.items()) == [(("b",), LEAF), (("b", "c", "d"), group), (("a",), LEAF)]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ([LEAF], "A definition is a dictionary of labels and benchmarks, not <class 'list'>."),
        ({"a": {None: LEAF}, ("a",): LEAF}, "duplicate key: ('a',)"),
        ({"a": {"b": LEAF}, ("a", "b"): LEAF}, "duplicate key: ('a', 'b')"),
        ({3: LEAF}, "A label is a text, a tuple of texts, or None, not 3."),
        ({("a", 3): LEAF}, "A label is a text, a tuple of texts, or None, not ('a', 3)."),
        ({("a", None): LEAF}, "A label is a text, a tuple of texts, or None, not ('a', None)."),
        ({"a": {"b": "x"}}, "What stands at a / b is <class 'str'>, not TimerArgs, "),
        ({"a": (LEAF,)}, "A comma behind a group makes a tuple of it."),
        ({None: None}, "What stands at the top is <class 'NoneType'>"),
    ],
)
def test_what_is_no_definition_is_told_with_its_label(schema: Any, message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        flatten(schema)
    assert message in str(caught.value)


@given(st.dictionaries(KEYS, TREES, max_size=4))
def test_flattening_a_second_time_changes_nothing(schema: dict[Any, Any]) -> None:
    try:
        flat = flatten(schema)
    except DefinitionError as error:
        if "duplicate key" not in str(error):
            raise
        return
    assert list(flatten(flat).items()) == list(flat.items())


@given(STRANGE)
def test_anything_is_a_definition_or_a_definition_error(schema: Any) -> None:
    try:
        flat = flatten(schema)
    except DefinitionError:
        return
    assert all(value is LEAF for value in flat.values())
