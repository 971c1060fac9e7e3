from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from torchmark.analysis.diagnose import diagnose
from torchmark.model.environment import Finding, FindingStatus, Machine, Tool, TorchBuild

GOOD = Machine(
    system="Linux",
    python="CPython 3.11",
    cpu_model="a CPU",
    cores_online=8,
    cores_allowed=8,
    governor="performance",
    turbo=False,
    load=0.1,
    virtual=False,
    steal_share=0.0,
    aslr=True,
    aslr_can_be_disabled=True,
    valgrind=Tool("/usr/bin/valgrind", "valgrind-3.19.0"),
    compiler=Tool("/usr/bin/c++", "c++ 12"),
    py_spy=Tool("/usr/bin/py-spy", "py-spy 0.4"),
    ptrace_allowed=True,
    torch=TorchBuild("2.13.0", debug=False, cpu_capability="AVX2", num_threads=8, accelerator=None),
)


def finding(topic: str, **changes: Any) -> Finding:
    findings = diagnose(dataclasses.replace(GOOD, **changes))
    return next(f for f in findings if f.topic == topic)


def test_a_good_machine_has_nothing_but_good_findings() -> None:
    assert {f.status for f in diagnose(GOOD)} == {FindingStatus.GOOD}


def test_a_machine_that_tells_nothing_gets_findings_and_no_error() -> None:
    findings = diagnose(Machine(system="Plan 9", python="CPython 3.11"))
    assert len(findings) == len(diagnose(GOOD))
    assert all(f.fact for f in findings)
    assert all(f.advice for f in findings if f.status is not FindingStatus.GOOD)


@pytest.mark.parametrize(
    ("topic", "changes", "word"),
    [
        ("torch", {"torch": None, "torch_problem": "No module named 'torch'"}, "No module named"),
        ("torch", {"torch": dataclasses.replace(GOOD.torch, debug=True) if GOOD.torch else None}, "debug build"),
        ("cores", {"cores_allowed": 1}, "1 of 8"),
        ("cores", {"cpu_quota": 1.5}, "limited to 1.5 cores"),
        ("load", {"load": 2.5}, "2.50"),
        ("hypervisor", {"virtual": True, "steal_share": 0.02}, "2.00%"),
        ("frequency governor", {"governor": "powersave"}, "powersave"),
        ("address randomisation", {"aslr_can_be_disabled": False}, "cannot"),
        ("Valgrind", {"valgrind": None}, "not found"),
        ("Valgrind", {"valgrind": Tool("/v", None)}, "does not run"),
        ("C++ compiler", {"compiler": None}, "not found"),
        ("C++ compiler", {"compiler": Tool("/c", None)}, "does not run"),
        ("py-spy", {"py_spy": None}, "not found"),
        ("ptrace", {"ptrace_allowed": False}, "refused"),
    ],
)
def test_what_is_lacking_is_a_problem_with_advice(topic: str, changes: dict[str, Any], word: str) -> None:
    found = finding(topic, **changes)
    assert found.status is FindingStatus.PROBLEM
    assert word in found.fact
    assert found.advice


@pytest.mark.parametrize(
    ("topic", "changes"),
    [
        ("turbo", {"turbo": True}),
        ("hypervisor", {"virtual": True}),
        ("CPU capability", {"torch": dataclasses.replace(GOOD.torch, cpu_capability="AVX512") if GOOD.torch else None}),
    ],
)
def test_what_one_can_live_with_is_a_note_with_advice(topic: str, changes: dict[str, Any]) -> None:
    found = finding(topic, **changes)
    assert found.status is FindingStatus.NOTE
    assert found.advice


def test_a_quota_as_large_as_the_cores_limits_nothing() -> None:
    assert finding("cores", cpu_quota=8.0).status is FindingStatus.GOOD
