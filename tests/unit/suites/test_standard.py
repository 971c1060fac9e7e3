from __future__ import annotations

import collections
import hashlib
import subprocess
import sys

import pytest

from torchmark.define.discovery import Discovered, discover, list_suites
from torchmark.model.task import Language


@pytest.fixture(scope="module")
def standard() -> Discovered:
    return discover(["standard"])


def test_it_has_no_faults_and_181_cases(standard: Discovered) -> None:
    assert standard.faults == ()
    assert len(standard.cases) == 181


def test_results_taken_elsewhere_belong_to_the_same_cases_in_the_same_order(standard: Discovered) -> None:
    keys = "".join(case.key for case in standard.cases)
    assert hashlib.md5(keys.encode()).hexdigest() == "4d55e8abf881ad38bb617a96714c1296"


def test_it_covers_both_languages(standard: Discovered) -> None:
    languages = collections.Counter(case.args.language for case in standard.cases)
    assert languages == {Language.PYTHON: 86, Language.CPP: 95}


def test_it_covers_eager_and_torchscript_forward_and_backward(standard: Discovered) -> None:
    labels = [case.autolabels.as_dict for case in standard.cases]
    assert collections.Counter((label["runtime"], label["autograd"]) for label in labels) == {
        ("Eager", "Forward"): 139,
        ("TorchScript", "Forward"): 26,
        ("Eager", "Forward + Backward"): 8,
        ("TorchScript", "Forward + Backward"): 8,
    }


def test_no_suite_needs_torch_to_be_listed() -> None:
    assert {"standard", "modern"} <= set(list_suites())
    code = (
        "import sys; from torchmark.define.discovery import discover, list_suites; "
        "found = discover(list_suites()); print(len(found.cases) > 181, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["True", "False"]
