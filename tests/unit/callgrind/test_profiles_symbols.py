from __future__ import annotations

import pytest

from torchmark.callgrind.profiles import count_allocations, is_known_for_noise, standardise
from torchmark.model.costs import Call, Function, Profile


def profile(*calls: tuple[str, str, int]) -> Profile:
    edges = {(Function("", a), Function("", b)): Call(n, (n,)) for a, b, n in calls}
    return Profile(("Ir",), {}, {}, edges)


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([], (0, 0)),
        ([("operator new(unsigned long)", "malloc", 3), ("f", "calloc", 2), ("f", "free", 9)], (5, 0)),
        ([("f", "calloc", 2), ("calloc", "malloc", 2)], (2, 0)),
        ([("f", "malloc'2", 2), ("f", "posix_memalign@@GLIBC_2.2.5", 1)], (3, 0)),
        ([("g", "c10::alloc_cpu(unsigned long)", 4), ("c10::alloc_cpu(unsigned long)", "posix_memalign", 4)], (4, 4)),
        ([("f", "_int_malloc", 2), ("f", "PyObject_Malloc", 2), ("f", "my_malloc", 1)], (0, 0)),
    ],
)
def test_allocations_are_calls_into_the_family_from_outside(
    calls: list[tuple[str, str, int]], expected: tuple[int, int]
) -> None:
    assert count_allocations(profile(*calls)) == expected


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("/root/pytorch/build/../torch/csrc/x.cpp:f(int) [/lib/libtorch.so]", "build/../torch/csrc/x.cpp:f(int)"),
        ("/root/pytorch/build/aten/src/y.cpp:g [/lib/libtorch.so]", "build/aten/src/y.cpp:g"),
        ("/tmp/build/Python-3.11/Python/ceval.c:_PyEval [/usr/lib/libpython.so]", "Python/ceval.c:_PyEval"),
        ("/home/x/Objects/dictobject.c:lookup", "Objects/dictobject.c:lookup"),
        ("/tmp/Python-3.11.7/./Modules/itertoolsmodule.c:repeat_next [/x.so]", "Modules/itertoolsmodule.c:repeat_next"),
        ("/tmp/Python-3.11.7/./Include/internal/pycore_call.h:call", "Include/internal/pycore_call.h:call"),
        ("/tmp/Python-3.11.7/Parser/pegen.c:parse", "Parser/pegen.c:parse"),
        ("/opt/conda/lib/python3.11/site-packages/mine/ext.cpp:f [/x.so]", "site-packages/mine/ext.cpp:f"),
        ("/usr/lib/python3/dist-packages/mine/ext.cpp:f [/x.so]", "site-packages/mine/ext.cpp:f"),
        ("???:at::add(at::Tensor const&) [/home/me/Python/libtorch.so]", "???:at::add(at::Tensor const&)"),
        ("???:f(int) [clone .isra.0] [/lib/x.so]", "???:f(int)"),
        # Nothing of CPython's.
        ("/home/me/Objects/mesh.cpp:draw", "/home/me/Objects/mesh.cpp:draw"),
        ("x.cpp:open(/tmp/Python/a.c:1)", "x.cpp:open(/tmp/Python/a.c:1)"),
    ],
)
def test_labels_lose_what_differs_between_builds(label: str, expected: str) -> None:
    assert standardise(label) == expected


@pytest.mark.parametrize(
    ("label", "noisy"),
    [
        ("Objects/dictobject.c:lookdict_unicode [python]", True),
        ("Objects/dictobject.c:lookdict_unicode_nodummy", True),
        ("Objects/dictobject.c:unicodekeys_lookup_unicode", True),
        ("Objects/dictobject.c:_Py_dict_lookup", True),
        ("Objects/dictobject.c:PyDict_GetItem", False),
        ("./malloc/malloc.c:_int_malloc", False),
    ],
)
def test_look_ups_are_known_for_noise_in_old_and_new_pythons(label: str, noisy: bool) -> None:
    assert is_known_for_noise(label) is noisy


@pytest.mark.parametrize("part", [" [", "build/../", "/Python/", "/site-packages/", ":", "[a] ", "a] ["])
def test_a_label_of_any_length_is_read_once(part: str) -> None:
    # An expression that tries every beginning against every end would take hours.
    label = part * 200_000
    assert standardise(f"{label}x")
    assert standardise(f"/tmp{label}.c:f")
