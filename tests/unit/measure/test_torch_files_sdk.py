from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch

from torchmark.measure import torch_files
from torchmark.measure.torch_files import USUAL_STANDARD, read_sdk


def test_the_facts_are_those_of_the_torch_that_is_imported() -> None:
    facts = read_sdk()
    assert facts.python == sys.executable
    assert facts.version == torch.__version__
    assert os.path.samefile(facts.folder, os.path.dirname(torch.__file__))
    assert facts.cxx11_abi is torch.compiled_with_cxx11_abi()
    assert "-O" in facts.cxx_flags
    assert facts.cxx_standard >= 17


def test_the_standard_is_the_newest_that_torchs_own_tool_names(tmp_path: Path) -> None:
    assert torch_files._read_standard(str(tmp_path)) == USUAL_STANDARD
    (tmp_path / "utils").mkdir()
    (tmp_path / "utils" / "cpp_extension.py").write_text("flags = ['-std=c++14', '-std=c++20', '-std=c++2a']")
    assert torch_files._read_standard(str(tmp_path)) == 20


def test_a_torch_that_does_not_tell_its_flags_is_optimised_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.__config__, "_cxx_flags")
    assert read_sdk().cxx_flags == "-O2"
