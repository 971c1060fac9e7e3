"""Where a difference in instructions comes from: the same function in two profiles, and the stages of a call."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from torchmark.model.costs import INSTRUCTIONS, Function, Tally
from torchmark.model.judgement import Explanation, FunctionChange, StageChange

_NOISE = re.compile(
    r"'\d+$"  # what Callgrind writes behind a function that was entered again through itself
    r"|@@?[A-Za-z_][\w.]*$"  # a symbol's version
    r"|\s\[clone [^\[\]]*\]"  # which copy of a function a compiler made, in C++ and in C
    r"|\.(?:part|isra|constprop|cold|lto_priv|localalias|llvm)(?:\.\d+)*(?=$|\.)"
    r"|\[abi:\w+\]"
    r"|(?<=\))(?: (?:const|volatile|noexcept)\b)*(?: &&?(?=$|\W))?"  # what qualifies a list of parameters
)
# Inline namespaces of C++ libraries, and classes that torch had of its own before C++17.
_ALIASES = (
    (re.compile(r"\bstd::(?:__cxx11|__1)::"), "std::"),
    (re.compile(r"\bc10::(?=(?:optional|variant)\b)"), "std::"),
)
# Brackets in names of operators are none.
_TOKEN = re.compile(
    r"\boperator(?:\(\)|<=>|<<=?|>>=?|->\*?|[<>]=?)(?: (?=<))?|\(anonymous namespace\)|->|\w+|.", re.DOTALL
)


@functools.lru_cache(maxsize=50_000)
def plain_name(name: str) -> str:
    """A function's name without parameters, return type, version, and notes of compiler and profiler.

    So overloads are one function: what takes another parameter in the next version is still the same to a reader.

    >>> plain_name("std::pair<int, int> at::sum<float>(at::Tensor const&)::{lambda(int)#1}::operator()(int) const")
    'at::sum<float>::{lambda#1}::operator()'
    >>> plain_name("unlink_chunk.constprop.0"), plain_name("pthread_mutex_lock@@GLIBC_2.2.5"), plain_name("f'2")
    ('unlink_chunk', 'pthread_mutex_lock', 'f')
    """
    text = _NOISE.sub("", name)
    for pattern, replacement in _ALIASES:
        text = pattern.sub(replacement, text)
    return _drop_types(text) or name


def _drop_types(text: str) -> str:
    """Leave out what is in parentheses, and all before a blank outside of brackets, unless that is an operator's."""
    kept: list[str] = []
    inside = depth = 0
    names_type = False
    for token in split_name(text):
        if inside or token == "(":
            inside += (token == "(") - (token == ")")
        elif token == " " and not depth and not names_type:
            names_type = kept[-1:] == ["operator"]
            kept = [*kept, token] if names_type else []
        else:
            if token in (">", ",") and kept[-1:] == [" "]:
                kept.pop()
            depth = max(depth + (token in ("<", "{")) - (token in (">", "}")), 0)
            kept.append(token)
    return "".join(kept)


def split_name(name: str) -> list[str]:
    """The words and signs of a name; the brackets among them are brackets, and not a part of an operator's name.

    >>> split_name("c10::operator<<<int>")
    ['c10', ':', ':', 'operator<<', '<', 'int', '>']
    """
    return _TOKEN.findall(name)


NAMELESS = "(no name)"
_ADDRESS = re.compile(r"(?:0x[0-9a-f]+|\?\?\?)?(?:'\d+)?$")
_PYTHON = re.compile(r"(?:lib)?python(?:[\d.]*\.)?\w*(?:\.so)?$")
# Code that is in no file was made while the program ran, by oneDNN or XNNPACK say.
GENERATED = "generated code"


def is_nameless(name: str) -> bool:
    """Whether there is no more than an address, as for a function whose symbol was stripped.

    >>> is_nameless("0x0000000000f288a0"), is_nameless("sgemm_")
    (True, False)
    """
    return _ADDRESS.match(name) is not None


def library(binary: str) -> str:
    """What a program or library is called, without its folder and its version.

    >>> library("/usr/lib/libtorch_cpu.so.1.13.0"), library("/usr/bin/python3.11"), library("???")
    ('libtorch_cpu.so', 'python', 'generated code')
    """
    if binary in ("", "???"):
        return GENERATED
    name = re.sub(r"\.so\.[\d.]+$", ".so", binary.rpartition("/")[2])
    return "python" if _PYTHON.match(name) else name


INTERPRETER = "interpreter"
PARSING = "argument parsing"
OVERRIDES = "__torch_function__"
TORCHSCRIPT = "TorchScript"
DISPATCHER = "dispatcher"
AUTOGRAD = "autograd"
ALLOCATION = "allocation"
KERNEL = "kernel"
TEARDOWN = "teardown"
OTHER = "other"

# In the order in which a call passes through them. TorchScript is a stage of its own: the call of a scripted model goes
# through Python's interpreter first, and then through that one.
STAGES = (INTERPRETER, PARSING, OVERRIDES, TORCHSCRIPT, DISPATCHER, AUTOGRAD, ALLOCATION, KERNEL, TEARDOWN, OTHER)


class StageRule(NamedTuple):
    """What has a name and is in a library that begin with these expressions belongs to the stage; empty fits all."""

    stage: str
    name: str = ""
    library: str = ""


_ROWS = (
    # All of Python's own functions, named or not, and the modules that come with it. The lock that its threads share is
    # what most mutexes and conditions are there for.
    (INTERPRETER, "", r"python$|\w+\.cpython-"),
    (INTERPRETER, r"_*pthread_|__lll_|pybind11::gil_"),
    # What everybody uses, by what it does. Thread-local variables are mostly what a dispatch looks up and sets: keys,
    # modes, hooks of profilers.
    (ALLOCATION, r"(?:__libc_|__|posix_|_mid_|_int_|je_|mi_|tc_)?(?:[mc]alloc|realloc|memalign|aligned_alloc)$"),
    (ALLOCATION, r"malloc_consolidate$|unlink_chunk$|sysmalloc|tcache_|alloc_perturb$|operator new"),
    (TEARDOWN, r"(?:__libc_|__|_int_|je_|mi_|tc_)?c?free$|_int_free_|systrim|munmap_chunk|operator delete"),
    (KERNEL, r"(?:__)?mem(?:cpy|move|set|cmp)"),
    (DISPATCHER, r"__tls_"),
    # A thread of autograd takes over the state of the thread that asked for gradients.
    (AUTOGRAD, r"at::ThreadLocalState|(?:at|c10)::.*::(?:[gs]et_(?:tls_)?state|set_enabled)$|at::sequence_number"),
    (AUTOGRAD, r"at::autocast::[gs]et_autocast_|at::[gs]et_\w+_tls_$|at::\w+::(?:\w+::)?[gs]et\w+TLS$"),
    (AUTOGRAD, r"at::accelerator::|std::.*c10::SafePyObject"),
    (OVERRIDES, r".*(?:torch_?function|TorchFunction)"),
    # Bindings: what comes from Python is unpacked, what goes there is wrapped, errors and warnings are translated.
    (TEARDOWN, r"THPVariable_(?:\w+_)?(?:dealloc|clear)$|isResurrectable$|torch::detail::.*::decref$"),
    (AUTOGRAD, r"THP(?:Cpp)?(?:Engine|Function)|torch::autograd::(?!THP|utils::)", r"libtorch_python"),
    (PARSING, r"torch::(?:jit|PyWarningHandler)|c10::IValue", r"libtorch_python"),
    (PARSING, r"torch::(?:PythonArg|FunctionSignature|FunctionParameter|autograd::(?:THP|utils)|jit::tracer)"),
    (PARSING, r"THP|pybind11::|at::indexing::|c10::Warning"),
    # TorchScript's interpreter, and the stack of values that it works on.
    (TORCHSCRIPT, r"torch::jit::|c10::(?:IValue|ivalue::|List<|Dict<|\w*Type::|detail::ListImpl|createVectorLike)"),
    (TORCHSCRIPT, r"std::.*(?:torch::jit::|c10::IValue)"),
    # Choosing what to call, and the wrappers around it, with the hooks of profilers. Sizes may be symbols until then.
    (DISPATCHER, r"c10::(?:Dispatch|OperatorHandle|TypedOperatorHandle|KernelFunction|BoxedKernel|callUnboxed)"),
    (DISPATCHER, r"c10::impl::|c10::compute\w*DispatchKey|at::_ops::|at::redispatch::|at::autocast::"),
    (DISPATCHER, r"torch::(?:ADInplaceOrView|TraceType)|at::(?:\(anonymous namespace\)::)*(?:wrapper_|AutoDispatch)"),
    (DISPATCHER, r"(?:at|c10|std)::.*(?:RecordFunction|StepCallbacks|CallbackManager|CacheEntry)|at::Tensor::\w+$"),
    (DISPATCHER, r"c10::(?:Sym(?:Int|Bool|Float|Node)|asIntArrayRef|fromIntArrayRef|operator)|std::.*c10::SymInt"),
    # What a kernel makes for itself, it also destroys.
    (KERNEL, r"at::(?:TensorIterator|OperandInfo)|(?:std::.*)?(?:dnnl|ideep::)"),
    (TEARDOWN, r".*::(?:~\w+|release_resources|release_variables|_M_(?:dispose|release\w*|weak_release|destroy))$"),
    (TEARDOWN, r"c10::(?:free_cpu|intrusive_ptr<.*>::re(?:set|lease)\w*$|.*::(?:ReportAnd)?Delete$|.*::decref_)"),
    (TEARDOWN, r"torch::autograd::deleteNode"),
    (AUTOGRAD, r"(?:(?:std|c10)::.*)?torch::autograd::|at::impl::\w*VariableHooks|at::SavedTensorDefaultHooks"),
    (AUTOGRAD, r"c10::(?:AutogradState|GradMode|InferenceMode|AutogradMeta|TensorImpl::\w*grad)"),
    (AUTOGRAD, r"at::TensorBase::(?:grad_|is_leaf|output_nr|requires_grad|_?version|tensor_data|variable_data)"),
    # Memory for a tensor, and the objects that describe it.
    (ALLOCATION, r"c10::(?:alloc_cpu|\w*Allocator|Storage|TensorImpl|TensorOptions|VariableVersion|intrusive_ptr)"),
    (ALLOCATION, r"c10::(?:\w*rofiledCPUMemory|memoryProfiling|ThreadLocalDebugInfo|tls_debug_info|\w*NUMA)"),
    (ALLOCATION, r"c10::c10_compute_alignment|at::detail::(?:empty|make_tensor|compute|check_size|scalar_tensor)"),
    (ALLOCATION, r"at::(?:native::)?(?:\(anonymous namespace\)::)*empty(?:_|$)"),
    # Computing, from shapes and types to the loop over numbers: all of ATen but for what comes above.
    (KERNEL, r"at::|c10::(?:SmallVector|function_ref|ArrayRef|HeaderOnlyArrayRef|IListRef|Scalar|complex)"),
    (KERNEL, r"std::.*at::(?:native::|Tensor|OperandInfo|Range)|_Z\w*6native"),
    (KERNEL, r"mkl_|cblas_|blas_|[SDCZsdcz](?:GEM[MV]|DOT|gem[mv]|dot)_?$|xnn_|fbgemm::|cpuinfo_|omp_|GOMP_"),
    (KERNEL, "", r"lib(?:\w*blas|mkl|dnnl|sleef|m\.so|\w*omp\d?\.so|pthreadpool|XNNPACK|nnpack|fbgemm)"),
    (KERNEL, re.escape(NAMELESS), GENERATED),
    # What else is in the library of bindings, named or not.
    (PARSING, "", r"libtorch_python"),
)
RULES = tuple(StageRule(*row) for row in _ROWS)
_COMPILED = tuple((rule, re.compile(rule.name), re.compile(rule.library)) for rule in RULES)


def stage_of(function: Function) -> str:
    """The stage that a function belongs to; `other` where no rule fits.

    >>> stage_of(Function("???", "c10::alloc_cpu(unsigned long)", "/usr/lib/libc10.so"))
    'allocation'
    """
    rule = deciding_rule(function)
    return rule.stage if rule else OTHER


@functools.lru_cache(maxsize=50_000)
def deciding_rule(function: Function) -> StageRule | None:
    name = NAMELESS if is_nameless(function.name) else plain_name(function.name)
    where = library(function.binary)
    return next((rule for rule, names, libraries in _COMPILED if names.match(name) and libraries.match(where)), None)


def explain(base: Tally, head: Tally, standardise: Callable[[str], str]) -> Explanation | None:
    """Functions and stages of both sides, in instructions of one run; None where a side has no costs by function.

    `standardise` makes labels of two installations comparable.
    """
    if base.profile is None or head.profile is None:
        return None
    before = _add_up(base, standardise)
    after = before if head is base else _add_up(head, standardise)
    before_stages, after_stages = _add_stages(before), _add_stages(after)
    functions = [
        FunctionChange(name, stage, before[name, stage] / base.number, after[name, stage] / head.number)
        for name, stage in before.keys() | after.keys()
    ]
    stages = tuple(
        StageChange(stage, before_stages[stage] / base.number, after_stages[stage] / head.number) for stage in STAGES
    )
    # Those that differ most first, then those that cost most, on whichever side.
    functions.sort(key=lambda one: (-abs(one.delta), -max(one.base, one.head), one.function, one.stage))
    return Explanation(tuple(functions), stages)


_Costs = Counter[tuple[str, str]]


def _add_up(tally: Tally, standardise: Callable[[str], str]) -> _Costs:
    """Instructions of all runs by name and stage. Few names have two stages: those of functions in two libraries."""
    assert tally.profile is not None, "the caller has seen to that"
    event = tally.profile.events.index(INSTRUCTIONS)
    costs: _Costs = Counter()
    for function, cost in tally.profile.exclusive.items():
        if cost[event]:
            costs[_name(function, standardise), stage_of(function)] += cost[event]
    return costs


@functools.lru_cache(maxsize=50_000)
def _name(function: Function, standardise: Callable[[str], str]) -> str:
    """A name without the file: only some builds know it, and there inlined code has the file that it was written in."""
    if is_nameless(function.name):
        return f"{NAMELESS} in {library(function.binary)}"
    _, _, name = standardise(function._replace(binary="").label).partition(":")
    return plain_name(name)


def _add_stages(costs: _Costs) -> Counter[str]:
    stages: Counter[str] = Counter()
    for (_, stage), cost in costs.items():
        stages[stage] += cost
    return stages
