from __future__ import annotations

import ast
import collections
import inspect
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch

from torchmark.analysis import overrides as analysis
from torchmark.define.discovery import Discovered, discover
from torchmark.define.expand import expand
from torchmark.model.plan import AutogradMode, Case
from torchmark.model.task import Language
from torchmark.suites.overrides import cases as suite
from torchmark.suites.overrides import tensors
from torchmark.suites.overrides.cases import quote

FOUR = ("Tensor", "SubTensor", "WithTorchFunction", "SubWithTorchFunction")


@pytest.fixture(scope="module")
def found() -> Discovered:
    return discover(["overrides"])


def by_call(found: Discovered) -> dict[str, list[str]]:
    calls: dict[str, list[str]] = collections.defaultdict(list)
    for case in found.cases:
        calls[case.label[0]].append(case.label[1])
    return calls


def test_it_has_no_faults_and_79_cases_with_labels_of_their_own(found: Discovered) -> None:
    assert found.faults == ()
    assert len({case.label for case in found.cases}) == len(found.cases) == 79


def test_all_are_python_forward_in_one_thread(found: Discovered) -> None:
    assert {case.args.language for case in found.cases} == {Language.PYTHON}
    assert {case.autolabels.autograd for case in found.cases} == {AutogradMode.FORWARD}
    assert {case.args.num_threads for case in found.cases} == {1}


def test_every_setup_with_its_statement_compiles_as_a_module_and_within_a_function(found: Discovered) -> None:
    for case in found.cases:
        text = f"{case.args.setup}\n{case.args.stmt}"
        compile(text, "<module>", "exec", dont_inherit=True)
        function = ast.parse("def f():\n    pass")
        assert isinstance(function.body[0], ast.FunctionDef)
        # As Python 3.9 reads it.
        function.body[0].body = ast.parse(text, feature_version=(3, 9)).body
        compile(function, "<function>", "exec", dont_inherit=True)


def test_no_setup_needs_this_package(found: Discovered) -> None:
    assert not [case.label for case in found.cases if "torchmark" in case.args.setup]


def test_the_four_classic_types_are_those_of_old_under_torch_add(found: Discovered) -> None:
    classic = [case for case in found.cases if suite.CLASSIC in case.tags]
    assert [case.label for case in classic] == [("add", name) for name in FOUR]
    assert {case.args.stmt for case in classic} == {"torch.add(x, y)"}
    assert all("([1.0])" in case.args.setup and "([2.0])" in case.args.setup for case in classic)


def test_every_call_is_made_with_a_tensor_subclasses_and_a_tensor_like(found: Discovered) -> None:
    calls = by_call(found)
    for call in suite.CALLS:
        assert {"Tensor", "SubTensor", "SubWithTorchFunction", "TensorLike"} <= set(calls[call])


def test_operands_are_mixed_in_both_orders(found: Discovered) -> None:
    pairs = {tuple(label.split(", ")) for label in by_call(found)["mixed add"]}
    assert len(pairs) == 12
    assert {(second, first) for first, second in pairs} == pairs


def test_something_around_the_call_is_entered_in_the_setup(found: Discovered) -> None:
    for call in ("disabled add", "function mode add", "dispatch mode add"):
        around = [case for case in found.cases if case.label[0] == call]
        assert {case.args.stmt for case in around} == {"torch.add(x, y)"}
        assert all(case.args.setup.splitlines()[-1].startswith("entered = Entered(") for case in around)


def test_tags_mean_the_same_where_results_are_analysed() -> None:
    for name in ("PLAIN", "SUBCLASS", "TENSOR_LIKE", "CLASSIC", "GIVEN"):
        assert getattr(suite, name) == getattr(analysis, name)


def test_every_case_is_held_against_a_plain_one(found: Discovered) -> None:
    plain = analysis.find_plain(found.cases)
    alone = [case for case in found.cases if case not in plain]
    assert [case.label for case in alone] == [(call, "Tensor") for call in suite.CALLS]
    assert {case.args.stmt for case in plain if case.label[0] == "mixed add"} == {"torch.add(x, y)"}


def run(case: Case) -> object:
    names: dict[str, object] = {"torch": __import__("torch")}
    exec(case.args.setup, names)
    return eval(case.args.stmt, names)


def test_a_type_of_the_users_is_measured_in_all_calls_and_with_tensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_mine.py").write_text(
        "import torch\nclass Outer:\n    class Mine(torch.Tensor):\n        pass\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    kind = suite.foreign("of_mine:Outer.Mine")
    assert kind is not None
    cases = expand(suite.define_calls(kind), suite="overrides")
    assert len(cases) == len(suite.CALLS) + 2
    assert all(case.label[0] in suite.CALLS or "Tensor" in case.label[1] for case in cases)
    assert {type(run(case)).__name__ for case in cases} == {"Mine", "Size"}


@pytest.mark.parametrize("spelling", ["Mine", "module:", ":Mine", "a b:Mine", "module:Mine()", "m:1", "m;import os:M"])
def test_what_is_no_module_and_class_is_no_type(spelling: str) -> None:
    assert suite.foreign(spelling) is None


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
