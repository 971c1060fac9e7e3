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
from hypothesis import given
from hypothesis import strategies as st

from torchmark.analysis.verdict.explain import (
    GENERATED,
    OTHER,
    RULES,
    STAGES,
    deciding_rule,
    explain,
    is_nameless,
    library,
    plain_name,
    split_name,
    stage_of,
)
from torchmark.callgrind.profiles import standardise
from torchmark.model.costs import Costs, Function, Profile, Tally
from torchmark.model.judgement import Explanation, FunctionChange, StageChange


def make_tally(costs: dict[Function, Costs], number: int = 1, events: tuple[str, ...] = ("Ir",)) -> Tally:
    profile = Profile(events, costs, costs, {})
    return Tally(
        number=number,
        seeds=(0,),
        totals=(profile.total(),),
        events=tuple(zip(events, profile.totals(), strict=True)),
        allocations=0,
        tensor_allocations=0,
        baseline=None,
        profile=profile,
    )


def compare(base: Tally, head: Tally) -> Explanation:
    explanation = explain(base, head, standardise)
    assert explanation is not None
    return explanation


OLD = make_tally(
    {
        Function("???", "malloc", "/lib/libc.so.6"): (100,),
        Function("???", "_PyEval_EvalFrameDefault", "/usr/bin/python3.11"): (40,),
        Function("???", "_PyEval_EvalFrameDefault'2", "/usr/bin/python3.11"): (60,),
        Function("???", "0x0000000000f288a0", "/lib/libtorch_cpu.so.1.13.0"): (7,),
        Function("???", "0x0000000000f288a0'2", "/lib/libtorch_cpu.so.1.13.0"): (2,),
        Function("???", "0x00000000018505a0", "/lib/libtorch_cpu.so.1.13.0"): (1,),
    },
    number=10,
)
NEW = make_tally(
    {
        Function("./malloc/malloc.c", "malloc", "/lib/libc.so.6"): (60,),
        Function("./malloc/arena.c", "malloc", "/lib/libc.so.6"): (20,),
        Function("/tmp/Python-3.11.7/Python/ceval.c", "_PyEval_EvalFrameDefault", "/lib/libpython3.11.so.1.0"): (90,),
        Function("???", "at::native::add(at::Tensor const&)", "/lib/libtorch_cpu.so"): (30,),
        Function("???", "never_called", "/lib/libtorch_cpu.so"): (0,),
    },
    number=5,
)


def test_a_function_of_two_builds_is_one_and_all_is_of_one_run() -> None:
    assert compare(OLD, NEW).functions == (
        FunctionChange("_PyEval_EvalFrameDefault", "interpreter", 10.0, 18.0),
        FunctionChange("malloc", "allocation", 10.0, 16.0),
        FunctionChange("at::native::add", "kernel", 0.0, 6.0),
        FunctionChange("(no name) in libtorch_cpu.so", "other", 1.0, 0.0),
    )


def test_stages_come_in_the_order_of_a_call_and_have_all_instructions() -> None:
    stages = compare(OLD, NEW).stages
    assert tuple(change.stage for change in stages) == STAGES
    assert [change for change in stages if change.base or change.head] == [
        StageChange("interpreter", 10.0, 18.0),
        StageChange("allocation", 10.0, 16.0),
        StageChange("kernel", 0.0, 6.0),
        StageChange("other", 1.0, 0.0),
    ]


def test_what_is_alike_comes_last_with_the_costliest_first() -> None:
    costs: dict[Function, Costs] = {Function("a.c", "f"): (5,), Function("a.c", "g"): (7,)}
    functions = compare(make_tally(costs), make_tally(costs | {Function("a.c", "h"): (1,)})).functions
    assert [change.function for change in functions] == ["h", "g", "f"]


def test_the_loop_of_a_snippet_is_one_function_whatever_the_snippet() -> None:
    base, head = (
        make_tally({Function("/tmp/a.cpp", f"torchmark_loop_{digit * 32}", "/tmp/a.so"): (3,)}) for digit in "ab"
    )
    assert [change.function for change in compare(base, head).functions] == ["torchmark_loop"]


def test_a_name_with_two_stages_stays_apart() -> None:
    tally = make_tally(
        {Function("", "memo", "/bin/python3"): (1,), Function("", "memo", "/lib/libtorch_python.so"): (2,)}
    )
    assert [(change.stage, change.head) for change in compare(tally, tally).functions] == [
        ("argument parsing", 2.0),
        ("interpreter", 1.0),
    ]


def test_instructions_are_told_from_other_events() -> None:
    tally = make_tally({Function("a.c", "f"): (9, 4)}, events=("Dr", "Ir"))
    assert compare(tally, tally).functions == (FunctionChange("f", "other", 4.0, 4.0),)


def test_without_costs_by_function_there_is_nothing_to_explain() -> None:
    bare = Tally(
        number=1, seeds=(0,), totals=(10,), events=(("Ir", 10),), allocations=0, tensor_allocations=0, baseline=None
    )
    assert explain(bare, OLD, standardise) is None
    assert explain(OLD, bare, standardise) is None


NAMES = ("malloc", "malloc'2", "f(int)", "f(long)", "0x12", "0x34", "???", "free", "(below main)", "at::native::f()")
FUNCTIONS = st.builds(
    Function, st.sampled_from(("???", "a.c", "b.c")), st.sampled_from(NAMES), st.sampled_from(("", "/a.so", "/python3"))
)
TALLIES = st.builds(
    make_tally,
    st.dictionaries(FUNCTIONS, st.tuples(st.integers(0, 10**9)), min_size=1),
    st.integers(1, 100),
)


@given(TALLIES, TALLIES)
def test_functions_and_stages_add_up_to_the_totals(base: Tally, head: Tally) -> None:
    explanation = compare(base, head)
    for changes in (explanation.functions, explanation.stages):
        assert sum(round(change.base * base.number) for change in changes) == base.total
        assert sum(round(change.head * head.number) for change in changes) == head.total
        total = head.total / head.number - base.total / base.number
        assert sum(change.delta for change in changes) == pytest.approx(total, abs=1e-3)


@given(TALLIES, TALLIES)
def test_the_other_way_round_all_differences_change_sign(base: Tally, head: Tally) -> None:
    there, back = compare(base, head), compare(head, base)
    assert [(c.function, c.stage, c.delta) for c in there.functions] == [
        (c.function, c.stage, -c.delta) for c in back.functions
    ]
    assert [(c.stage, c.delta) for c in there.stages] == [(c.stage, -c.delta) for c in back.stages]


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        # Notes of the profiler, the C library and compilers.
        ("_PyEval_EvalFrameDefault'2", "_PyEval_EvalFrameDefault"),
        ("pthread_cond_signal@@GLIBC_2.3.2", "pthread_cond_signal"),
        ("memcpy@GLIBC_2.14", "memcpy"),
        ("split.part.0.isra.1.cold", "split"),
        ("dict_new.lto_priv.0", "dict_new"),
        ("at::native::copy_impl(at::Tensor&, bool) [clone .isra.0]", "at::native::copy_impl"),
        ("c10::f(int) const [clone .constprop.0] [clone .cold]'3", "c10::f"),
        # Parameters, return types, what qualifies a function.
        ("bool torch::jit::run<false>(std::vector<int>&)", "torch::jit::run<false>"),
        ("unsigned long f(char const*)", "f"),
        ("std::pair<int, long> g<int>()", "g<int>"),
        ("c10::TensorImpl::sizes() const &", "c10::TensorImpl::sizes"),
        ("a::value() &&", "a::value"),
        ("non-virtual thunk to A::~A()", "A::~A"),
        ("f(int)::{lambda(auto:1&&)#2}::operator()(int) const::{lambda()#1}::_FUN()",
         "f::{lambda#2}::operator()::{lambda#1}::_FUN"),
        ("at::(anonymous namespace)::g(int)", "at::(anonymous namespace)::g"),
        # Function types and casts among the arguments of a template.
        ("c10::function_ref<void (char**, long)>::call<f(int)::{lambda()#1}>(long)",
         "c10::function_ref<void>::call<f::{lambda#1}>"),
        ("std::_Sp_counted_base<(__gnu_cxx::_Lock_policy)2>::_M_release()", "std::_Sp_counted_base<2>::_M_release"),
        # Operators.
        ("operator new(unsigned long)", "operator new"),
        ("operator delete[](void*)", "operator delete[]"),
        ("c10::operator<(c10::SymInt const&, int)", "c10::operator<"),
        ("std::ostream& c10::operator<< <char>(std::ostream&, c10::Device)", "c10::operator<< <char>"),
        ("a::b<int>::operator->() const", "a::b<int>::operator->"),
        ("a::operator unsigned long() const", "a::operator unsigned long"),
        # What is the same class under two names.
        ("std::__cxx11::basic_string<char>::find(char)", "std::basic_string<char>::find"),
        ("f[abi:cxx11](int)", "f"),
        ("g<c10::optional<long> >(int)", "g<std::optional<long>>"),
        # Names that are not C++.
        ("sgemm_", "sgemm_"),
        ("(below main)", "(below main)"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_name_is_what_is_the_same_in_two_builds(name: str, plain: str) -> None:
    assert plain_name(name) == plain


@given(st.text("ab<>(){}: ,&*'2.@~-", max_size=30))
def test_any_text_has_a_name_and_only_an_empty_one_has_none(name: str) -> None:
    assert bool(plain_name(name)) == bool(name)


@given(st.text(max_size=30))
def test_nothing_is_lost_in_splitting(name: str) -> None:
    assert "".join(split_name(name)) == name


@pytest.mark.parametrize("name", ["0x0000000000f288a0", "0x4fee40'2", "???", ""])
def test_an_address_is_no_name(name: str) -> None:
    assert is_nameless(name)


@pytest.mark.parametrize("name", ["sgemm_", "0xray", "f(int)", "???f"])
def test_other_texts_are_names(name: str) -> None:
    assert not is_nameless(name)


@pytest.mark.parametrize(
    ("binary", "name"),
    [
        ("/usr/bin/python3.11", "python"),
        ("/opt/lib/libpython3.12.so.1.0", "python"),
        ("/usr/bin/python3", "python"),
        ("/opt/libpython3.13t.so", "python"),
        ("/usr/lib/libtorch_python.so.1.13.0", "libtorch_python.so"),
        ("libc.so.6", "libc.so"),
        ("/usr/lib/_ctypes.cpython-311-x86_64-linux-gnu.so", "_ctypes.cpython-311-x86_64-linux-gnu.so"),
        ("???", GENERATED),
        ("", GENERATED),
    ],
)
def test_a_library_has_one_name_in_every_version(binary: str, name: str) -> None:
    assert library(binary) == name


@pytest.mark.parametrize("part", [" [clone ", ".part.1", "operator ", "[abi:", "@@a", ") const", "'1", "<("])
def test_a_name_of_any_length_is_read_once(part: str) -> None:
    # An expression that tries every beginning against every end would take hours.
    assert plain_name(part * 200_000 + "x")


def test_a_library_of_any_length_is_read_once() -> None:
    assert library(f"/usr/bin/python{'1' * 200_000}") == "python"
    assert library(f"python{'1' * 200_000}!") == f"python{'1' * 200_000}!"


GOLDEN = Path(__file__).parents[3] / "golden"
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
