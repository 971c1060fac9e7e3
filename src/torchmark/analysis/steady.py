"""What of a difference in instructions cannot come from where things happen to lie in memory.

Python looks attributes of types up in a cache whose places depend on addresses of names. Two that share a place drive
each other out, and each look-up then goes the long way, hundreds of instructions, in all layouts of one process alike.
Dictionaries and allocators depend on addresses and on sizes of heaps in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from torchmark.model.judgement import FunctionChange

# By names without parameters. Seen to differ between copies of one environment in folders of other lengths: counts of
# calls through Python differed by up to 0.9 %, and without these functions by less than 0.1 %.
_UNSTEADY = re.compile(
    r"_PyType_Lookup|find_name_in_mro|assign_version_tag|_Py_dict_lookup|_?PyDict_GetItem_KnownHash|PyErr_Occurred"
    r"|(?:unicodekeys|dictkeys|lookdict)\w*|insertdict|_?PyObject_(?:Malloc|Free|Realloc)|allocate_from_new_pool"
    r"|unicode_dealloc|_Py_Dealloc|(?:__libc_|_int_)?(?:malloc|free|calloc|realloc|memalign)|unlink_chunk"
    r"|malloc_consolidate|posix_memalign|_mid_memalign|siphash13|unicode_eq|__memcmp\w*|PyType_IsSubtype"
)


def find_steady_delta(functions: Iterable[FunctionChange]) -> float:
    """How many instructions more there are in all other functions."""
    return sum(one.delta for one in functions if not _UNSTEADY.fullmatch(one.function))
