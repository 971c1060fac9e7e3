from __future__ import annotations

import ast

import pytest

from torchmark.define.expand import add_backward, load_script, name_results, warm_up
from torchmark.define.groups import call_model, derive_model, indent
from torchmark.model.plan import AutogradMode, RuntimeMode
from torchmark.model.task import Language

PY, CPP = Language.PYTHON, Language.CPP
EAGER, JIT, COMPILE = RuntimeMode.EAGER, RuntimeMode.JIT, RuntimeMode.COMPILE


@pytest.mark.parametrize(
    ("stmt", "args", "outputs", "model"),
    [
        ("y = x", ["x"], ["y"], "def model(x):\n    y = x\n    return y\n"),
        ("\ny = x\nz = y\n", ["x"], ["y", "z"], "def model(x):\n\n    y = x\n    z = y\n\n    return y, z\n"),
        ("x.zero_()", ["x"], [], "def model(x):\n    x.zero_()\n    return None\n"),
        ("y = 1", [], ["y"], "def model():\n    y = 1\n    return y\n"),
        ("", [], [], "def model():\n\n    return None\n"),
    ],
)
def test_a_model_is_derived_from_its_statement(stmt: str, args: list[str], outputs: list[str], model: str) -> None:
    assert derive_model(stmt, args, outputs) == model
    ast.parse(model)


@pytest.mark.parametrize(
    ("runtime", "language", "args", "outputs", "call"),
    [
        (EAGER, PY, ["x", "w"], ["y"], "y = model(x, w)"),
        (EAGER, PY, [], [], "model()"),
        (EAGER, PY, ["x"], ["a", "b"], "a, b = model(x)"),
        (COMPILE, PY, ["x"], ["y"], "y = compiled_model(x)"),
        (EAGER, CPP, ["x"], [], "model->forward(x);"),
        (EAGER, CPP, ["x"], ["a", "b"], "auto [a, b] = model->forward(x);"),
        (
            JIT,
            CPP,
            ["x"],
            ["a", "b"],
            "std::vector<torch::jit::IValue> ivalue_inputs({\n    torch::jit::IValue(x)\n});\n"
            "auto torchmark_outputs = jit_model.forward(ivalue_inputs);\n",
        ),
        (JIT, CPP, [], [], "std::vector<torch::jit::IValue> ivalue_inputs;\njit_model.forward(ivalue_inputs);\n"),
    ],
)
def test_a_model_is_called(
    runtime: RuntimeMode, language: Language, args: list[str], outputs: list[str], call: str
) -> None:
    assert call_model(runtime, language, args, outputs) == call


@pytest.mark.parametrize(
    ("runtime", "language", "expected"),
    [(EAGER, PY, "y.backward()"), (JIT, PY, "y.backward()"), (EAGER, CPP, "y.backward();")],
)
def test_a_backward_pass_starts_from_the_output(runtime: RuntimeMode, language: Language, expected: str) -> None:
    assert add_backward("f  // call", runtime, language, "y") == f"f  // call\n{expected}"


def test_an_index_of_the_statement_is_not_hidden_while_warming_up() -> None:
    assert "for (int i = 0; i < 3; i++) {\n    f(x);\n}" in warm_up("", "f(x);", JIT, CPP)
    assert "for (int torchmark_index = 0;" in warm_up("", "f(x, i);", JIT, CPP)
    assert "for _ in range(3):\n    f(x)" in warm_up("", "f(x)", JIT, PY)
    assert "for torchmark_index in range(3):" in warm_up("", "f(_)", JIT, PY)


def test_a_model_is_loaded_behind_the_setup() -> None:
    assert load_script("x = 1", "a.pt", PY) == 'x = 1\n\njit_model = torch.jit.load("a.pt")'
    assert load_script("auto x = 1; // one", "a.pt", CPP).startswith("auto x = 1; // one\n\nconst std::string fpath")


@pytest.mark.parametrize(
    ("code", "language", "expected"),
    [
        ("a\n\nb", PY, "    a\n\n    b"),
        ('y = """a\nb"""\nz', PY, '    y = """a\nb"""\n    z'),
        ('y = f"""{a}\nb"""\nz', PY, '    y = f"""{a}\nb"""\n    z'),
        ("f(\n  a)", PY, "    f(\n      a)"),
        ("a;\nb;", CPP, "    a;\n    b;"),
        ('a(R"(\nb)");', CPP, 'a(R"(\nb)");'),
    ],
)
def test_indenting_leaves_strings_alone(code: str, language: Language, expected: str) -> None:
    assert indent(code, language) == expected


@pytest.mark.parametrize(
    ("runtime", "autograd", "language", "outputs", "expected"),
    [
        (EAGER, AutogradMode.FORWARD, PY, [], ()),
        (EAGER, AutogradMode.FORWARD, PY, ["y"], (("y", "y"),)),
        (EAGER, AutogradMode.FORWARD, PY, ["a", "b"], (("a, b", "(a, b)"),)),
        (EAGER, AutogradMode.FORWARD, CPP, ["a", "b"], (("a, b", "std::tie(a, b)"),)),
        (JIT, AutogradMode.FORWARD, CPP, ["a", "b"], (("a, b", "torchmark_outputs"),)),
        (JIT, AutogradMode.FORWARD_BACKWARD, PY, ["y"], (("y", "y"), ("x.grad", 'getattr(x, "grad", None)'))),
    ],
)
def test_results_have_the_same_names_in_all_variants(
    runtime: RuntimeMode,
    autograd: AutogradMode,
    language: Language,
    outputs: list[str],
    expected: tuple[tuple[str, str], ...],
) -> None:
    assert name_results(runtime, autograd, language, ["x"], outputs) == expected
