"""Who counts alike, and who is of one kind."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.model.environment import Environment
from torchmark.model.plan import Node
from torchmark.runner.cluster.protocol import (
    PATIENCE_S,
    Admission,
    CanaryCounted,
    MachineKind,
    Surveyed,
    classify,
)

A, B = MachineKind(("a",)), MachineKind(("b",))
TIMES = Environment("/bin/python", "3.12", "2.9", cpu_capability="AVX512", torch_commit="abc", torch_build="Release")
COUNTS = dataclasses.replace(TIMES, cpu_capability="AVX2", valgrind="3.22", hash_seed="0")
SURVEYED = Surveyed(Node("n", "EPYC"), "1.0", "glibc 2.36 x86_64", (TIMES,))
COUNTED = CanaryCounted((1000,), (COUNTS,))


def make_admission(*counts: int, kind: MachineKind = A) -> Admission:
    """Nodes 0, 1, … that counted the canary at 0, 1, … seconds."""
    admission = Admission()
    for number, count in enumerate(counts):
        admission.add(str(number), kind, (count,), float(number))
    return admission


def test_when_all_were_heard_most_are_right() -> None:
    fit, odd = make_admission(5, 7, 7).settle(0, 3.0)
    assert fit == {"1": A, "2": A}
    assert odd == {"0": (7,)}


def test_of_equally_many_the_first_are_right() -> None:
    fit, odd = make_admission(5, 7, 7, 5).settle(0, 4.0)
    assert set(fit) == {"0", "3"}
    assert odd == dict.fromkeys("12", (5,))


@pytest.mark.parametrize(("silent", "is_settled"), [(0, True), (1, True), (2, False)])
def test_nobody_waits_once_the_silent_cannot_change_who_is_right(silent: int, is_settled: bool) -> None:
    fit, _ = make_admission(7, 7).settle(silent, 3.0)
    assert bool(fit) is is_settled


def test_those_that_wait_do_so_from_the_first_time_they_were_heard() -> None:
    admission = make_admission(7)
    assert admission.settle(5, PATIENCE_S - 1.0) == ({}, {})
    assert admission.is_waiting
    # Another process of the same node counted the canary.
    admission.add("0", A, (7,), PATIENCE_S - 1.0)
    assert admission.settle(5, PATIENCE_S) == ({"0": A}, {})
    assert not admission.is_waiting


def test_where_it_is_known_who_is_right_nobody_waits() -> None:
    admission = make_admission(7)
    admission.settle(0, 1.0)
    admission.add("late", A, (7,), 2.0)
    admission.add("odd", A, (5,), 2.0)
    assert admission.settle(9, 2.0) == ({"late": A}, {"odd": (7,)})


def test_kinds_have_nothing_to_say_about_each_other() -> None:
    admission = make_admission(7, 7)
    admission.add("other", B, (5,), 0.0)
    assert admission.settle(0, 3.0) == ({"0": A, "1": A, "other": B}, {})


def test_who_is_gone_is_not_counted() -> None:
    admission = make_admission(5, 5, 7)
    admission.drop("0")
    admission.drop("1")
    admission.drop("unknown")
    assert admission.settle(0, 3.0) == ({"2": A}, {})


@given(st.lists(st.tuples(st.sampled_from([A, B]), st.integers(0, 2)), max_size=12), st.integers(0, 5))
def test_each_is_let_in_or_set_aside_or_waits_and_those_let_in_count_alike(
    counted: list[tuple[MachineKind, int]], silent: int
) -> None:
    admission = Admission()
    for number, (kind, count) in enumerate(counted):
        admission.add(str(number), kind, (count,), 0.0)
    fit, odd = admission.settle(silent, 1.0)
    late_fit, late_odd = admission.settle(silent, PATIENCE_S)
    seen = [*fit, *late_fit, *odd, *late_odd]
    assert sorted(map(int, seen)) == list(range(len(counted)))
    for kind in (A, B):
        assert len({counted[int(node)][1] for node, of in (fit | late_fit).items() if of == kind}) <= 1


# --- kinds -------------------------------------------------------------------------------------------


def test_equal_nodes_are_of_one_kind_whatever_they_are_called_and_wherever_they_keep_things() -> None:
    elsewhere = dataclasses.replace(COUNTS, variables=(("LD_LIBRARY_PATH", "/opt/lib"),))
    other = dataclasses.replace(SURVEYED, node=Node("m", "EPYC"))
    assert classify(SURVEYED, COUNTED, timing=True) == classify(other, CanaryCounted((7,), (elsewhere,)), timing=True)


@pytest.mark.parametrize(
    "changes",
    [
        {"python": "/usr/bin/python"},
        {"python_version": "3.13"},
        {"torch_version": "2.10"},
        {"torch_commit": "def"},
        {"torch_build": "Debug"},
        {"cpu_capability": "DEFAULT"},
        {"valgrind": "3.24"},
        {"hash_seed": "1"},
        {"variables": (("OMP_NUM_THREADS", "2"),)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_counts_depend_on_makes_another_kind(changes: dict[str, str]) -> None:
    other = CanaryCounted((1000,), (dataclasses.replace(COUNTS, **changes),))  # type: ignore[arg-type]
    mine, theirs = classify(SURVEYED, COUNTED, timing=False), classify(SURVEYED, other, timing=False)
    assert mine != theirs
    assert len(set(mine) - set(theirs)) == 1


@pytest.mark.parametrize(
    "other",
    [
        dataclasses.replace(SURVEYED, node=Node("n", "Xeon")),
        dataclasses.replace(SURVEYED, environments=(dataclasses.replace(TIMES, cpu_capability="AVX2"),)),
    ],
)
def test_the_processor_makes_another_kind_where_anything_is_timed(other: Surveyed) -> None:
    assert classify(SURVEYED, COUNTED, timing=True) != classify(other, COUNTED, timing=True)
    assert classify(SURVEYED, COUNTED, timing=False) == classify(other, COUNTED, timing=False)


def test_the_system_makes_another_kind() -> None:
    other = dataclasses.replace(SURVEYED, libc="glibc 2.41 x86_64")
    assert classify(SURVEYED, COUNTED, timing=False) != classify(other, COUNTED, timing=False)
