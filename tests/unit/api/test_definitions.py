from __future__ import annotations

from pathlib import Path

import pytest
import torch

import torchmark
from torchmark import GroupedSetup, GroupedStmts, Language, Timer, TimerArgs, materialize

SETUP = GroupedSetup("x = torch.ones(1)", "auto x = torch::ones({1});")
TWICE = GroupedStmts("y = x * 2", "auto y = x * 2;", SETUP, "f(x) -> y", torchscript=True)


def test_a_definition_nested_or_flat_becomes_arguments_of_timers() -> None:
    nested = materialize({"a": {None: TWICE, "b": TimerArgs("1")}})
    assert nested == materialize(torchmark.flatten({"a": {None: TWICE, "b": TimerArgs("1")}}))
    assert [(label, variant.as_dict["runtime"], args.language) for label, variant, args in nested] == [
        (("a",), "Eager", Language.PYTHON),
        (("a",), "Eager", Language.CPP),
        (("a",), "TorchScript", Language.PYTHON),
        (("a",), "TorchScript", Language.CPP),
        (("a", "b"), "", Language.PYTHON),
    ]


def test_python_and_cpp_load_the_same_model_which_is_there_and_runs() -> None:
    cases = [args for _, variant, args in materialize({"a": TWICE}) if variant.as_dict["runtime"] == "TorchScript"]
    paths = {line.split('"')[1] for args in cases for line in args.setup.splitlines() if '.pt"' in line}
    (path,) = paths
    assert Path(path).exists()
    assert Timer(cases[0].stmt, cases[0].setup).timeit(1).median > 0


def test_a_model_that_torchscript_refuses_raises_when_it_is_run_and_not_before() -> None:
    group = GroupedStmts("y = x + len(locals())", "auto y = x;", SETUP, "f(x) -> y", torchscript=True)
    eager, _, script, cpp = (args for _, _, args in materialize({"a": group}))
    assert Timer(eager.stmt, eager.setup).timeit(1).median > 0
    with pytest.raises(RuntimeError, match=r"(?s)There is no TorchScript of this model.*locals"):
        Timer(script.stmt, script.setup).timeit(1)
    assert cpp.setup.startswith('TORCH_CHECK(false, "There is no TorchScript of this model.')


def test_the_programs_own_random_numbers_stay_what_they_are() -> None:
    group = GroupedStmts("y = x * 3", setup=SETUP, signature="f(x) -> y", torchscript=True)
    torch.manual_seed(5)
    expected = torch.rand(2)
    torch.manual_seed(5)
    materialize({"a": group})
    assert torch.equal(torch.rand(2), expected)
