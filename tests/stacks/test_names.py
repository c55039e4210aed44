"""Every spelling of a function or library gives one name."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.stacks.names import demangle, library_name, normalise_function


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("c10d::X::f(at::Tensor&, c10d::Opt const&)", "c10d::X::f"),
        ("_ZN3c106detail14torchCheckFailEPKcS2_jRKSs", "c10::detail::torchCheckFail"),
        ("_ZNK5torch15PythonArgParser14get_signaturesB5cxx11Ev", "torch::PythonArgParser::get_signatures"),
        (
            "_ZNSt6thread11_State_implINS_8_InvokerISt5tupleIJZ4mainEUlvE_EEEEE6_M_runEv",
            "std::thread::_State_impl<T>::_M_run",
        ),
        ("_ZN3FooD2Ev", "Foo::~Foo"),
        ("std::__cxx11::basic_string<char, std::char_traits<char> >::foo[abi:cxx11]", "std::basic_string<T>::foo"),
        ("std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)", "std::operator<<<T>"),
        ("void foo<int, bar<3> >(int) [clone .isra.0] [clone .part.171]", "foo<T>"),
        ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda}"),
        ("main(int,char**)::<lambda(int)>", "main::{lambda}"),
        ("a::b::_FUN", "a::b::{lambda}"),
        ("(anonymous namespace)::f", "{anon}::f"),
        ("foo(int) const::bar(char)", "foo::bar"),
        ("f() [clone .cold.638]", "f"),
        ("pyrun_file.cold.3080", "pyrun_file"),
        ("f@plt", "f"),
        ("pthread_cond_timedwait@@GLIBC_2.3.2", "pthread_cond_timedwait"),
        ("*__GI_raise", "raise"),
        (".func", "func"),
        ("non-virtual thunk to X::y() const", "X::y"),
        ("__memmove_avx_unaligned_erms", "memmove"),
        ("__strlen_evex", "strlen"),
        ("Foo::operator unsigned long() const", "Foo::operator-conversion"),
        ("operator new[](unsigned long)", "operatornew[]"),
        ("A::operator->() const", "A::operator->"),
        ("bool operator<(A const&, B const&)", "operator<"),
        ("std::function<void ()>::operator()() const", "std::function<T>::operator()"),
        ("core::ops::function::FnOnce::call_once::h0123456789abcdef", "core::ops::function::FnOnce::call_once"),
        ("auto fmt::v9::detail::write<char>(int)", "fmt::detail::write<T>"),
        ("??", ""),
        ("<unknown function>", ""),
        ("<signal handler called>", "<signal handler called>"),
    ],
)
def test_function_names(printed: str, name: str) -> None:
    """Each spelling of a function gives its comparable name."""
    assert normalise_function(printed) == name


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("/usr/lib/libnccl.so.2", "libnccl"),
        ("libgomp-7c85b1e2.so.1", "libgomp"),
        ("libc-2.31.so", "libc"),
        ("/usr/bin/python3.11", "python"),
        ("_C.cpython-311-x86_64-linux-gnu.so", "_C"),
        ("foo.abi3.so (deleted)", "foo"),
        ("libstdc++.so.6.0.30", "libstdc++"),
        ("./train", "train"),
    ],
)
def test_library_names(module: str, name: str) -> None:
    """The name of a library has no path, version or hash."""
    assert library_name(module) == name


def test_mangled_and_printed_names_are_equal() -> None:
    """A symbol and the text of a debugger for it give one name."""
    assert normalise_function(
        "_ZN4c10d16ProcessGroupNCCL8WorkNCCL28finishedGPUExecutionInternalEv"
    ) == normalise_function("c10d::ProcessGroupNCCL::WorkNCCL::finishedGPUExecutionInternal() const")


@given(st.text(alphabet="_ZNSItaKEvUlLJ0123456789<>(){}:*& \"'operatorlambda,.@[]", max_size=200))
def test_any_text_gives_a_name(text: str) -> None:
    """Any text gives a name, and no exception."""
    assert isinstance(normalise_function(text), str)
    assert isinstance(normalise_function("_Z" + text), str)
    assert isinstance(demangle("_ZN" + text), str)
    assert isinstance(library_name(text), str)
