from __future__ import annotations

import io
import pickle
from typing import Any

import pytest
import torch
import torch.utils.benchmark as reference

import torchmark
from torchmark.api.timer_engines import CopyIfCallgrind, Serialization, pack_globals
from torchmark.errors import UsageError

KINDS: list[tuple[Any, Serialization]] = [
    ("text", Serialization.PICKLE),
    (b"bytes", Serialization.PICKLE),
    (True, Serialization.PICKLE),
    (1, Serialization.PICKLE),
    (1.5, Serialization.PICKLE),
    (1j, Serialization.PICKLE),
    (None, Serialization.PICKLE),
    ([1, (2, {"a": None})], Serialization.PICKLE),
    (torch.ones(2), Serialization.TORCH),
    ({"a": [torch.ones(2)]}, Serialization.TORCH),
    (torch.nn.Linear(1, 1), Serialization.TORCH),
]


@pytest.mark.parametrize(("value", "expected"), KINDS, ids=lambda v: type(v).__name__)
def test_what_can_be_copied_and_how(value: Any, expected: Serialization) -> None:
    wrapped = CopyIfCallgrind(value, setup="import x")
    assert wrapped.serialization is expected
    assert wrapped.value is value
    assert wrapped.setup == "import x"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_scripted_modules_travel_by_themselves_only() -> None:
    scripted = torch.jit.script(torch.nn.ReLU())
    assert CopyIfCallgrind(scripted).serialization is Serialization.TORCH_JIT
    with pytest.raises(UsageError, match="not part of another"):
        CopyIfCallgrind([scripted])


class Wrapped(list[int]):
    pass


@pytest.mark.parametrize("value", [object(), {1}, lambda: 0, [object()], Wrapped(), {"a": {2}}])
def test_what_cannot_be_copied_is_told_with_names_that_can_be_read(value: Any) -> None:
    with pytest.raises(ValueError, match="Unsupported type: <class") as caught:
        CopyIfCallgrind(value)
    assert "`collect_callgrind` restricts globals to the following types:\n  str, bytes, bool, int" in str(caught.value)
    assert "<class" not in str(caught.value).partition("\n")[2]


def test_the_reference_prints_classes_there() -> None:
    with pytest.raises(ValueError, match="Unsupported type") as caught:
        reference.CopyIfCallgrind(object())
    assert "(<class" in str(caught.value).partition("\n")[2]


def test_a_timer_sees_the_values_themselves() -> None:
    timer = torchmark.Timer("assert x == 1 and y == 2", globals={"x": CopyIfCallgrind(1), "y": 2})
    timer.timeit(1)
    assert CopyIfCallgrind.unwrap_all({"x": CopyIfCallgrind(1), "y": 2}) == {"x": 1, "y": 2}


def test_globals_are_packed_one_behind_the_other() -> None:
    view = torch.arange(6.0)[1::2]
    globals = {
        "torch": torch,
        "__builtins__": __builtins__,
        "n": CopyIfCallgrind(7),
        "view": CopyIfCallgrind(view, setup="    import a\n    import b"),
    }
    (first, second), data = pack_globals(globals)
    assert (first.name, first.form, first.setup) == ("n", "pickle", None)
    assert pickle.loads(data[: first.size_bytes]) == 7
    assert (second.form, second.setup) == ("torch", "import a\nimport b")
    copy = torch.load(io.BytesIO(data[first.size_bytes :]), weights_only=False)
    assert copy.stride() == (2,)
    assert copy.storage_offset() == 1
    assert len(data) == first.size_bytes + second.size_bytes


@pytest.mark.parametrize(
    ("globals", "problem"),
    [
        ({"x": 1}, "requires that globals be wrapped in `CopyIfCallgrind` so that serialization is explicit"),
        ({"torch": object()}, "does not support mocking out `torch`"),
    ],
)
def test_globals_that_cannot_travel_are_refused_as_the_reference_does(globals: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        torchmark.Timer("pass", globals=globals).collect_callgrind()


def test_a_value_that_does_not_pickle_is_told_by_name() -> None:
    module = torch.nn.Linear(1, 1)
    module.trouble = lambda: 0  # type: ignore[assignment]
    with pytest.raises(UsageError, match="The global `m` cannot be copied"):
        pack_globals({"m": CopyIfCallgrind(module)})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"number": 0}, "`number` must be at least 1"),
        ({"repeats": 0}, "If specified, `repeats` must be >= 1"),
        ({"layouts": 0}, "`layouts` must be at least 1"),
        ({"timeout_s": -1}, "`timeout_s` must be a number of seconds"),
        ({"timeout_s": float("nan")}, "`timeout_s` must be a number of seconds"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        torchmark.Timer("pass").collect_callgrind(**options)


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(UsageError, match="contains itself"):
        CopyIfCallgrind(value)


def test_a_callable_cannot_be_counted() -> None:
    with pytest.raises(UsageError, match="A callable cannot be counted"):
        torchmark.Timer(lambda: 0).collect_callgrind()
