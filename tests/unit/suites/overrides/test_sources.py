from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

import torch

from torchmark.suites.overrides import tensors
from torchmark.suites.overrides.cases import quote


def test_a_type_is_quoted_to_the_letter_as_it_stands_in_its_file() -> None:
    text = textwrap.indent(inspect.getsource(tensors.SubWithTorchFunction).rstrip(), "    ")
    assert quote("SubWithTorchFunction").endswith(text)


def test_what_a_type_refers_to_comes_along_before_it_and_nothing_else() -> None:
    head, _, body = quote("TensorLike").partition("\n")
    assert head == "global handle_torch_function, unwrap, TensorLike"
    assert body.index("import handle_torch_function") < body.index("def unwrap") < body.index("class TensorLike")
    assert "TorchFunctionMode" not in body


def test_decorators_are_quoted_too() -> None:
    assert "@functools.cache\n    def derive(" in quote("derive")


def test_names_are_made_once_in_a_process_and_know_each_other() -> None:
    names: dict[str, Any] = {"torch": torch}
    # As the loop of a measurement has it: within a function.
    text = f"def setup():\n{textwrap.indent(quote('SubSubTensor', 'TensorLike'), '    ')}\n    return SubSubTensor"
    exec(text, names)
    setup = names["setup"]
    first = setup()
    assert setup() is first is names["SubSubTensor"]
    # Not that of a function's inside.
    assert first.__qualname__ == "SubSubTensor"
    assert issubclass(first, torch.Tensor)


def test_everything_in_the_file_can_be_quoted_by_itself() -> None:
    tree = ast.parse(inspect.getsource(tensors))
    defined = [node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    assert len(defined) > 10
    for name in (*defined, "DisableTorchFunctionSubclass"):
        names: dict[str, object] = {"torch": torch}
        exec(quote(name), names)
        assert name in names
