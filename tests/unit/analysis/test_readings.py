from __future__ import annotations

import dataclasses
import math

import pytest

from tests.made_histories import ADD, COUNTED, DAY, OTHERS, OWN, TIMED, make_day
from tests.sample_runs import COUNT, HOST, WALL, compile_costs, only, tally, times
from torchmark.analysis.history import find_differences, read_run
from torchmark.model.case import TimerArgs
from torchmark.model.history import Difference
from torchmark.model.judgement import Spread
from torchmark.model.node import Node
from torchmark.model.plan import Target
from torchmark.model.times import Times

SUBJECT = (ADD.suite, ADD.key, "")


def test_rounds_weigh_alike_however_many_samples_they_have() -> None:
    # Medians of rounds 2 and 4: 3, where the median of all samples is 2.
    (reading,) = read_run(only(ADD, WALL, times(1, 2.0, 2.0, 2.0, 2.0), times(1, 4.0))).values()
    assert reading.log_time == pytest.approx(math.log(3))
    assert reading.instructions is None


def test_counts_have_the_range_of_all_layouts_of_all_rounds_per_run() -> None:
    (reading,) = read_run(only(ADD, COUNT, tally(100, 900, 1000, 1100), tally(10, 120, 121, 122))).values()
    assert reading.instructions == Spread(12.1, 9.0, 12.2)
    assert reading.log_time is None


def test_what_is_compiled_is_read_once_it_is_compiled() -> None:
    (reading,) = read_run(only(ADD, WALL, compile_costs(times(10, 0.5)))).values()
    assert reading.log_time == pytest.approx(math.log(0.5))


@pytest.mark.parametrize("nothing", [Times(1, ()), Times(1, (0.0,))])
def test_without_samples_or_a_clock_that_moves_there_is_no_time(nothing: Times) -> None:
    (reading,) = read_run(only(ADD, WALL, nothing)).values()
    assert not reading.has(WALL)


def test_what_failed_is_a_gap() -> None:
    readings = read_run(make_day(0, {ADD: (None, 5000), OTHERS[0]: (None, None)}))
    assert [reading.has(WALL) for reading in readings.values()] == [False, False]
    assert [reading.has(COUNT) for reading in readings.values()] == [True, False]


def test_the_same_case_in_two_targets_is_two_subjects() -> None:
    assert list(read_run(make_day(0, {ADD: (1.0, 5)}, target=Target("new", "/opt/python")))) == [
        (ADD.suite, ADD.key, "new")
    ]


def test_all_that_differs_is_named() -> None:
    before = read_run(make_day(0, {ADD: (1.0, 5000)}))[SUBJECT]
    later = dataclasses.replace(
        TIMED, torch_version="2.14.0", torch_commit="def456", python_version="3.12.1", hash_seed="1",
        cpu_capability="AVX512", variables=(("OMP_NUM_THREADS", "1"), ("PATH", "/elsewhere")),
    )  # fmt: skip
    counted = dataclasses.replace(COUNTED, valgrind="3.23.0")
    host = dataclasses.replace(HOST, cpu_model="Another", compiler="g++ 13", system="Linux 6.2")
    redefined = dataclasses.replace(ADD, args=TimerArgs("x + 2"))
    day = make_day(1, {redefined: (1.0, 5000)}, timed=later, counted=counted, host=host, commit="beef")
    after = read_run(day)[SUBJECT]
    assert find_differences(before, after, [WALL]) == (
        Difference("cpu", HOST.cpu_model, "Another"),
        Difference("definition", "stmt: x + 1", "stmt: x + 2"),
        Difference("capability", "AVX2", "AVX512"),
        Difference("hash seed", "0", "1"),
        Difference("torch", "2.13.0", "2.14.0"),
        Difference("torch commit", "abc123", "def456"),
        Difference("Python", "3.11.7", "3.12.1"),
        Difference("$OMP_NUM_THREADS", None, "1"),
        Difference("commit", "c0ffee", "beef"),
        Difference("compiler", "g++ 12", "g++ 13"),
        Difference("system", HOST.system, "Linux 6.2"),
    )
    assert Difference("Valgrind", "3.22.0", "3.23.0") in find_differences(before, after, [COUNT])


def test_what_is_alike_or_only_elsewhere_is_no_difference() -> None:
    before, after = (read_run(make_day(day, {ADD: (1.0 + day, 5000)}))[SUBJECT] for day in (0, 1))
    assert find_differences(before, after, [WALL, COUNT]) == ()
    assert after.info.created - before.info.created == DAY
    assert after.target == OWN
    assert before.conditions(WALL) == after.conditions(WALL)


def test_the_processor_of_a_reading_is_that_of_its_node() -> None:
    day, later = make_day(0, {ADD: (1.0, 5000)}), make_day(1, {ADD: (1.0, 5000)})
    on = [dataclasses.replace(one, node=Node("a", "EPYC")) for one in later.outcomes]
    before, after = (read_run(one)[SUBJECT] for one in (day, dataclasses.replace(later, outcomes=tuple(on))))
    assert before.conditions(WALL) != after.conditions(WALL)
    assert find_differences(before, after, [WALL]) == (Difference("cpu", HOST.cpu_model, "EPYC"),)
    same = [dataclasses.replace(one, node=Node("b", HOST.cpu_model)) for one in later.outcomes]
    alike = read_run(dataclasses.replace(later, outcomes=tuple(same)))[SUBJECT]
    assert before.conditions(WALL) == alike.conditions(WALL)


def test_a_reading_is_of_the_rounds_that_are_alike() -> None:
    run = only(ADD, WALL, times(1, 2.0), times(1, 8.0), times(1, 2.0))
    nodes = Node("a", "EPYC"), Node("b", "Xeon"), Node("c", "EPYC")
    pairs = zip(run.outcomes, nodes, strict=True)
    spread_over = dataclasses.replace(run, outcomes=tuple(dataclasses.replace(one, node=node) for one, node in pairs))
    (reading,) = read_run(spread_over).values()
    assert reading.log_time == pytest.approx(math.log(2))
    assert reading.timed_on == "EPYC"
