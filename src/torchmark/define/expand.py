"""From groups to cases: every variant that a definition asks for, in a fixed order, and its generated text."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from torchmark.define.groups import MODELS, OUTPUTS, Compared, GroupedBenchmark, call_model, indent
from torchmark.define.options import Broken, check_python, dedent, report
from torchmark.errors import DefinitionError
from torchmark.model.plan import (
    Artefact,
    AutogradMode,
    AutoLabels,
    Case,
    Check,
    CompileMode,
    CompileParts,
    Label,
    RuntimeMode,
    TimerArgs,
)
from torchmark.model.task import Language

Benchmark: TypeAlias = TimerArgs | GroupedBenchmark
FlatIntermediateDefinition = dict[Label, Benchmark]


def flatten(schema: Mapping[Any, Any]) -> FlatIntermediateDefinition:
    """One dictionary instead of many: a text adds a part to the label, a tuple several, None adds nothing.

    >>> list(flatten({"a": {None: TimerArgs("1"), ("b", "c"): TimerArgs("2")}}))
    [('a',), ('a', 'b', 'c')]
    """
    if not isinstance(schema, Mapping):
        raise DefinitionError(f"A definition is a dictionary of labels and benchmarks, not {type(schema)}.")
    flat: FlatIntermediateDefinition = {}
    _flatten((), schema, flat)
    return flat


def _flatten(prefix: Label, schema: Mapping[Any, Any], flat: FlatIntermediateDefinition) -> None:
    for key, value in schema.items():
        parts = () if key is None else (key,) if isinstance(key, str) else key
        if not isinstance(parts, tuple) or not all(isinstance(part, str) for part in parts):
            report(prefix, DefinitionError(f"A label is a text, a tuple of texts, or None, not {key!r}."))
            continue
        label = (*prefix, *parts)
        if isinstance(value, Mapping):
            _flatten(label, value, flat)
        elif not isinstance(value, (TimerArgs, GroupedBenchmark, Broken)):
            report(label, DefinitionError(_explain(label, value)))
        elif label in flat:
            report(label, DefinitionError(f"duplicate key: {label}", advice="Give one of the two another label."))
        else:
            flat[label] = value  # type: ignore[assignment]  # what is broken is told apart where faults are gathered


def _explain(label: Label, value: object) -> str:
    known = "TimerArgs, GroupedStmts, GroupedModules, GroupedVariants, or a dictionary of them"
    hint = " A comma behind a group makes a tuple of it." if isinstance(value, tuple) else ""
    return f"What stands at {' / '.join(label) or 'the top'} is {type(value)}, not {known}.{hint}"


def expand(benchmarks: Mapping[Label, Benchmark], *, suite: str = "", check: bool = False) -> tuple[Case, ...]:
    """All cases of a flattened definition; `check` is for groups that do not say whether results are compared."""
    cases: list[Case] = []
    for label, benchmark in benchmarks.items():
        if isinstance(benchmark, TimerArgs):
            cases.append(_explicit(label, benchmark, suite))
        elif isinstance(benchmark, GroupedBenchmark):
            cases += _expand_group(label, benchmark, suite, check if benchmark.check is None else benchmark.check)
        else:
            raise DefinitionError(f"What stands at {label} is {type(benchmark)}, not a benchmark.")
    return tuple(cases)


def _explicit(label: Label, args: TimerArgs, suite: str) -> Case:
    for name in ("stmt", "setup", "global_setup"):
        # Timers take the indentation away.
        text = dedent(getattr(args, name), f"TimerArgs.{name}")
        if args.language == Language.PYTHON:
            check_python(f"TimerArgs.{name}", text)
    if args.language == Language.PYTHON and args.global_setup:
        raise DefinitionError("Python has no `global_setup`: only C++ has a file scope. Move it to `setup`.")
    if not isinstance(args.language, Language):
        raise DefinitionError(f"`language` of TimerArgs is Language.PYTHON or Language.CPP, not {args.language!r}.")
    if type(args.num_threads) is not int or args.num_threads < 1:
        raise DefinitionError(f"`num_threads` of TimerArgs is a whole number from 1 on, not {args.num_threads!r}.")
    return Case(label, AutoLabels(RuntimeMode.EXPLICIT, AutogradMode.EXPLICIT, args.language), args, suite=suite)


@dataclasses.dataclass(frozen=True)
class _Variant:
    """A group, and which of its variants is wanted."""

    group: GroupedBenchmark
    runtime: RuntimeMode
    autograd: AutogradMode
    language: Language
    mode: CompileMode | None
    artefact: Artefact | None

    @property
    def labels(self) -> AutoLabels:
        return AutoLabels(self.runtime, self.autograd, self.language, self.mode)

    @property
    def call(self) -> str:
        group = self.group
        if self.runtime == RuntimeMode.EAGER:
            stmt = group.py_fwd_stmt if self.language == Language.PYTHON else group.cpp_fwd_stmt
            assert stmt is not None
            return stmt
        assert group.signature_args is not None
        return call_model(self.runtime, self.language, group.signature_args, group.outputs)

    @property
    def stmt(self) -> str:
        if self.autograd == AutogradMode.FORWARD:
            return self.call
        assert self.group.signature_output is not None
        return add_backward(self.call, self.runtime, self.language, self.group.signature_output)

    @property
    def model_setup(self) -> str:
        """What makes the inputs and the model."""
        group = self.group
        if self.language == Language.PYTHON:
            return f"{group.setup.py_setup}\n{group.py_model_setup or ''}"
        return f"{group.setup.cpp_setup}\n{group.cpp_model_setup or ''}"

    @property
    def cold_setup(self) -> str:
        """The setup without warming up."""
        if self.runtime == RuntimeMode.JIT:
            assert self.artefact is not None
            setup = self.group.setup
            inputs = setup.py_setup if self.language == Language.PYTHON else setup.cpp_setup
            return load_script(inputs, self.artefact.file, self.language)
        if self.mode is not None:
            return compile_model(self.model_setup, self.mode)
        return self.model_setup

    @property
    def setup(self) -> str:
        if self.runtime == RuntimeMode.EAGER:
            return self.cold_setup
        return warm_up(self.cold_setup, self.stmt, self.runtime, self.language)

    @property
    def global_setup(self) -> str:
        if self.language == Language.PYTHON:
            return ""
        includes = SCRIPT_INCLUDES if self.runtime == RuntimeMode.JIT else ""
        return "\n".join(filter(None, (includes, self.group.setup.global_setup)))

    @property
    def parts(self) -> CompileParts | None:
        return None if self.mode is None else CompileParts(self.model_setup, self.call, self.mode)

    @property
    def check(self) -> Check | None:
        compared = self.group.compared
        if compared is not None:
            return self._compare(compared)
        args = self.group.signature_args or ()
        is_module = not self.group.inferred_model_setup
        found = name_results(self.runtime, self.autograd, self.language, args, self.group.outputs, is_module=is_module)
        return Check(give_results(self.stmt, found, self.language), self.cold_setup) if found else None

    def _compare(self, compared: Compared) -> Check | None:
        python = self.language == Language.PYTHON
        results = [(name, one if python else two) for name, one, two in compared.results]
        stmt = compared.stmts.python if python else compared.stmts.cpp
        if self.runtime != RuntimeMode.EAGER:
            stmt = self.stmt
        assert stmt is not None
        return Check(give_results(stmt, results, self.language), self.cold_setup) if results else None


def _expand_group(label: Label, group: GroupedBenchmark, suite: str, check: bool) -> Iterator[Case]:
    """By runtime, then by autograd, then by language, then by threads."""
    artefact = _make_artefact(label, group) if group.torchscript else None
    autograd_modes = (AutogradMode.FORWARD, *([AutogradMode.FORWARD_BACKWARD] if group.autograd else []))
    for (runtime, mode), autograd, language in itertools.product(_runtimes(group), autograd_modes, group.languages):
        if runtime == RuntimeMode.COMPILE and language != Language.PYTHON:
            continue
        script = artefact if runtime == RuntimeMode.JIT else None
        variant = _Variant(
            group=group, runtime=runtime, autograd=autograd, language=language, mode=mode, artefact=script
        )
        args = TimerArgs(variant.stmt, variant.setup, variant.global_setup, language=language)
        for threads in group.num_threads:
            yield Case(
                label,
                variant.labels,
                dataclasses.replace(args, num_threads=threads),
                tags=group.tags,
                artefact=script,
                parts=variant.parts,
                check=variant.check if check else None,
                suite=suite,
            )


def _runtimes(group: GroupedBenchmark) -> list[tuple[RuntimeMode, CompileMode | None]]:
    script = [RuntimeMode.JIT] if group.torchscript else []
    plain: list[tuple[RuntimeMode, CompileMode | None]] = [(runtime, None) for runtime in (RuntimeMode.EAGER, *script)]
    return [*plain, *((RuntimeMode.COMPILE, mode) for mode in group.compile)]


def _make_artefact(label: Label, group: GroupedBenchmark) -> Artefact:
    """Named by the label, and by a digest of all that the model depends on: names of different models differ."""
    source = f"{group.setup.py_setup}\n{group.py_model_setup}\njit_model = torch.jit.script(model)"
    name = re.sub(r"[^a-z0-9_]", "_", "_".join(label).lower())
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    return Artefact(f"torchscript_{name[:80]}_{digest}.pt", source)


WARM_UP_RUNS = 3
# What loading a TorchScript model needs in C++.
SCRIPT_INCLUDES = "\n#include <string>\n#include <vector>\n#include <torch/script.h>\n"


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
