"""Names of functions: which allocate memory, which are known for noise, and how a path becomes comparable."""

from __future__ import annotations

import re

from torchmark.model.costs import Function, Profile

# What a program calls to get memory from the C library. Symbols may carry a version behind an @.
_MALLOC_FAMILY = frozenset(
    {"malloc", "calloc", "realloc", "memalign", "posix_memalign", "aligned_alloc", "valloc", "pvalloc", "reallocarray"}
)
# What torch calls to get memory for a tensor on the CPU, whatever is below it.
_TORCH_CPU_ALLOCATOR = "c10::alloc_cpu("


def count_allocations(profile: Profile) -> tuple[int, int]:
    """Calls into the malloc family, and calls of torch's CPU allocator (which calls the former).

    A function of the family that another of them calls is one allocation, not two.
    """
    family = tensors = 0
    for (caller, callee), call in profile.calls.items():
        if _is_malloc(callee) and not _is_malloc(caller):
            family += call.times
        elif callee.name.startswith(_TORCH_CPU_ALLOCATOR) and not caller.name.startswith(_TORCH_CPU_ALLOCATOR):
            tensors += call.times
    return family, tensors


def _is_malloc(function: Function) -> bool:
    # Callgrind writes name'2 for a function entered again through itself.
    return function.name.partition("@")[0].partition("'")[0] in _MALLOC_FAMILY


# Dictionary look-ups depend on hashes, and these on addresses. CPython up to 3.10, and what became of them in 3.11.
_NOISY = (
    "dictobject.c:lookdict_unicode",
    "dictobject.c:unicodekeys_lookup_unicode",
    "dictobject.c:unicodekeys_lookup_generic",
    "dictobject.c:_Py_dict_lookup",
)


def is_known_for_noise(label: str) -> bool:
    """Whether a function's cost varies for no reason of the program's, going by its name alone.

    >>> is_known_for_noise("/tmp/Python-3.8/Objects/dictobject.c:lookdict_unicode_nodummy [/usr/bin/python3]")
    True
    """
    return any(part in label for part in _NOISY)


# A path before what is known of a source tree differs from build to build.
_CPYTHON = ("/Python/", "/Objects/", "/Modules/", "/Include/", "/Parser/", "/Programs/")
_PACKAGES = ("/site-packages/", "/dist-packages/")
# The loop of a C++ snippet, whatever the snippet.
_LOOP = re.compile(r"[^:]+:(torchmark_loop)_[0-9a-f]{32}\b")
_BINARY = re.compile(r"\s\[")


def standardise(label: str) -> str:
    """A label that is the same for the same function of two builds or installations.

    >>> standardise("/tmp/build.1/Python-3.11.7/Modules/gcmodule.c:collect [/usr/lib/libpython3.11.so]")
    'Modules/gcmodule.c:collect'
    """
    # A file ends at the first colon: what comes after is the function's name, which may look like anything.
    file, colon, function = label.partition(":")
    label = _standardise_file(file, is_c=bool(colon) and file.endswith((".c", ".h"))) + colon + function
    return _drop_binary(_LOOP.sub(r"snippet:\1", label, count=1) if _LOOP.match(label) else label)


def _standardise_file(file: str, *, is_c: bool) -> str:
    """Without the folder of a source tree that is known; in this order, as one may lie within another."""
    if (start := _find_last(file, "build/../")) > 0:
        file = file[start:]
    if (start := _find_last(file, "/build/aten/")) > 0:
        file = file[start + 1 :]
    if is_c and (start := _find_last(file, *_CPYTHON)) > 0:
        file = file[start + 1 :]
    if (start := _find_last(file, *_PACKAGES)) > 0:
        file = "site-packages/" + file[start + len(_PACKAGES[0]) :]
    return file


def _find_last(text: str, *parts: str) -> int:
    """Where the last of these begins; what a text begins with is not found."""
    return max(text.rfind(part, 1) for part in parts)


def _drop_binary(label: str) -> str:
    """Without the name of a program or library in brackets, which is on the last line and the last thing there."""
    if not label.endswith("]"):
        return label
    found = _BINARY.search(label, max(label.rfind("\n"), 0))
    return label[: found.start()] if found and found.end() < len(label) - 1 else label
