from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.analysis.verdict.explain import GENERATED, is_nameless, library, plain_name, split_name


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
