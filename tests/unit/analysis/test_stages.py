"""The map of stages, held to what the standard suite's Python cases cost in two versions of torch.

`tests/golden/profile_*.json` has the instructions of one run of each case, added up by function, as counted by
`torchmark run standard --language python --metric count --layouts 1`. To keep the files small, addresses are one entry
a library, and all functions with less than 4 of 100,000 instructions are the last one.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from torchmark.analysis.verdict.explain import OTHER, RULES, STAGES, deciding_rule, stage_of
from torchmark.model.costs import Function

GOLDEN = Path(__file__).parents[2] / "golden"
# A share of all instructions above this would leave too much of a difference unexplained.
MOST_UNPLACED = 0.15

CPU, PYTHON, C10, BINDINGS = "libtorch_cpu.so", "libpython3.11.so.1.0", "libc10.so.1.13.0", "libtorch_python.so"
LIBC, CPP = "libc.so.6", "libstdc++.so.6.0.30"

PLACED = {
    "interpreter": [
        ("_PyEval_EvalFrameDefault'2", "/usr/bin/python3.11"),
        ("unicodekeys_lookup_unicode", PYTHON),
        ("_PyObject_Malloc", PYTHON),
        ("tupledealloc", PYTHON),
        ("0x00000000004fee40", "python3.11"),
        ("pthread_mutex_lock@@GLIBC_2.2.5", LIBC),
        ("pybind11::gil_scoped_acquire::gil_scoped_acquire()", BINDINGS),
    ],
    "argument parsing": [
        ("torch::FunctionSignature::parse(_object*, _object*, _object*, _object**, bool)", BINDINGS),
        ("torch::PythonArgParser::raw_parse(_object*, _object*, _object*, _object**)", BINDINGS),
        ("torch::autograd::THPVariable_mul(_object*, _object*, _object*)", BINDINGS),
        ("THPVariable_Wrap(at::TensorBase const&)", BINDINGS),
        ("pybind11::cpp_function::dispatcher(_object*, _object* const*, unsigned long, _object*)", BINDINGS),
        ("torch::jit::toIValue(pybind11::handle, c10::Type const&)", BINDINGS),
        ("0x00000000003094c0", "libtorch_python.so.1.13.0"),
    ],
    "__torch_function__": [
        ("torch::check_has_torch_function(_object*, bool)", BINDINGS),
        ("torch::handle_torch_function(torch::PythonArgs&, _object*)", BINDINGS),
        ("at::impl::torch_function_mode_enabled()", CPU),
        ("THPModule_has_torch_function_variadic(_object*, _object* const*, long)", BINDINGS),
    ],
    "TorchScript": [
        ("bool torch::jit::InterpreterStateImpl::runTemplate<false>(std::vector<c10::IValue>&)", CPU),
        ("c10::IValue::destroy()", CPU),
        ("std::vector<c10::IValue, std::allocator<c10::IValue> >::resize(unsigned long)", CPU),
        ("torch::jit::profiling::InstructionSpan::~InstructionSpan()", CPU),
    ],
    "dispatcher": [
        ("c10::impl::OperatorEntry::lookup(c10::DispatchKeySet) const", CPU),
        ("c10::Dispatcher::callBoxed(c10::OperatorHandle const&, std::vector<c10::IValue>*) const", CPU),
        ("at::_ops::mul_Tensor::call(at::Tensor const&, at::Tensor const&)", CPU),
        ("at::_ops::mul_Tensor::redispatch(c10::DispatchKeySet, at::Tensor const&, at::Tensor const&)", CPU),
        ("c10::impl::wrap_kernel_functor_unboxed_<f, at::Tensor (at::Tensor const&)>::call(int)", CPU),
        ("torch::ADInplaceOrView::(anonymous namespace)::select_int(c10::DispatchKeySet)", CPU),
        ("at::(anonymous namespace)::(anonymous namespace)::wrapper_CPU_mul_Tensor(at::Tensor const&)", CPU),
        ("at::RecordFunction::~RecordFunction()", CPU),
        ("c10::impl::ExcludeDispatchKeyGuard::~ExcludeDispatchKeyGuard()", C10),
        ("__tls_get_addr", "ld-linux-x86-64.so.2"),
    ],
    "autograd": [
        ("torch::autograd::VariableType::(anonymous namespace)::mul_Tensor(c10::DispatchKeySet)", CPU),
        ("torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)", CPU),
        ("at::ThreadLocalState::setThreadLocalState(at::ThreadLocalState const&)", CPU),
        ("c10::GradMode::is_enabled()", C10),
        ("THPEngine_run_backward(_object*, _object*, _object*)", BINDINGS),
    ],
    "allocation": [
        ("malloc", LIBC),
        ("_int_malloc", LIBC),
        ("_mid_memalign.constprop.0", LIBC),
        ("operator new(unsigned long)", CPP),
        ("c10::alloc_cpu(unsigned long)", C10),
        ("c10::TensorImpl::TensorImpl(c10::Storage&&, c10::DispatchKeySet, caffe2::TypeMeta)", C10),
        ("at::detail::empty_cpu(c10::ArrayRef<long>, c10::TensorOptions const&)", CPU),
        ("at::native::empty_like(at::Tensor const&)", CPU),
    ],
    "kernel": [
        ("at::native::copy_impl(at::Tensor&, at::Tensor const&, bool) [clone .isra.0]", CPU),
        ("at::TensorIteratorBase::build(at::TensorIteratorConfig&)", CPU),
        ("at::TensorIteratorBase::~TensorIteratorBase()", CPU),
        ("void at::native::(anonymous namespace)::cpu_max_pool<float, false>(at::Tensor const&)", CPU),
        ("at::meta::structured_mul_Tensor::meta(at::Tensor const&, at::Tensor const&)", CPU),
        ("mkl_blas_avx2_xsgemm", CPU),
        ("dnnl::impl::memory_desc_init_by_tag(dnnl_memory_desc&)", CPU),
        ("sgemm_", "/usr/lib/blas/libblas.so.3.11.0"),
        ("0x000000000000d790", "libpthreadpool.so.0"),
        ("__memcpy_avx_unaligned_erms", LIBC),
        ("0x0000000028f21000", "???"),
    ],
    "teardown": [
        ("free", LIBC),
        ("_int_free", LIBC),
        ("operator delete(void*, unsigned long)", CPP),
        ("c10::TensorImpl::~TensorImpl()'2", C10),
        ("c10::TensorImpl::release_resources()", C10),
        ("c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reset_not_null_(c10::TensorImpl*)", CPU),
        ("torch::autograd::Node::~Node()", CPU),
        ("THPVariable_subclass_dealloc(_object*)", BINDINGS),
    ],
    "other": [
        ("0x0000000000f288a0", "libtorch_cpu.so.1.13.0"),
        ("main", "a.out"),
        ("std::_Hash_bytes(void const*, unsigned long, unsigned long)", CPP),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("stage", "name", "binary"), [(stage, *function) for stage, functions in PLACED.items() for function in functions]
)
def test_functions_are_where_a_developer_looks_for_them(stage: str, name: str, binary: str) -> None:
    assert stage_of(Function("???", name, binary)) == stage


def test_every_stage_is_known_and_every_rule_leads_to_one() -> None:
    assert tuple(PLACED) == STAGES
    assert {rule.stage for rule in RULES} == set(STAGES) - {OTHER}


def read_functions(version: str) -> list[tuple[Function, int]]:
    document = json.loads((GOLDEN / f"profile_torch_{version}.json").read_text())
    return [(Function("???", name, binary), cost) for name, binary, cost in document["functions"]]


def shares(functions: list[tuple[Function, int]]) -> dict[str, float]:
    costs: Counter[str] = Counter()
    for function, cost in functions:
        costs[stage_of(function)] += cost
    return {stage: costs[stage] / costs.total() for stage in STAGES}


def test_little_of_the_standard_suite_is_left_unplaced() -> None:
    # What the last entry adds up is counted as unplaced too.
    assert shares(read_functions("2_13"))["other"] < MOST_UNPLACED / 5


def test_an_older_torch_is_placed_as_far_as_it_has_names() -> None:
    functions = read_functions("1_13")
    nameless = {function for function, _ in functions if function.name == "0x0" and "libtorch_cpu" in function.binary}
    assert shares([entry for entry in functions if entry[0] not in nameless])["other"] < MOST_UNPLACED / 5
    assert 0.2 < shares(functions)["other"] < 0.35


@pytest.mark.parametrize("version", ["1_13", "2_13"])
def test_every_stage_has_its_part_in_the_standard_suite(version: str) -> None:
    parts = shares(read_functions(version))
    assert all(share > 0.001 for share in parts.values()), parts
    for stage in ("interpreter", "dispatcher", "autograd", "allocation", "kernel", "teardown"):
        assert parts[stage] > 0.05, parts


def test_every_rule_decides_on_something_that_was_seen() -> None:
    functions = [function for version in ("1_13", "2_13") for function, _ in read_functions(version)]
    assert set(RULES) - {deciding_rule(function) for function in functions} == set()
