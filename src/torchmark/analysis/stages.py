"""Which stage of a call a function belongs to. The rules are data, tried in their order: the first that fits decides.

A function is placed by its own name and its library, whoever calls it: what is asked for memory is allocation anywhere.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from torchmark.analysis.naming import GENERATED, NAMELESS, is_nameless, library, plain_name
from torchmark.model.costs import Function

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


class Rule(NamedTuple):
    """What has a name and is in a library that begin with these expressions belongs to the stage; empty fits all."""

    stage: str
    name: str = ""
    library: str = ""


RULES = (
    # All of Python's own functions, named or not, and the modules that come with it. The lock that its threads share is
    # what most mutexes and conditions are there for.
    Rule(INTERPRETER, library=r"python$|\w+\.cpython-"),
    Rule(INTERPRETER, r"_*pthread_|__lll_|pybind11::gil_"),
    # What everybody uses, by what it does. Thread-local variables are mostly what a dispatch looks up and sets: keys,
    # modes, hooks of profilers.
    Rule(ALLOCATION, r"(?:__libc_|__|posix_|_mid_|_int_|je_|mi_|tc_)?(?:[mc]alloc|realloc|memalign|aligned_alloc)$"),
    Rule(ALLOCATION, r"malloc_consolidate$|unlink_chunk$|sysmalloc|tcache_|alloc_perturb$|operator new"),
    Rule(TEARDOWN, r"(?:__libc_|__|_int_|je_|mi_|tc_)?c?free$|_int_free_|systrim|munmap_chunk|operator delete"),
    Rule(KERNEL, r"(?:__)?mem(?:cpy|move|set|cmp)"),
    Rule(DISPATCHER, r"__tls_"),
    # A thread of autograd takes over the state of the thread that asked for gradients.
    Rule(AUTOGRAD, r"at::ThreadLocalState|(?:at|c10)::.*::(?:[gs]et_(?:tls_)?state|set_enabled)$|at::sequence_number"),
    Rule(AUTOGRAD, r"at::autocast::[gs]et_autocast_|at::[gs]et_\w+_tls_$|at::\w+::(?:\w+::)?[gs]et\w+TLS$"),
    Rule(AUTOGRAD, r"at::accelerator::|std::.*c10::SafePyObject"),
    Rule(OVERRIDES, r".*(?:torch_?function|TorchFunction)"),
    # Bindings: what comes from Python is unpacked, what goes there is wrapped, errors and warnings are translated.
    Rule(TEARDOWN, r"THPVariable_(?:\w+_)?(?:dealloc|clear)$|isResurrectable$|torch::detail::.*::decref$"),
    Rule(AUTOGRAD, r"THP(?:Cpp)?(?:Engine|Function)|torch::autograd::(?!THP|utils::)", r"libtorch_python"),
    Rule(PARSING, r"torch::(?:jit|PyWarningHandler)|c10::IValue", r"libtorch_python"),
    Rule(PARSING, r"torch::(?:PythonArg|FunctionSignature|FunctionParameter|autograd::(?:THP|utils)|jit::tracer)"),
    Rule(PARSING, r"THP|pybind11::|at::indexing::|c10::Warning"),
    # TorchScript's interpreter, and the stack of values that it works on.
    Rule(TORCHSCRIPT, r"torch::jit::|c10::(?:IValue|ivalue::|List<|Dict<|\w*Type::|detail::ListImpl|createVectorLike)"),
    Rule(TORCHSCRIPT, r"std::.*(?:torch::jit::|c10::IValue)"),
    # Choosing what to call, and the wrappers around it, with the hooks of profilers. Sizes may be symbols until then.
    Rule(DISPATCHER, r"c10::(?:Dispatch|OperatorHandle|TypedOperatorHandle|KernelFunction|BoxedKernel|callUnboxed)"),
    Rule(DISPATCHER, r"c10::impl::|c10::compute\w*DispatchKey|at::_ops::|at::redispatch::|at::autocast::"),
    Rule(
        DISPATCHER, r"torch::(?:ADInplaceOrView|TraceType)|at::(?:\(anonymous namespace\)::)*(?:wrapper_|AutoDispatch)"
    ),
    Rule(DISPATCHER, r"(?:at|c10|std)::.*(?:RecordFunction|StepCallbacks|CallbackManager|CacheEntry)|at::Tensor::\w+$"),
    Rule(DISPATCHER, r"c10::(?:Sym(?:Int|Bool|Float|Node)|asIntArrayRef|fromIntArrayRef|operator)|std::.*c10::SymInt"),
    # What a kernel makes for itself, it also destroys.
    Rule(KERNEL, r"at::(?:TensorIterator|OperandInfo)|(?:std::.*)?(?:dnnl|ideep::)"),
    Rule(TEARDOWN, r".*::(?:~\w+|release_resources|release_variables|_M_(?:dispose|release\w*|weak_release|destroy))$"),
    Rule(TEARDOWN, r"c10::(?:free_cpu|intrusive_ptr<.*>::re(?:set|lease)\w*$|.*::(?:ReportAnd)?Delete$|.*::decref_)"),
    Rule(TEARDOWN, r"torch::autograd::deleteNode"),
    Rule(AUTOGRAD, r"(?:(?:std|c10)::.*)?torch::autograd::|at::impl::\w*VariableHooks|at::SavedTensorDefaultHooks"),
    Rule(AUTOGRAD, r"c10::(?:AutogradState|GradMode|InferenceMode|AutogradMeta|TensorImpl::\w*grad)"),
    Rule(AUTOGRAD, r"at::TensorBase::(?:grad_|is_leaf|output_nr|requires_grad|_?version|tensor_data|variable_data)"),
    # Memory for a tensor, and the objects that describe it.
    Rule(ALLOCATION, r"c10::(?:alloc_cpu|\w*Allocator|Storage|TensorImpl|TensorOptions|VariableVersion|intrusive_ptr)"),
    Rule(ALLOCATION, r"c10::(?:\w*rofiledCPUMemory|memoryProfiling|ThreadLocalDebugInfo|tls_debug_info|\w*NUMA)"),
    Rule(ALLOCATION, r"c10::c10_compute_alignment|at::detail::(?:empty|make_tensor|compute|check_size|scalar_tensor)"),
    Rule(ALLOCATION, r"at::(?:native::)?(?:\(anonymous namespace\)::)*empty(?:_|$)"),
    # Computing, from shapes and types to the loop over numbers: all of ATen but for what comes above.
    Rule(KERNEL, r"at::|c10::(?:SmallVector|function_ref|ArrayRef|HeaderOnlyArrayRef|IListRef|Scalar|complex)"),
    Rule(KERNEL, r"std::.*at::(?:native::|Tensor|OperandInfo|Range)|_Z\w*6native"),
    Rule(KERNEL, r"mkl_|cblas_|blas_|[SDCZsdcz](?:GEM[MV]|DOT|gem[mv]|dot)_?$|xnn_|fbgemm::|cpuinfo_|omp_|GOMP_"),
    Rule(KERNEL, library=r"lib(?:\w*blas|mkl|dnnl|sleef|m\.so|\w*omp\d?\.so|pthreadpool|XNNPACK|nnpack|fbgemm)"),
    Rule(KERNEL, re.escape(NAMELESS), GENERATED),
    # What else is in the library of bindings, named or not.
    Rule(PARSING, library=r"libtorch_python"),
)


_COMPILED = tuple((rule, re.compile(rule.name), re.compile(rule.library)) for rule in RULES)


def stage_of(function: Function) -> str:
    """The stage that a function belongs to; `other` where no rule fits.

    >>> stage_of(Function("???", "c10::alloc_cpu(unsigned long)", "/usr/lib/libc10.so"))
    'allocation'
    """
    rule = deciding_rule(function)
    return rule.stage if rule else OTHER


@functools.lru_cache(maxsize=50_000)
def deciding_rule(function: Function) -> Rule | None:
    """The rule that places a function."""
    name = NAMELESS if is_nameless(function.name) else plain_name(function.name)
    where = library(function.binary)
    return next((rule for rule, names, libraries in _COMPILED if names.match(name) and libraries.match(where)), None)
