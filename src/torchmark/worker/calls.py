"""Makes calls of Python functions visible to Callgrind, which sees compiled functions only."""

from __future__ import annotations

import ctypes
import sys
from types import CodeType

from torchmark.measure.source import locate

# As many as `callgrind/frames.c` tells apart.
FUNCTIONS = 1024
# Where in a frame its code object is, in words. Up to 3.10 a frame is an object with a head of three words and the
# frame before it; in 3.11 the function, its globals, built-ins and locals come first; after that the code does.
CODE_AT = 4 if sys.version_info < (3, 12) else 0
# Python 3.15 renamed the functions that get and set the evaluation of frames. The old names go away in 3.20.
PREFIX = "_Py" if sys.version_info < (3, 15) else "PyUnstable_"


class Calls:
    """Python functions pass through compiled ones of their own, while they are shown.

    That changes how Python calls them: not within one evaluation loop any more, but each in one of its own.
    """

    def __init__(self, library: str) -> None:
        api, loaded = ctypes.pythonapi, ctypes.PyDLL(library)
        api.PyInterpreterState_Get.restype = ctypes.c_void_p
        get = api[f"{PREFIX}InterpreterState_GetEvalFrameFunc"]
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        self._set = api[f"{PREFIX}InterpreterState_SetEvalFrameFunc"]
        self._set.restype, self._set.argtypes = None, [ctypes.c_void_p, ctypes.c_void_p]
        self._interpreter = ctypes.c_void_p(api.PyInterpreterState_Get())
        self._usual = ctypes.c_void_p(get(self._interpreter))
        self._ours = ctypes.cast(loaded.torchmark_eval, ctypes.c_void_p)
        self._codes = (ctypes.c_void_p * FUNCTIONS).in_dll(loaded, "torchmark_codes")
        self._known = ctypes.c_int.in_dll(loaded, "torchmark_known")
        prepare = loaded.torchmark_prepare
        prepare.restype, prepare.argtypes = None, [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        prepare(self._usual, CODE_AT, id(CodeType), ctypes.cast(api.Py_IncRef, ctypes.c_void_p))

    def show(self) -> None:
        """From here on."""
        self._set(self._interpreter, self._ours)

    def hide(self) -> None:
        """No longer."""
        self._set(self._interpreter, self._usual)

    def list_functions(self) -> tuple[tuple[str, str, int], ...]:
        """Those that were called, by their numbers: name, file, line."""
        return tuple(map(_describe, filter(None, self._codes[: self._known.value])))


def _describe(address: int) -> tuple[str, str, int]:
    code = ctypes.cast(address, ctypes.py_object).value
    # From 3.11 on, with the classes that a function is in.
    name = getattr(code, "co_qualname", code.co_name)
    return (name, *locate(code.co_filename, code.co_firstlineno))
