"""Groups: one definition of related benchmarks, and what is derived from it: models, calls, what to compare.

What they expand to is decided in `expand`.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import textwrap
from collections.abc import Iterable, Sequence

from torchmark.define.options import (
    BrokenText,
    Compile,
    GroupedSetup,
    Threads,
    breakable,
    check_flag,
    check_line,
    check_python,
    check_setup,
    check_tags,
    check_threads,
    choose_modes,
    dedent,
    dedent_stmt,
    find_unassigned,
)
from torchmark.define.signature import LanguagePair, Signature, pair_up, parse_block, parse_signature
from torchmark.errors import DefinitionError
from torchmark.model.plan import CompileMode, RuntimeMode
from torchmark.model.task import Language, format_fields

# How the model is called in what is generated.
MODELS = {RuntimeMode.EAGER: "model", RuntimeMode.JIT: "jit_model", RuntimeMode.COMPILE: "compiled_model"}
# Several outputs of a TorchScript model are one value in C++.
OUTPUTS = "torchmark_outputs"

# Variables that only generated code makes.
GENERATED_NAMES = frozenset((*MODELS.values(), OUTPUTS, "fpath", "ivalue_inputs"))


@dataclasses.dataclass(frozen=True, repr=False)
class GroupedBenchmark:
    """Related benchmarks: the same computation in one or two languages, and what else to make of it.

    `GroupedStmts`, `GroupedModules` and `GroupedVariants` make them.
    """

    py_fwd_stmt: str | None
    """What eager Python runs; None if there is no Python."""
    cpp_fwd_stmt: str | None
    py_model_setup: str | None
    cpp_model_setup: str | None
    inferred_model_setup: bool
    """Whether the model was derived from the statement."""
    setup: GroupedSetup
    signature_args: tuple[str, ...] | None
    signature_output: str | None
    """The output, or several of them as Python writes a tuple; None if there is none."""
    torchscript: bool
    autograd: bool
    num_threads: tuple[int, ...]
    compile: tuple[CompileMode, ...] = ()
    check: bool | None = None
    """Whether the variants must compute the same; None leaves it to the suite."""
    tags: tuple[str, ...] = ()
    compared: Compared | None = None
    """How statements without a signature that names an output are compared."""

    def __repr__(self) -> str:
        return format_fields(self)

    def __post_init__(self) -> None:
        for name in ("torchscript", "autograd"):
            check_flag(name, getattr(self, name))
        check_flag("check", self.check, None)
        if self.autograd and self.signature_output is None:
            raise DefinitionError(
                "An output variable must be specified when `autograd=True`.",
                advice='Name it in the signature: signature="f(x) -> y".',
            )
        if self.autograd and len(self.outputs) > 1:
            text = f"Multiple return values are not currently allowed: `{self.signature_output}`, with `autograd=True`."
            raise DefinitionError(f"{text} A backward pass starts from one output.")
        for name in ("py_model_setup", "cpp_model_setup"):
            if (source := getattr(self, name)) is not None and "model" not in source:
                raise DefinitionError(
                    f"`{name}` appears to be missing `model` definition.",
                    advice="Assign the module to a variable of that name: model = torch.nn.ReLU().",
                )
        if self.py_fwd_stmt is None and self.cpp_fwd_stmt is None:
            raise DefinitionError(
                "There is nothing to measure, neither in Python nor in C++.", advice="Give a statement or a model."
            )
        if self.torchscript and self.py_model_setup is None:
            raise DefinitionError("`torchscript=True` needs a model in Python, from which TorchScript is made.")
        if self.compile and self.py_model_setup is None:
            raise DefinitionError("`compile` needs a model in Python: it is what torch.compile compiles.")
        self._check_names()
        # The statement first: a model that was derived from it has the same fault, in lines that nobody wrote.
        for name, code in (
            ("py_setup", self.setup.py_setup),
            ("py_stmt", self.py_fwd_stmt),
            ("py_model_setup", self.py_model_setup),
        ):
            check_python(name, code)
        self._check_outputs()

    def _check_outputs(self) -> None:
        """What the signature names as an output has to come from somewhere."""
        stmt, setup = self.py_fwd_stmt, self.setup.py_setup or ""
        if stmt is None:
            return
        wanted = [name for name in self.outputs if name not in (self.signature_args or ())]
        for name in find_unassigned(wanted, stmt, setup):
            raise DefinitionError(
                f"The signature has the output `{name}`, and nothing assigns it in `py_stmt`.",
                text=stmt,
                position=0,
                advice=f"Assign `{name}` there, or name another output in the signature.",
            )

    def _check_names(self) -> None:
        """What is generated around a model must not hide an argument or an output."""
        if self.py_model_setup is None and self.cpp_model_setup is None:
            return
        for name in (*(self.signature_args or ()), *self.outputs):
            if name in GENERATED_NAMES:
                raise DefinitionError(f"`{name}` is a name that is generated: use another one in the signature.")
            if self.cpp_model_setup is not None and name in self.outputs and name in (self.signature_args or ()):
                raise DefinitionError(
                    f"`{name}` goes in and comes out: `auto {name} = model->forward({name})` is no C++."
                )

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs, one by one."""
        return tuple(self.signature_output.split(", ")) if self.signature_output else ()

    @property
    def languages(self) -> tuple[Language, ...]:
        """Those that there is something to measure in."""
        stmts = ((Language.PYTHON, self.py_fwd_stmt), (Language.CPP, self.cpp_fwd_stmt))
        return tuple(language for language, stmt in stmts if stmt is not None)

    @classmethod
    @breakable
    def init_from_stmts(
        cls,
        py_stmt: str | None = None,
        cpp_stmt: str | None = None,
        setup: GroupedSetup = GroupedSetup(),  # noqa: B008  a frozen value
        signature: str | None = None,
        torchscript: bool = False,
        autograd: bool = False,
        num_threads: Threads = 1,
        *,
        compile: Compile = False,
        check: bool | None = None,
        tags: Iterable[str] = (),
    ) -> GroupedBenchmark:
        """Benchmark a statement, in Python, in C++ or in both.

        With a signature, such as `f(x, w) -> y`, a model is derived from the Python statement for `torchscript` and
        `compile`, and the output is known for `autograd`. Every number of `num_threads` is measured.

        >>> group = GroupedStmts("y = x * w", "auto y = x * w;", signature="f(x, w) -> y", torchscript=True)
        >>> print(group.py_model_setup, end="")
        def model(x, w):
            y = x * w
            return y
        """
        py_stmt, cpp_stmt = dedent_stmt(py_stmt, "py_stmt"), dedent_stmt(cpp_stmt, "cpp_stmt")
        parsed = None if signature is None else parse_signature(signature)
        modes = choose_modes(compile)
        derived = _derive(py_stmt, parsed) if torchscript or modes else None
        return cls(
            py_fwd_stmt=py_stmt,
            cpp_fwd_stmt=cpp_stmt,
            py_model_setup=derived,
            cpp_model_setup=None,
            inferred_model_setup=True,
            setup=check_setup(setup),
            signature_args=parsed.args if parsed else None,
            signature_output=_join_outputs(parsed),
            torchscript=torchscript,
            autograd=autograd,
            num_threads=check_threads(num_threads),
            compile=modes,
            check=check,
            tags=check_tags(tags),
            compared=None
            if parsed and parsed.outputs
            else compare_stmts(LanguagePair(py_stmt, cpp_stmt), check_setup(setup), has_model=derived is not None),
        )

    @classmethod
    @breakable
    def init_from_model(
        cls,
        py_model_setup: str | None = None,
        cpp_model_setup: str | None = None,
        setup: GroupedSetup = GroupedSetup(),  # noqa: B008  a frozen value
        signature: str | None = None,
        torchscript: bool = False,
        autograd: bool = False,
        num_threads: Threads = 1,
        *,
        compile: Compile = False,
        check: bool | None = None,
        tags: Iterable[str] = (),
    ) -> GroupedBenchmark:
        """Benchmark the call of a module that each language's setup makes and calls `model`.

        >>> GroupedModules("model = torch.nn.ReLU()", signature="f(x) -> y").py_fwd_stmt
        'y = model(x)'
        """
        py_model_setup = None if py_model_setup is None else dedent(py_model_setup, "py_model_setup")
        cpp_model_setup = None if cpp_model_setup is None else dedent(cpp_model_setup, "cpp_model_setup")
        if signature is None:
            raise DefinitionError(
                "signature is needed when initializing from model definitions.",
                advice=SIGN,
            )
        parsed = parse_signature(signature)
        return cls(
            py_fwd_stmt=_call(py_model_setup, Language.PYTHON, parsed),
            cpp_fwd_stmt=_call(cpp_model_setup, Language.CPP, parsed),
            py_model_setup=py_model_setup,
            cpp_model_setup=cpp_model_setup,
            inferred_model_setup=False,
            setup=check_setup(setup),
            signature_args=parsed.args,
            signature_output=_join_outputs(parsed),
            torchscript=torchscript,
            autograd=autograd,
            num_threads=check_threads(num_threads),
            compile=choose_modes(compile),
            check=check,
            tags=check_tags(tags),
        )

    @classmethod
    @breakable
    def init_from_variants(
        cls,
        py_block: str = "",
        cpp_block: str = "",
        num_threads: Threads = 1,
        *,
        check: bool | None = None,
        tags: Iterable[str] = (),
    ) -> dict[tuple[str, ...] | str | None, GroupedBenchmark]:
        """Benchmark every line of a block, by the labels in it; `parse_stmts` gives both blocks at once.

        >>> list(GroupedVariants("# @add\\nx += 1\\nx + 1\\n# @zero\\nx.zero_()"))
        [('add', 'Case:  0'), ('add', 'Case:  1'), ('zero',)]
        """
        for block in (py_block, cpp_block):
            if isinstance(block, BrokenText):
                raise block.error
        python, cpp = parse_block(py_block, Language.PYTHON), parse_block(cpp_block, Language.CPP)
        setup = GroupedSetup(python.setup, cpp.setup, cpp.global_setup)
        check_python("py_block", setup.py_setup)
        threads, tags = check_threads(num_threads), check_tags(tags)
        pairs = pair_up(python, cpp)
        if not pairs:
            raise DefinitionError(
                "There is nothing to measure in this block of variants.",
                advice="Every line below a label other than `setup` is a benchmark.",
            )
        return {label: cls._from_pair(pair, setup, threads, check, tags) for label, pair in pairs.items()}

    @classmethod
    @breakable
    def _from_pair(
        cls,
        pair: LanguagePair,
        setup: GroupedSetup,
        threads: tuple[int, ...],
        check: bool | None,
        tags: tuple[str, ...],
    ) -> GroupedBenchmark:
        check_line(pair.python)
        return cls(
            py_fwd_stmt=pair.python,
            cpp_fwd_stmt=pair.cpp,
            py_model_setup=None,
            cpp_model_setup=None,
            inferred_model_setup=False,
            setup=setup,
            signature_args=None,
            signature_output=None,
            torchscript=False,
            autograd=False,
            num_threads=threads,
            check=check,
            tags=tags,
            compared=compare_stmts(pair, setup),
        )


GroupedStmts = GroupedBenchmark.init_from_stmts
GroupedModules = GroupedBenchmark.init_from_model
GroupedVariants = GroupedBenchmark.init_from_variants

SIGN = 'Say what goes in and what comes out: signature="f(x) -> y".'


def _derive(py_stmt: str | None, signature: Signature | None) -> str:
    if py_stmt is None:
        raise DefinitionError(
            "`py_stmt` must be defined in order to derive a model.",
            advice="Give one, or leave out `torchscript` and `compile`.",
        )
    if signature is None:
        raise DefinitionError("signature is needed in order to derive a model.", advice=SIGN)
    return derive_model(py_stmt, *signature)


def _call(model_setup: str | None, language: Language, signature: Signature) -> str | None:
    return None if model_setup is None else call_model(RuntimeMode.EAGER, language, *signature)


def _join_outputs(signature: Signature | None) -> str | None:
    return ", ".join(signature.outputs) or None if signature else None


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
        return f"{', '.join(outputs)}{' = ' if outputs else ''}{model}({', '.join(args)})"
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
    targets = [target for node in ast.parse(code).body if isinstance(node, ast.Assign) for target in node.targets]
    return list(dict.fromkeys(part.id for one in targets for part in ast.walk(one) if isinstance(part, ast.Name)))


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
