from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.made_contrasts import count_functions, counted_run
from tests.sample_runs import ADD, HOST, MODEL, WALL, only, times
from torchmark.analysis.verdict.comparable import RunTarget, find_case_obstacles, find_obstacles, find_place_obstacles
from torchmark.model.caveats import Incomparable
from torchmark.model.outcome import Outcome
from torchmark.model.plan import Artefact, Case, Check, Node, Target
from torchmark.model.run import Run

TALLY = count_functions(400, 1000)
BASE = counted_run("base", TALLY)


def obstacles(head: Run, base: Run = BASE) -> tuple[Incomparable, ...]:
    return find_obstacles(RunTarget(base, Target()), RunTarget(head, Target()))


def test_another_torch_or_python_is_what_is_compared() -> None:
    versions = {"torch_version": "1.13", "python_version": "3.9", "torch_commit": "0", "torch_build": ""}
    changes: dict[str, Any] = {**versions, "python": "/other"}
    assert obstacles(counted_run("head", TALLY, **changes)) == ()


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"cpu_capability": "AVX512"}, Incomparable("capability", "AVX2", "AVX512")),
        ({"hash_seed": "1"}, Incomparable("hash_seed", "0", "1")),
        ({"valgrind": "valgrind-3.22.0"}, Incomparable("valgrind", "valgrind-3.19.0", "valgrind-3.22.0")),
        (
            {"variables": (("OMP_NUM_THREADS", "2"),)},
            Incomparable("variables", "no OMP_NUM_THREADS", "OMP_NUM_THREADS=2"),
        ),
    ],
)
def test_what_changes_numbers_by_itself_is_an_obstacle_in_either_direction(
    changes: dict[str, Any], found: Incomparable
) -> None:
    other = counted_run("head", TALLY, **changes)
    assert obstacles(other) == (found,)
    assert obstacles(BASE, other) == (Incomparable(found.what, found.head, found.base),)
    assert obstacles(other, other) == ()


def test_another_processor_is_an_obstacle_and_an_unknown_one_is_not() -> None:
    def on(cpu: str | None) -> Run:
        host = dataclasses.replace(BASE.info.host, cpu_model=cpu)
        return dataclasses.replace(BASE, info=dataclasses.replace(BASE.info, host=host))

    assert obstacles(on("Another")) == (Incomparable("cpu", "A Fine CPU @ 2.30GHz", "Another"),)
    assert obstacles(on(None)) == ()


@pytest.mark.parametrize("name", ["TMPDIR", "LD_LIBRARY_PATH", "TORCH_HOME", "PYTHONHASHSEED"])
def test_where_things_are_is_no_obstacle(name: str) -> None:
    assert obstacles(counted_run("head", TALLY, variables=((name, "/here"),))) == ()


def test_what_is_unknown_on_one_side_is_no_obstacle() -> None:
    assert obstacles(counted_run("head", TALLY, cpu_capability=None, hash_seed=None, valgrind=None)) == ()


def test_a_run_without_outcomes_has_no_obstacles() -> None:
    assert obstacles(dataclasses.replace(BASE, outcomes=())) == ()


@pytest.mark.parametrize(
    ("head", "texts"),
    [
        (dataclasses.replace(ADD, args=dataclasses.replace(ADD.args, stmt="x + 2")), ("stmt: x + 1", "stmt: x + 2")),
        (dataclasses.replace(ADD, args=dataclasses.replace(ADD.args, setup="x = 1")), ("setup: pass", "setup: x = 1")),
        (
            dataclasses.replace(ADD, artefact=Artefact("m", "s")),
            ("artefact: None", "artefact: Artefact(file='m', source='s')"),
        ),
    ],
)
def test_another_text_is_an_obstacle_that_tells_both(head: Case, texts: tuple[str, str]) -> None:
    assert find_case_obstacles(ADD, head) == (Incomparable("definition", *texts),)


def test_tags_files_and_checks_are_not_measured() -> None:
    assert find_case_obstacles(ADD, dataclasses.replace(ADD, tags=("x",), suite="s", check=Check("a", "b"))) == ()
    assert find_case_obstacles(MODEL, MODEL) == ()


def test_counts_in_other_layouts_or_of_other_numbers_of_runs_are_not_alike() -> None:
    (found,) = find_case_obstacles(ADD, ADD, TALLY, count_functions(400, 1000, layouts=2))
    assert found == Incomparable("layouts", "100 runs in layouts 1, 2, 3", "100 runs in layouts 1, 2")
    (found,) = find_case_obstacles(ADD, ADD, TALLY, count_functions(400, 1000, number=10))
    assert found.head == "10 runs in layouts 1, 2, 3"
    assert find_case_obstacles(ADD, ADD, TALLY, TALLY) == find_case_obstacles(ADD, ADD, TALLY, None) == ()


def timed(*nodes: Node | None) -> tuple[Outcome, ...]:
    run = only(ADD, WALL, *(times(1, 1.0) for _ in nodes))
    return tuple(dataclasses.replace(one, node=node) for one, node in zip(run.outcomes, nodes, strict=True))


EPYC, XEON = Node("a", "EPYC"), Node("b", "Xeon")


def test_a_case_is_held_to_the_nodes_of_its_own_times() -> None:
    assert find_place_obstacles(timed(EPYC), HOST, timed(XEON), HOST) == (Incomparable("cpu", "EPYC", "Xeon"),)
    assert find_place_obstacles(timed(EPYC), HOST, timed(Node("z", "EPYC")), HOST) == ()
    assert find_place_obstacles(timed(EPYC), HOST, timed(None), HOST)[0].head == HOST.cpu_model
    assert find_place_obstacles(timed(EPYC), HOST, timed(Node("z")), HOST) == ()
    assert find_place_obstacles(timed(EPYC), HOST, (), HOST) == ()


def test_counts_on_nodes_are_held_to_instruction_sets_and_not_to_processors() -> None:
    def counted(node: Node, **changes: Any) -> tuple[Outcome, ...]:
        return tuple(dataclasses.replace(one, node=node) for one in counted_run("x", TALLY, **changes).outcomes)

    assert find_place_obstacles(counted(EPYC), HOST, counted(XEON), HOST) == ()
    found = find_place_obstacles(counted(EPYC), HOST, counted(EPYC, cpu_capability="AVX512"), HOST)
    assert found == (Incomparable("capability", "AVX2", "AVX512"),)


def test_only_what_no_value_is_common_of_is_an_obstacle_to_all() -> None:
    def on(*nodes: Node) -> Run:
        return dataclasses.replace(BASE, outcomes=timed(*nodes))

    both = on(EPYC, XEON)
    assert obstacles(both, on(EPYC)) == obstacles(both, both) == ()
    assert obstacles(on(Node("c", "Zen"), Node("d", "Zilog")), both) == (
        Incomparable("cpu", "EPYC and Xeon", "Zen and Zilog"),
    )


def test_variables_that_both_sides_have_had_are_no_obstacle_to_all() -> None:
    two = counted_run("two", TALLY, variables=(("OMP_NUM_THREADS", "2"),))
    mixed = dataclasses.replace(BASE, outcomes=(*BASE.outcomes, *two.outcomes))
    assert obstacles(mixed) == obstacles(mixed, mixed) == ()
    (found,) = find_place_obstacles(BASE.outcomes, HOST, two.outcomes, HOST)
    assert found == Incomparable("variables", "no OMP_NUM_THREADS", "OMP_NUM_THREADS=2")
