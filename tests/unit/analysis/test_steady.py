from __future__ import annotations

import pytest

from torchmark.analysis.verdict.judge import find_steady_delta
from torchmark.model.judgement import FunctionChange


def change(name: str, delta: float) -> FunctionChange:
    return FunctionChange(name, "interpreter", 100.0, 100.0 + delta)


@pytest.mark.parametrize(
    "name", ["_PyType_Lookup", "unicodekeys_lookup_unicode", "_int_free", "malloc", "PyObject_Free"]
)
def test_what_depends_on_addresses_is_left_out(name: str) -> None:
    assert find_steady_delta([change(name, 400.0), change("_PyEval_EvalFrameDefault", 50.0)]) == 50.0


@pytest.mark.parametrize("name", ["_PyEval_EvalFrameDefault", "at::native::malloc_it", "c10::alloc_cpu", "my_malloc"])
def test_what_does_not_is_counted(name: str) -> None:
    assert find_steady_delta([change(name, -7.0)]) == -7.0


def test_nothing_is_no_difference() -> None:
    assert find_steady_delta([]) == 0
