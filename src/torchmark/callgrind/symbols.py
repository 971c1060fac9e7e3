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


# In this order. A path before what is known of a source tree differs from build to build; so does the binary behind. A
# file ends at the first colon: what comes after is the function's name, which may look like anything.
_REWRITES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"^[^:]+build/\.\./", "build/../"),
        (r"^[^:]+/build/aten/", "build/aten/"),
        (r"^[^:]+/(?=(?:Python|Objects|Modules|Include|Parser|Programs)/[^:]*\.[ch]:)", ""),
        (r"^[^:]+/(?:site|dist)-packages/", "site-packages/"),
        # The loop of a C++ snippet, whatever the snippet.
        (r"^[^:]+:(torchmark_loop)_[0-9a-f]{32}\b", r"snippet:\1"),
        (r"\s\[.+\]$", ""),
    )
)


def standardise(label: str) -> str:
    """A label that is the same for the same function of two builds or installations.

    >>> standardise("/tmp/build.1/Python-3.11.7/Modules/gcmodule.c:collect [/usr/lib/libpython3.11.so]")
    'Modules/gcmodule.c:collect'
    """
    for pattern, replacement in _REWRITES:
        label = pattern.sub(replacement, label)
    return label
