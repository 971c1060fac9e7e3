"""Names of functions without what differs between two builds for no reason: one function, one name."""

from __future__ import annotations

import functools
import re

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
# As Callgrind writes it. Code that is in no file was made while the program ran, by oneDNN or XNNPACK say.
_NO_BINARY = ("", "???")
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
    if binary in _NO_BINARY:
        return GENERATED
    name = re.sub(r"\.so\.[\d.]+$", ".so", binary.rpartition("/")[2])
    return "python" if _PYTHON.match(name) else name
