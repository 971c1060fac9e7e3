"""Generated texts: calls of models, backward passes, and what to compare between the variants of a group."""

from __future__ import annotations

import ast
import dataclasses
import re
import textwrap
from collections.abc import Sequence

from torchmark.define.options import GroupedSetup, check_python
from torchmark.define.signature import LanguagePair
from torchmark.model.case import AutogradMode, CompileMode, RuntimeMode
from torchmark.model.task import Language

# How the model is called in what is generated.
MODELS = {RuntimeMode.EAGER: "model", RuntimeMode.JIT: "jit_model", RuntimeMode.COMPILE: "compiled_model"}
# Several outputs of a TorchScript model are one value in C++.
OUTPUTS = "torchmark_outputs"
WARM_UP_RUNS = 3
# Variables that only generated code makes.
GENERATED_NAMES = frozenset((*MODELS.values(), OUTPUTS, "fpath", "ivalue_inputs"))
# What loading a TorchScript model needs in C++.
SCRIPT_INCLUDES = "\n#include <string>\n#include <vector>\n#include <torch/script.h>\n"


def derive_model(stmt: str, args: Sequence[str], outputs: Sequence[str]) -> str:
    """The function that a statement and its signature make.

    >>> print(derive_model("y = x * w", ["x", "w"], ["y"]), end="")
    def model(x, w):
        y = x * w
        return y
    """
    body = indent(stmt, Language.PYTHON)
    return f"def model({', '.join(args)}):\n{body}\n    return {', '.join(outputs) or 'None'}\n"


def indent(code: str, language: Language) -> str:
    """Code four columns further to the right, but for what stands inside a string.

    >>> indent("f(\'\'\'a\\nb\'\'\')\\ng()", Language.PYTHON)
    "    f(\'\'\'a\\nb\'\'\')\\n    g()"
    """
    if language == Language.CPP:
        # A raw string may have lines, too. Nothing in C++ needs to be indented.
        return code if 'R"' in code else textwrap.indent(code, "    ")
    inside = _lines_inside_strings(code)
    lines = code.split("\n")
    return "\n".join(line if n in inside or not line.strip() else f"    {line}" for n, line in enumerate(lines, 1))


def _lines_inside_strings(code: str) -> set[int]:
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()  # told where the code itself is checked
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno is not None
        for line in range(node.lineno + 1, node.end_lineno + 1)
    }


def call_model(runtime: RuntimeMode, language: Language, args: Sequence[str], outputs: Sequence[str]) -> str:
    """The statement that calls a model.

    >>> call_model(RuntimeMode.EAGER, Language.CPP, ["x", "w"], ["y"])
    'auto y = model->forward(x, w);'
    >>> call_model(RuntimeMode.JIT, Language.PYTHON, ["x", "w"], ["y"])
    'y = jit_model(x, w)'
    """
    model = MODELS[runtime]
    if language == Language.PYTHON:
        prefix = f"{', '.join(outputs)} = " if outputs else ""
        return f"{prefix}{model}({', '.join(args)})"
    if runtime == RuntimeMode.EAGER:
        several = f"[{', '.join(outputs)}]"
        return f"{_declare(outputs, several)}{model}->forward({', '.join(args)});"
    inputs = "std::vector<torch::jit::IValue> ivalue_inputs"
    if args:
        values = ", ".join(f"torch::jit::IValue({arg})" for arg in args)
        inputs += f"({{\n    {values}\n}})"
    return f"{inputs};\n{_declare(outputs, OUTPUTS)}{model}.forward(ivalue_inputs);\n"


def _declare(outputs: Sequence[str], several: str) -> str:
    if not outputs:
        return ""
    return f"auto {outputs[0] if len(outputs) == 1 else several} = "


def add_backward(stmt: str, runtime: RuntimeMode, language: Language, output: str) -> str:
    """The statement, followed by a backward pass from its output.

    >>> print(add_backward("auto y = jit_model.forward(inputs);", RuntimeMode.JIT, Language.CPP, "y"))
    auto y = jit_model.forward(inputs);
    y.toTensor().backward();
    """
    if language == Language.PYTHON:
        return f"{stmt}\n{output}.backward()"
    return f"{stmt}\n{output}{'.toTensor()' if runtime == RuntimeMode.JIT else ''}.backward();"


def load_script(setup: str, file: str, language: Language) -> str:
    """A setup that goes on to load a TorchScript model from a file."""
    if language == Language.PYTHON:
        return f'{setup}\n\njit_model = torch.jit.load("{file}")'
    return f'{setup}\n\nconst std::string fpath = "{file}";\nauto jit_model = torch::jit::load(fpath);'


def compile_model(setup: str, mode: CompileMode) -> str:
    """A setup that goes on to compile its model, or rather to say that it is to be compiled when it is called.

    >>> print(compile_model("model = torch.nn.ReLU()", CompileMode("aot_eager")))
    model = torch.nn.ReLU()
    compiled_model = torch.compile(model, backend="aot_eager")
    """
    chosen = f', mode="{mode.mode}"' if mode.mode is not None else ""
    return f'{setup}\ncompiled_model = torch.compile(model, backend="{mode.backend}"{chosen})'


def warm_up(setup: str, stmt: str, runtime: RuntimeMode, language: Language) -> str:
    """A setup that goes on to run the statement a few times: a model is optimised in its first calls."""
    body = indent(stmt, language)
    usual = "_" if language == Language.PYTHON else "i"
    # A signature may well have an index that is called i.
    index = usual if re.search(rf"\b{usual}\b", stmt) is None else "torchmark_index"
    if language == Language.PYTHON:
        return f"{setup}\n\n# Warmup `{MODELS[runtime]}`\nfor {index} in range({WARM_UP_RUNS}):\n{body}\n"
    loop = f"for (int {index} = 0; {index} < {WARM_UP_RUNS}; {index}++) {{\n{body}\n}}\n"
    return f"{setup}\n\n// Warmup `{MODELS[runtime]}`\n{loop}"


def give_results(stmt: str, results: Sequence[tuple[str, str]], language: Language) -> str:
    """The statement, followed by handing over its results.

    >>> print(give_results("y = x + 1", [("y", "y")], Language.PYTHON))
    y = x + 1
    torchmark_give("y", y)
    """
    give, end = ("torchmark_give", "") if language == Language.PYTHON else ("torchmark::give", ";")
    return "\n".join([stmt, *(f'{give}("{name}", {expression}){end}' for name, expression in results)])


def name_results(
    runtime: RuntimeMode,
    autograd: AutogradMode,
    language: Language,
    args: Sequence[str],
    outputs: Sequence[str],
    *,
    is_module: bool = False,
) -> tuple[tuple[str, str], ...]:
    """What a variant computes, by name: its outputs, and the gradients of arguments and parameters if there are some.

    >>> name_results(RuntimeMode.EAGER, AutogradMode.FORWARD_BACKWARD, Language.CPP, ["w"], ["y"])
    (('y', 'y'), ('w.grad', 'torchmark::grad(w)'))
    """
    cpp = language == Language.CPP
    if not outputs:
        return ()
    if len(outputs) == 1:
        value = outputs[0]
    elif cpp:
        value = OUTPUTS if runtime == RuntimeMode.JIT else f"std::tie({', '.join(outputs)})"
    else:
        value = f"({', '.join(outputs)})"
    results = [(", ".join(outputs), value)]
    if autograd == AutogradMode.FORWARD_BACKWARD:
        # An argument need not be a tensor.
        gradient = "torchmark::grad({})" if cpp else 'getattr({}, "grad", None)'
        results += [(f"{arg}.grad", gradient.format(arg)) for arg in args]
        if is_module:
            model = MODELS[runtime]
            python = f'[one.grad for one in getattr({model}, "parameters", list)()]'
            results.append(("the parameters' gradients", f"torchmark::grads({model})" if cpp else python))
    return tuple(results)


# The value of a statement that is an expression.
VALUE = "torchmark_value"


@dataclasses.dataclass(frozen=True)
class Compared:
    """Expressions that must have the same value in both languages, and the statements to run before."""

    stmts: LanguagePair
    """The statements, as they are run for comparing."""
    results: tuple[tuple[str, str, str], ...]
    """Names, and the expressions in Python and in C++."""


def compare_stmts(pair: LanguagePair, setup: GroupedSetup, *, has_model: bool = False) -> Compared | None:
    """What must be the same after both: the variables that both have, and the value if they are expressions.

    A statement that has become a model changes what it is given, and leaves nothing else.
    """
    if pair.python is None or (pair.cpp is None and not has_model):
        return None
    # Told with its name when the group is made.
    check_python("py_setup", setup.py_setup)
    check_python("py_stmt", pair.python)
    if pair.cpp is None:
        names = tuple(_assigned_names(setup.py_setup))
    else:
        names = shared_names(setup.py_setup, setup.cpp_setup)
        names += () if has_model else shared_names(pair.python, pair.cpp)
    results = [(name, name, name) for name in dict.fromkeys(names)]
    expressions = None if has_model else as_expressions(pair)
    if expressions is None:
        return Compared(pair, tuple(results)) if results else None
    stmts = LanguagePair(f"{VALUE} = ({expressions.python})", f"auto &&{VALUE} = ({expressions.cpp});")
    return Compared(stmts, (("the value", VALUE, VALUE), *results))


_DECLARATION = re.compile(r"^\s*(?:const\s+)?(?:auto|torch::Tensor|at::Tensor)\s+(\w+)\s*=", re.MULTILINE)
# How a C++ statement begins that is no expression.
_NO_EXPRESSION = re.compile(
    r"(?:const|auto|for|if|while|do|switch|using|return|torch::Tensor\s+\w|at::Tensor\s+\w)\b|[{#]"
)


def shared_names(python_setup: str, cpp_setup: str) -> tuple[str, ...]:
    """The variables that both setups make, in the order of the Python one.

    >>> shared_names("x = torch.ones(1); n = 2", "auto x = torch::ones(1);")
    ('x',)
    """
    declared = set(_DECLARATION.findall(cpp_setup.replace(";", ";\n")))
    return tuple(name for name in _assigned_names(python_setup) if name in declared)


def _assigned_names(code: str) -> list[str]:
    names: dict[str, None] = {}
    for node in ast.parse(code).body:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            names.update((part.id, None) for part in ast.walk(target) if isinstance(part, ast.Name))
    return list(names)


def as_expressions(pair: LanguagePair) -> LanguagePair | None:
    """Both statements as expressions, if that is what they are.

    >>> as_expressions(LanguagePair("x + y", "x + y;"))
    LanguagePair(python='x + y', cpp='x + y')
    >>> as_expressions(LanguagePair("z = x + y", "auto z = x + y;"))
    """
    if pair.python is None or pair.cpp is None:
        return None
    body = ast.parse(pair.python).body
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        return None
    cpp = re.sub(r"\s*//[^\n]*$", "", pair.cpp).strip()
    if not cpp.endswith(";") or ";" in cpp[:-1] or _NO_EXPRESSION.match(cpp):
        return None
    python = ast.get_source_segment(pair.python, body[0])
    assert python is not None
    return LanguagePair(python, cpp[:-1].strip())
