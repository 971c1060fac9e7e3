"""Each rule of dispatching by itself, on nodes that do as they are told."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest

from tests.fleets import (
    COUNTING,
    Answer,
    Asked,
    Script,
    ScriptedFleet,
    answer,
    list_names,
    make_batch,
    make_case,
    make_plan,
    make_result,
    open_backend,
    open_dispatcher,
    outcomes,
    run_batches,
)
from torchmark.errors import SetupError
from torchmark.model.outcome import Activity, ActivityKind, Begun, Failure, FailureKind
from torchmark.model.plan import Metric, Order, Plan, Sampling
from torchmark.model.task import Language
from torchmark.processes import StopRequest
from torchmark.runner.cluster.batches import MOST_LOSSES, Batch, BatchQueue, GivenUp, KindGroup, Returned
from torchmark.runner.cluster.dispatch import (
    SURVEY_S,
    WATCH_S,
    WITHOUT_NODES_S,
    Dispatcher,
)
from torchmark.runner.cluster.nodes import MOST_FAILURES, Actor, Member, SetAside
from torchmark.runner.cluster.protocol import (
    PATIENCE_S,
    Build,
    Canary,
    CanaryCounted,
    Loss,
    Measure,
    Measured,
    NodeReply,
    RequestRefused,
    Survey,
)

T = TypeVar("T")
PLAN = make_plan("ab")
BOTH = Sampling((Metric.WALL, Metric.COUNT))


def only(kind: type[T], reports: Sequence[object]) -> list[T]:
    return [one for one in reports if isinstance(one, kind)]


def by_node(**scripts: Script) -> Script:
    """Nodes with a script of their own; all is well with the others."""
    return lambda asked: scripts.get(asked.node, answer)(asked)


def counting(count: int, *, after_s: float = 1.0) -> Script:
    """A node whose canary takes so many instructions, and whose answers take so long."""
    return lambda asked: (after_s, answer(asked, count=count)[1])


def silent_at(*kinds: type) -> Script:
    """A node that never answers to these."""
    return lambda asked: None if isinstance(asked.request, kinds) else answer(asked)


# --- who may measure ---------------------------------------------------------------------------------


def test_a_node_that_counts_otherwise_than_most_is_set_aside_and_measures_nothing() -> None:
    fleet = ScriptedFleet("xyz", by_node(y=counting(7)))
    reports: list[str] = []
    plan = make_plan("abcdef")
    found = outcomes(open_backend(fleet, plan, reports).execute(plan, plan.orders, StopRequest()))
    assert len(found) == 6
    assert {one.node.name for one in found if one.node is not None} == {"x", "z"}
    assert reports == [
        "The node y is not used. Its canary takes 7 instructions, where it takes 1000 on the other nodes of its kind: "
        "what is counted there cannot be compared."
    ]


def test_of_equally_many_that_differ_the_first_is_believed() -> None:
    fleet = ScriptedFleet("xy", by_node(x=counting(5, after_s=2.0), y=counting(7)))
    reports = run_batches([make_batch("a")], open_dispatcher(fleet, PLAN))
    assert [aside.node for aside in only(SetAside, reports)] == ["x"]
    assert {asked.node for asked in fleet.list_sent(Measure)} == {"y"}


def test_a_late_node_that_differs_is_set_aside_and_one_that_does_not_is_used() -> None:
    fleet = ScriptedFleet("x", by_node(odd=counting(7)))
    fleet.at(10.0, lambda: fleet.nodes.update(odd=1, late=1))
    reports = run_batches([make_batch([str(n)]) for n in range(40)], open_dispatcher(fleet, PLAN))
    assert [aside.node for aside in only(SetAside, reports)] == ["odd"]
    used = [asked.node for asked in fleet.list_sent(Measure)]
    assert set(used) == {"x", "late"}
    assert used.count("late") > 10


def test_nodes_wait_for_the_others_only_so_long() -> None:
    fleet = ScriptedFleet("xy", by_node(y=silent_at(Canary)))
    reports = run_batches([make_batch("a")], open_dispatcher(fleet, PLAN))
    assert list_names(reports) == ["a"]
    (counted,) = [asked.moment + 1.0 for asked in fleet.list_sent(Canary) if asked.node == "x"]
    assert counted + PATIENCE_S <= fleet.list_sent(Measure)[0].moment < counted + PATIENCE_S + 1.0


def test_most_need_not_wait_for_the_rest() -> None:
    fleet = ScriptedFleet("xyz", by_node(z=silent_at(Canary)))
    run_batches([make_batch("a")], open_dispatcher(fleet, PLAN))
    assert fleet.list_sent(Measure)[0].moment < 5.0


def test_a_node_whose_processes_count_differently_is_used_no_more() -> None:
    """The second process there counts otherwise than the first."""

    def count(asked: Asked) -> Answer:
        return answer(asked, count=1000 + sum(isinstance(one.request, Canary) for one in fleet.log if one.node == "x"))

    fleet = ScriptedFleet("xyz", by_node(x=count, y=counting(1001), z=counting(1001)), slots=2)
    reports = run_batches([make_batch([str(n)]) for n in range(200)], open_dispatcher(fleet, PLAN))
    (aside,) = only(SetAside, reports)
    assert aside.node == "x"
    assert "1001 instructions in one process and 1002 in another" in aside.reason
    assert sorted(map(int, list_names(reports))) == list(range(200))


def test_where_nothing_is_counted_there_is_no_canary() -> None:
    fleet = ScriptedFleet("x")
    plan = make_plan("a", Sampling((Metric.WALL,)))
    reports = run_batches([make_batch("a", metric=Metric.WALL)], open_dispatcher(fleet, plan))
    assert list_names(reports) == ["a"]
    assert not fleet.list_sent(Canary)
    assert [asked.alone for asked in fleet.list_sent(Measure)] == [True]


def test_another_version_is_refused() -> None:
    fleet = ScriptedFleet("xy", by_node(y=lambda asked: answer(asked, version="0.0.1")))
    reports: list[str] = []
    open_backend(fleet, PLAN, reports)
    assert reports == ["The node y is not used. It has torchmark 0.0.1, and this is simulated."]
    assert {node for node, _ in fleet.actors.values()} == {"x"}


def test_what_a_node_lacks_is_told_in_its_words() -> None:
    fleet = ScriptedFleet("xy", by_node(x=lambda asked: (1.0, RequestRefused("There is no Valgrind."))))
    reports: list[str] = []
    backend = open_backend(fleet, PLAN, reports)
    assert reports == ["The node x is not used. There is no Valgrind."]
    assert backend.slots == 1


def test_if_no_node_can_measure_the_first_says_why() -> None:
    fleet = ScriptedFleet("xyz", lambda asked: (1.0, RequestRefused("There is no Valgrind.")))
    with pytest.raises(SetupError, match=r"No node .* x \(and 2 more nodes\): There is no Valgrind\. Nodes need"):
        open_backend(fleet, PLAN)


def test_a_cluster_without_nodes_is_told_how_to_get_some() -> None:
    with pytest.raises(SetupError, match=r"The cluster has no node to measure on\. Start nodes"):
        open_backend(ScriptedFleet(""), PLAN)


def test_nodes_that_do_not_answer_are_not_waited_for_for_ever() -> None:
    fleet = ScriptedFleet("xy", lambda asked: None)
    with pytest.raises(SetupError, match=r"The nodes of the cluster \(2\) do not answer\."):
        open_backend(fleet, PLAN)
    assert SURVEY_S <= fleet.now() < SURVEY_S + 1.0


def test_a_node_that_dies_while_it_is_met_is_no_node() -> None:
    fleet = ScriptedFleet("xy", by_node(y=silent_at(Survey)))
    fleet.at(3.0, lambda: fleet.die("y"))
    dispatcher = open_dispatcher(fleet, PLAN)
    assert fleet.now() < SURVEY_S
    assert [member.name for member in dispatcher.nodes.usable] == ["x"]
    assert list(fleet.actors.values()) == [("x", False)]


@pytest.mark.parametrize("loss", [Loss.ACTOR, Loss.OBJECT])
def test_processes_that_do_not_come_up_are_bad_luck_and_then_the_nodes_fault(loss: Loss) -> None:
    def fail(times: int) -> Script:
        def script(asked: Asked) -> Answer:
            before = [one for one in fleet.log if one.node == asked.node and isinstance(one.request, Survey)]
            return (1.0, loss) if len(before) <= times else answer(asked)

        return script

    fleet = ScriptedFleet("xyz", by_node(x=fail(MOST_FAILURES - 1), y=fail(MOST_FAILURES)))
    reports: list[str] = []
    open_backend(fleet, PLAN, reports)
    assert reports == ["The node y is not used. Processes do not stay up there: in its own words"]
    assert {node for node, _ in fleet.actors.values()} == {"x", "z"}


def test_a_node_that_could_not_say_what_it_is_like_is_asked_again() -> None:
    """Its loss is told, but it is still listed."""

    def script(asked: Asked) -> Answer:
        return (1.0, Loss.NODE) if len(fleet.log) == 1 else answer(asked)

    fleet = ScriptedFleet("x", script)
    assert list_names(run_batches([make_batch("a")], open_dispatcher(fleet, PLAN))) == ["a"]


@pytest.mark.parametrize("problem", [RequestRefused("no memory"), Loss.ACTOR])
def test_a_process_too_many_does_not_cost_the_others_their_node(problem: NodeReply | Loss) -> None:
    """It fails even before the first has counted its canary."""

    def script(asked: Asked) -> Answer:
        is_one_of_three = asked.actor in list(dict.fromkeys(one.actor for one in fleet.log))[:3]
        return answer(asked) if is_one_of_three or isinstance(asked.request, Survey) else (0.1, problem)

    fleet = ScriptedFleet("x", script, slots=4)
    reports = run_batches([make_batch([str(n)]) for n in range(200)], open_dispatcher(fleet, PLAN))
    assert len(list_names(reports)) == 200
    assert only(SetAside, reports) == []
    assert len({asked.actor for asked in fleet.list_sent(Measure)}) == 3
    # Not again and again.
    assert len({asked.actor for asked in fleet.log}) <= 3 + 2 * MOST_FAILURES


# --- what is lost ------------------------------------------------------------------------------------


def losing(names: str, loss: Loss, times: int) -> Callable[[], ScriptedFleet]:
    """A cluster that loses whatever has one of these, so often."""

    def script(asked: Asked) -> Answer:
        before = [one for one in fleet.list_sent(Measure) if set(one.names) & set(names)]
        if set(asked.names) & set(names) and len(before) <= times:
            if loss is Loss.NODE:
                fleet.die(asked.node)
                fleet.nodes[f"{asked.node}'"] = 1
            return 1.0, loss
        return answer(asked)

    fleet = ScriptedFleet("xy", script)
    return lambda: fleet


LIMITS = [(loss, most) for loss, most in MOST_LOSSES.items() if loss is not Loss.REFUSAL]


@pytest.mark.parametrize(("loss", "most"), LIMITS)
def test_what_is_lost_too_often_is_given_up_alone(loss: Loss, most: int) -> None:
    fleet = losing("p", loss, 100)()
    reports = run_batches([make_batch("apb"), make_batch("c")], open_dispatcher(fleet, PLAN))
    assert sorted(list_names(reports)) == ["a", "b", "c"]
    assert list_names(reports, GivenUp) == ["p"]
    sent = [asked.names for asked in fleet.list_sent(Measure) if "p" in asked.names]
    assert sent == [["a", "p", "b"], *[["p"]] * (most - 1)]


@pytest.mark.parametrize(("loss", "most"), LIMITS)
def test_what_is_lost_less_often_is_measured(loss: Loss, most: int) -> None:
    fleet = losing("p", loss, most - 1)()
    reports = run_batches([make_batch("p")], open_dispatcher(fleet, PLAN))
    assert list_names(reports) == ["p"]


def test_losses_of_different_kinds_are_counted_apart() -> None:
    losses = [loss for loss, most in LIMITS for _ in range(most - 1)]

    def script(asked: Asked) -> Answer:
        if not isinstance(asked.request, Measure) or not losses:
            return answer(asked)
        if losses[0] is Loss.NODE:
            fleet.die(asked.node)
            fleet.nodes[f"{asked.node}'"] = 1
        return 1.0, losses.pop(0)

    fleet = ScriptedFleet("x", script)
    assert list_names(run_batches([make_batch("p")], open_dispatcher(fleet, PLAN))) == ["p"]


def test_why_it_was_given_up_is_an_outcome_in_words() -> None:
    plan = make_plan("p")
    found = outcomes(open_backend(losing("p", Loss.ACTOR, 9)(), plan).execute(plan, plan.orders, StopRequest()))
    assert [one.result for one in found] == [
        Failure(
            FailureKind.WORKER_DIED,
            "It was given up: the process that ran it ended 3 times. The last time: in its own words",
        )
    ]


def test_lost_nodes_are_named() -> None:
    reports = run_batches([make_batch("p")], open_dispatcher(losing("p", Loss.NODE, 9)(), PLAN))
    (given_up,) = only(GivenUp, reports)
    assert given_up.message.startswith("It was given up: nodes were lost while it ran there: y, x, y', x', y''.")


def test_what_nodes_refuse_costs_so_many_of_them_and_is_given_up() -> None:
    def script(asked: Asked) -> Answer:
        return (1.0, RequestRefused("not here")) if "p" in asked.names else answer(asked)

    fleet = ScriptedFleet("uvwxyz", script)
    reports = run_batches([make_batch("p"), make_batch("a")], open_dispatcher(fleet, PLAN))
    assert list_names(reports) == ["a"]
    assert len(only(SetAside, reports)) == MOST_LOSSES[Loss.REFUSAL]
    (given_up,) = only(GivenUp, reports)
    refusing = [aside.node for aside in only(SetAside, reports)]
    assert given_up.message == f"It was given up: nodes cannot do it: {', '.join(refusing)}. The last time: not here"


def test_a_refusal_is_no_fault_of_what_else_runs_there() -> None:
    """Whatever is asked of the node beside it is done elsewhere, and was lost by nobody."""

    def refuse(asked: Asked) -> Answer:
        return (
            (5.0, answer(asked)[1])
            if "a" in asked.names
            else (1.0, RequestRefused("no"))
            if asked.names
            else answer(asked)
        )

    fleet = ScriptedFleet("x", refuse, slots=2)
    fleet.at(30.0, lambda: fleet.nodes.update(y=1))
    fleet.script = lambda asked: refuse(asked) if asked.node == "x" else answer(asked)
    dispatcher = open_dispatcher(fleet, PLAN)
    dispatcher.nodes.open(dispatcher.nodes.usable[0], alone=False)
    batches = [make_batch("a"), make_batch("b")]
    reports = run_batches(batches, dispatcher)
    assert sorted(list_names(reports)) == ["a", "b"]
    assert batches[0].losses == ()
    assert batches[1].losses == ((Loss.REFUSAL, "x"),)


def test_pieces_take_along_only_what_they_are_held_to() -> None:
    reference, poison, other = (make_case(name, group="g", check=True) for name in ("w", "p", "o"))
    plain = make_case("n", group="g")
    stranger = make_case("s", group="h", check=True)
    cases = (reference, poison, other, plain, stranger)
    orders = tuple(Order(case, PLAN.targets[0], Metric.COUNT) for case in cases[1:])
    pieces = Batch(KindGroup(), False, orders=orders, cases=cases).split()
    assert [piece.cases for piece in pieces] == [(reference, poison), (reference, other), (plain,), (stranger,)]
    assert [[order.case for order in piece.orders] for piece in pieces] == [[case] for case in cases[1:]]
    bound = Batch(KindGroup(), False, orders=orders, cases=cases, is_bound=True)
    assert bound.split() == [bound]


# --- what is slow ------------------------------------------------------------------------------------


def slow_at_first(seconds: float) -> Script:
    """What is called slow takes so long for the first node that has it; the rest is fast."""
    nodes: list[str] = []

    def script(asked: Asked) -> Answer:
        if asked.names == ["slow"]:
            nodes.append(asked.node)
        is_slow = asked.names == ["slow"] and asked.node == nodes[0]
        return (seconds if is_slow else 1.0), answer(asked)[1]

    return script


def test_what_is_slow_is_done_by_a_second_node_and_the_first_answer_counts() -> None:
    fleet = ScriptedFleet("xy", slow_at_first(500.0))
    reports = run_batches(
        [make_batch(["slow"]), *(make_batch([str(n)]) for n in range(5))], open_dispatcher(fleet, PLAN)
    )
    assert sorted(list_names(reports)) == ["0", "1", "2", "3", "4", "slow"]
    first, second = (asked.node for asked in fleet.list_sent(Measure) if asked.names == ["slow"])
    assert first != second
    assert fleet.now() < 30.0
    # Nobody waits for the other one: it is ended.
    assert {node for node, _ in fleet.actors.values()} == {second}
    assert [begun.what for begun in only(Begun, reports)].count(only(Returned, reports)[-1].batch.orders[0]) == 1


@pytest.mark.parametrize("loss", [None, *Loss])
def test_the_slower_answer_is_not_heard_whatever_it_is(loss: Loss | None) -> None:
    """Another batch is slow everywhere, so that there is time for it to come."""
    slow = slow_at_first(20.0)

    def script(asked: Asked) -> Answer:
        if asked.names == ["long"]:
            return 100.0, answer(asked)[1]
        seconds, said = slow(asked) or (0.0, None)
        assert said is not None
        return seconds, loss if loss is not None and seconds > 1.0 else said

    fleet = ScriptedFleet("xyz", script)
    reports = run_batches([make_batch(["slow"]), make_batch(["long"])], open_dispatcher(fleet, PLAN))
    assert sorted(list_names(reports)) == ["long", "slow"]
    assert len([asked for asked in fleet.list_sent(Measure) if asked.names == ["slow"]]) == 2
    assert fleet.now() > 100.0


def test_a_node_does_not_help_itself_out() -> None:
    fleet = ScriptedFleet("x", lambda asked: (300.0 if asked.names else 1.0, answer(asked)[1]), slots=2)
    dispatcher = open_dispatcher(fleet, PLAN)
    dispatcher.nodes.open(dispatcher.nodes.usable[0], alone=False)
    run_batches([make_batch("a")], dispatcher)
    assert len(fleet.list_sent(Measure)) == 1


def test_a_copy_that_is_lost_is_made_again_and_the_first_may_still_answer() -> None:
    def script(asked: Asked) -> Answer:
        before = [one for one in fleet.list_sent(Measure) if one.names == ["slow"]]
        if asked.names == ["slow"]:
            return (60.0, answer(asked)[1]) if len(before) == 1 else (1.0, Loss.ACTOR)
        return answer(asked)

    fleet = ScriptedFleet("xy", script)
    reports = run_batches([make_batch(["slow"]), make_batch("a"), make_batch("b")], open_dispatcher(fleet, PLAN))
    assert sorted(list_names(reports)) == ["a", "b", "slow"]
    assert only(GivenUp, reports) == []
    # So often that it would be to blame, and then no more.
    assert len([asked for asked in fleet.list_sent(Measure) if asked.names == ["slow"]]) == 1 + MOST_LOSSES[Loss.ACTOR]


def test_a_slot_that_is_free_helps_out_while_its_neighbour_works() -> None:
    def script(asked: Asked) -> Answer:
        return (300.0 if asked.names else 1.0), answer(asked)[1]

    fleet = ScriptedFleet("xy", script, slots=2)
    dispatcher = open_dispatcher(fleet, PLAN)
    for member in dispatcher.nodes.usable:
        dispatcher.nodes.open(member, alone=False)
    run_batches([make_batch("a"), make_batch("b")], dispatcher)
    # x and y have one each, and copy that of the other.
    assert sorted(asked.names[0] for asked in fleet.list_sent(Measure)) == ["a", "a", "b", "b"]


def test_nodes_that_were_shared_help_out_with_what_is_timed() -> None:
    fleet = ScriptedFleet("xy", slow_at_first(500.0))
    plan = make_plan("ab", BOTH)
    counted = [make_batch([str(n)]) for n in range(5)]
    reports = run_batches([make_batch(["slow"], metric=Metric.WALL), *counted], open_dispatcher(fleet, plan))
    assert len(list_names(reports)) == 6
    assert fleet.now() < 100.0
    assert [asked.alone for asked in fleet.list_sent(Measure) if asked.names == ["slow"]] == [True, True]


def test_only_nodes_of_the_same_kind_help_out() -> None:
    fleet = ScriptedFleet("xy", slow_at_first(300.0))
    script = fleet.script
    fleet.script = by_node(x=script, y=lambda asked: of_kind("other", script)(asked))
    run_batches([make_batch(["slow"]), *(make_batch([str(n)]) for n in range(5))], open_dispatcher(fleet, PLAN))
    assert len([asked for asked in fleet.list_sent(Measure) if asked.names == ["slow"]]) == 1
    assert fleet.now() > 300.0


def test_of_those_that_could_help_out_one_that_is_slow_itself_does_not() -> None:
    """All of x and y takes ten times as long; z is fast, and busy until the end."""

    def script(asked: Asked) -> Answer:
        seconds = 40.0 if asked.names == ["long"] else 1.0
        return (seconds if asked.node == "z" else 10.0) if asked.names else 1.0, answer(asked)[1]

    fleet = ScriptedFleet("xyz", script)
    names = [*map(str, range(60)), "late"]
    run_batches([make_batch([name]) for name in names], open_dispatcher(fleet, PLAN))
    asked = [(one.names[0], one.node) for one in fleet.list_sent(Measure)]
    copies = asked[len(names) :]
    assert copies
    assert {node for _, node in copies} == {"z"}


def test_a_node_that_is_slow_itself_helps_out_where_nobody_else_does() -> None:
    """x is slow, and y says nothing any more."""

    def script(asked: Asked) -> Answer:
        if asked.names == ["last"] and asked.node == "y":
            return None
        return 10.0 if asked.names and asked.node == "x" else 1.0, answer(asked)[1]

    fleet = ScriptedFleet("yx", script)
    reports = run_batches(
        [*(make_batch([str(n)]) for n in range(30)), make_batch(["last"])], open_dispatcher(fleet, PLAN)
    )
    assert len(list_names(reports)) == 31
    assert fleet.now() < 120.0


def test_nothing_is_copied_while_there_is_something_else_to_do() -> None:
    fleet = ScriptedFleet("xy", slow_at_first(30.0))
    run_batches([make_batch(["slow"]), *(make_batch([str(n)]) for n in range(40))], open_dispatcher(fleet, PLAN))
    assert len([asked for asked in fleet.list_sent(Measure) if asked.names == ["slow"]]) == 1


# --- stopping ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", ["wxyz", "vwxyz"])
def test_after_a_request_to_stop_nothing_is_sent_and_what_is_under_way_is_waited_for(nodes: str) -> None:
    plan = make_plan(map(str, range(300)))
    fleet = ScriptedFleet(nodes, lambda asked: (50.0 if asked.names else 1.0, answer(asked)[1]), slots=3)
    stop = StopRequest()
    begun, done = [], []
    for event in open_backend(fleet, plan).execute(plan, plan.orders, stop):
        if isinstance(event, Begun) and isinstance(event.what, Order):
            begun.append(event.what)
            # While batches are sent: other nodes, or other slots of the same one, could have something.
            if len(begun) == 5:
                stop.request()
        done += outcomes([event])
    assert len(begun) == len(fleet.list_sent(Measure)) == 5
    assert len(fleet.actors) > 5
    assert {one.order for one in done} == set(begun)


def test_after_a_request_to_stop_free_slots_of_the_same_node_stay_free() -> None:
    fleet = ScriptedFleet("x", slots=3)
    dispatcher = open_dispatcher(fleet, PLAN)
    run_batches([make_batch([str(n)]) for n in range(100)], dispatcher)
    assert len(fleet.actors) == 3
    fleet.log.clear()
    stop = StopRequest()
    for reports in dispatcher.run(BatchQueue([make_batch([str(n)]) for n in range(100)]), stop):
        if isinstance(reports, Begun):
            stop.request()
    assert len(fleet.list_sent(Measure)) == 1


def test_stopping_does_not_wait_for_what_is_no_result() -> None:
    """Compiling, and starting."""
    fleet = ScriptedFleet("xy", silent_at(Build))
    stop = StopRequest()
    fleet.at(20.0, stop.request)
    run_batches([make_batch("a", _native_kind_group())], open_dispatcher(fleet, PLAN), stop)
    assert 20.0 <= fleet.now() < 21.0


def test_what_is_lost_after_a_request_to_stop_is_not_sent_again() -> None:
    fleet = losing("a", Loss.ACTOR, 1)()
    stop = StopRequest()
    fleet.at(2.5, stop.request)
    reports = run_batches([make_batch("a")], open_dispatcher(fleet, PLAN), stop)
    assert len(fleet.list_sent(Measure)) == 1
    assert not only(Returned, reports)
    assert not only(GivenUp, reports)


def test_leaving_in_the_middle_ends_what_is_under_way_and_the_next_run_hears_nothing_of_it() -> None:
    fleet = ScriptedFleet("x")
    dispatcher = open_dispatcher(fleet, PLAN)
    first = dispatcher.run(BatchQueue([make_batch("a"), make_batch("b")]), StopRequest())
    assert any(isinstance(one, Begun) for one in first)
    first.close()  # type: ignore[attr-defined]
    assert not fleet.actors
    assert list_names(run_batches([make_batch("c")], dispatcher)) == ["c"]


# --- nodes come and go -------------------------------------------------------------------------------


def test_without_nodes_others_are_waited_for_but_not_for_ever() -> None:
    plan = make_plan("abcdef")
    fleet = ScriptedFleet("x")
    fleet.at(7.5, lambda: fleet.die("x"))
    found: list[object] = []
    backend = open_backend(fleet, plan)
    with pytest.raises(SetupError, match=r"There is no node left .* What was measured is saved"):
        found.extend(backend.execute(plan, plan.orders, StopRequest()))
    assert 7.5 + WITHOUT_NODES_S < fleet.now() < 7.5 + WITHOUT_NODES_S + 5.0
    assert 0 < len(outcomes(found)) < 6
    assert all(one.result == make_result(one.order) for one in outcomes(found))


def test_nodes_that_come_when_all_were_gone_go_on() -> None:
    plan = make_plan("abcdef")
    fleet = ScriptedFleet("x")
    fleet.at(6.5, lambda: fleet.die("x"))
    fleet.at(6.5 + WITHOUT_NODES_S - 5.0, lambda: fleet.nodes.update(y=1))
    found = outcomes(open_backend(fleet, plan).execute(plan, plan.orders, StopRequest()))
    assert sorted(one.order.case.args.stmt for one in found) == list("abcdef")
    assert {one.node.name for one in found if one.node is not None} == {"x", "y"}


def test_a_lonely_run_is_not_told_of_the_loneliness_of_the_one_before() -> None:
    fleet = ScriptedFleet("x")
    dispatcher = open_dispatcher(fleet, PLAN)
    fleet.at(3.0, lambda: fleet.die("x"))
    with pytest.raises(SetupError):
        run_batches([make_batch("a"), make_batch("b")], dispatcher)
    fleet.at(fleet.now() + 5.0, lambda: fleet.nodes.update(y=1))
    assert list_names(run_batches([make_batch("c")], dispatcher)) == ["c"]


def of_kind(kind: str, script: Script = answer) -> Script:
    """A node of another kind."""
    return lambda asked: answer(asked, kind=kind) if isinstance(asked.request, Survey) else script(asked)


def _native_kind_group() -> KindGroup:
    return KindGroup((make_case("native", Language.CPP),))


def test_a_kind_group_stays_with_the_kind_that_began_it() -> None:
    fleet = ScriptedFleet("xyz", by_node(y=of_kind("other"), z=of_kind("other")))
    kind_groups = [KindGroup(), KindGroup()]
    reports = run_batches(
        [
            make_batch([f"{number} {kind_group}"], kind_groups[kind_group])
            for number in range(10)
            for kind_group in (0, 1)
        ],
        open_dispatcher(fleet, PLAN),
    )
    assert len(list_names(reports)) == 20
    nodes = [
        {asked.node for asked in fleet.list_sent(Measure) if asked.names[0].endswith(kind_group)} for kind_group in "01"
    ]
    assert sorted(nodes, key=len) == [{"x"}, {"y", "z"}]


def test_a_kind_that_dies_out_leaves_its_kind_groups_to_others_which_compile_them_anew() -> None:
    fleet = ScriptedFleet("x", by_node(y=of_kind("other")))
    fleet.at(6.5, lambda: fleet.die("x"))
    fleet.at(6.5, lambda: fleet.nodes.update(y=1))
    kind_group = _native_kind_group()
    reports = run_batches([make_batch(name, kind_group) for name in "abcdef"], open_dispatcher(fleet, PLAN))
    assert sorted(list_names(reports)) == list("abcdef")
    assert [asked.node for asked in fleet.list_sent(Build)] == ["x", "y"]
    nodes = [asked.node for asked in fleet.list_sent(Measure)]
    assert nodes == sorted(nodes)
    assert set(nodes) == {"x", "y"}


def test_a_kind_whose_last_node_does_not_come_up_again_leaves_its_kind_groups_to_others() -> None:
    """The node is there, but no process stays up on it any more."""

    def ailing(asked: Asked) -> Answer:
        if asked.moment > 4.0 and isinstance(asked.request, (Survey, Measure)):
            return 1.0, Loss.ACTOR
        return answer(asked)

    fleet = ScriptedFleet("xy", by_node(x=ailing, y=of_kind("other", silent_at(Canary))))
    kind_group = KindGroup()
    dispatcher = open_dispatcher(fleet, PLAN)
    fleet.at(100.0, lambda: fleet.nodes.update(z=1))
    fleet.script = by_node(x=ailing, y=of_kind("other", silent_at(Canary)), z=of_kind("third"))
    reports = run_batches([make_batch([f"n{n}"], kind_group) for n in range(8)], dispatcher)
    assert len(list_names(reports)) == 8
    assert [aside.node for aside in only(SetAside, reports)] == ["x"]


def test_a_build_that_ends_its_actors_is_given_up_with_all_that_waits_for_it() -> None:
    fleet = ScriptedFleet("xy", lambda asked: (1.0, Loss.ACTOR) if isinstance(asked.request, Build) else answer(asked))
    kind_group = _native_kind_group()
    reports = run_batches(
        [make_batch("a", kind_group), make_batch("b"), make_batch("c", kind_group)], open_dispatcher(fleet, PLAN)
    )
    assert list_names(reports) == ["b"]
    assert sorted(list_names(reports, GivenUp)) == ["a", "c"]
    assert len(fleet.list_sent(Build)) == MOST_LOSSES[Loss.ACTOR]


def test_a_build_that_the_last_of_its_kind_refuses_is_done_once_by_another() -> None:
    def refuse(asked: Asked) -> Answer:
        return (1.0, RequestRefused("no compiler")) if isinstance(asked.request, Build) else answer(asked)

    fleet = ScriptedFleet("x", by_node(x=refuse, y=of_kind("other")))
    fleet.at(20.0, lambda: fleet.nodes.update(y=1))
    kind_group = _native_kind_group()
    reports = run_batches([make_batch(name, kind_group) for name in "abc"], open_dispatcher(fleet, PLAN))
    assert sorted(list_names(reports)) == ["a", "b", "c"]
    assert [asked.node for asked in fleet.list_sent(Build)] == ["x", "y"]


def without_compiler(asked: Asked) -> Answer:
    return answer(asked, compiles=False)


def test_what_some_nodes_cannot_compile_is_compiled_by_one_that_can_and_measured_by_all() -> None:
    fleet = ScriptedFleet("xyz", by_node(x=without_compiler, y=without_compiler))
    kind_groups = [KindGroup((make_case(f"{n}", Language.CPP),)) for n in range(4)]
    reports = run_batches([make_batch([str(n)], kind_groups[n % 4]) for n in range(40)], open_dispatcher(fleet, PLAN))
    assert len(list_names(reports)) == 40
    assert [asked.node for asked in fleet.list_sent(Build)] == ["z"] * 4
    assert {asked.node for asked in fleet.list_sent(Measure)} == {"x", "y", "z"}


def test_where_nobody_can_compile_those_who_measure_say_so() -> None:
    fleet = ScriptedFleet("xy", without_compiler)
    reports = run_batches([make_batch("a", _native_kind_group()), make_batch("b")], open_dispatcher(fleet, PLAN))
    assert sorted(list_names(reports)) == ["a", "b"]
    assert len(fleet.list_sent(Build)) == 1


def test_when_the_only_one_that_could_compile_dies_the_others_go_on_without() -> None:
    fleet = ScriptedFleet("xz", by_node(x=without_compiler, z=silent_at(Build)))
    fleet.at(10.0, lambda: fleet.die("z"))
    reports = run_batches([make_batch("a", _native_kind_group())], open_dispatcher(fleet, PLAN))
    assert list_names(reports) == ["a"]
    assert [asked.node for asked in fleet.list_sent(Build)] == ["z", "x"]


def test_two_nodes_that_die_at_once_leave_a_build_to_be_done_once() -> None:
    fleet = ScriptedFleet("xy", lambda asked: None if isinstance(asked.request, Build) else answer(asked))
    kind_groups = [_native_kind_group(), KindGroup((make_case("more", Language.CPP),))]

    def replace() -> None:
        fleet.die("x")
        fleet.die("y")
        fleet.nodes["z"] = 1
        fleet.script = of_kind("other")

    fleet.at(10.0, replace)
    reports = run_batches(
        [make_batch("a", kind_groups[0]), make_batch("b", kind_groups[1])], open_dispatcher(fleet, PLAN)
    )
    assert sorted(list_names(reports)) == ["a", "b"]
    assert [asked.node for asked in fleet.list_sent(Build)] == ["y", "x", "z", "z"]


def test_library_sets_are_shared_once_and_go_along() -> None:
    fleet = ScriptedFleet("xy")
    kind_group = _native_kind_group()
    run_batches([make_batch(name, kind_group) for name in "abc"], open_dispatcher(fleet, PLAN))
    (library_set,) = fleet.shared
    sent = [asked.request.library_sets for asked in fleet.list_sent(Measure) if isinstance(asked.request, Measure)]
    assert sent == [(library_set,)] * 3


# --- sharing a node, and having it alone -------------------------------------------------------------


def test_what_is_timed_comes_after_what_is_counted_and_has_its_node_alone() -> None:
    fleet = ScriptedFleet("x", slots=4)
    plan = make_plan([str(n) for n in range(100)], BOTH)
    found = outcomes(open_backend(fleet, plan).execute(plan, plan.orders, StopRequest()))
    assert len(found) == 200
    assert [asked.alone for asked in fleet.list_sent(Measure)] == [False] * 100 + [True] * 100
    assert len({asked.actor for asked in fleet.list_sent(Measure) if asked.alone}) == 1
    assert len({asked.actor for asked in fleet.list_sent(Measure) if not asked.alone}) > 1
    # Who is alone does not count, and starts nothing that does.
    assert not any(asked.alone for asked in fleet.list_sent(Canary))


def test_nodes_that_time_go_on_with_it_when_a_count_is_lost() -> None:
    """Else all of them would start to count for a single batch."""

    def lose_late(asked: Asked) -> Answer:
        is_first = len([one for one in fleet.log if one.names == ["late"]]) == 1
        return (20.0, Loss.ACTOR) if asked.names == ["late"] and is_first else answer(asked)

    fleet = ScriptedFleet("uvwxyz", lose_late)
    timed = [make_batch([str(n)], metric=Metric.WALL) for n in range(300)]
    reports = run_batches([make_batch(["late"]), *timed], open_dispatcher(fleet, make_plan("a", BOTH)))
    assert len(list_names(reports)) == 301
    loser, _ = (asked.node for asked in fleet.list_sent(Measure) if asked.names == ["late"])
    last = max(asked.moment for asked in fleet.list_sent(Measure) if asked.alone)
    changed = [asked.node for asked in fleet.list_sent(Survey) if not asked.alone and 10.0 < asked.moment < last]
    assert set(changed) <= {loser}


def test_nodes_do_not_begin_to_time_while_something_to_count_is_compiled() -> None:
    fleet = ScriptedFleet("xy", lambda asked: (60.0 if isinstance(asked.request, Build) else 1.0, answer(asked)[1]))
    counted, timed = make_batch("c", _native_kind_group()), make_batch("t", metric=Metric.WALL)
    reports = run_batches([counted, timed], open_dispatcher(fleet, make_plan("a", BOTH)))
    assert list_names(reports) == ["c", "t"]


def test_bad_luck_now_and_then_is_no_fault_of_a_node() -> None:
    """Every batch ends its actor once, and every second process does not come up at first."""
    seen: set[str] = set()

    def script(asked: Asked) -> Answer:
        if isinstance(asked.request, Survey) and len(fleet.list_sent(Survey)) % 2 == 0:
            return 1.0, Loss.ACTOR
        if asked.names and asked.names[0] not in seen:
            seen.add(asked.names[0])
            return 1.0, Loss.ACTOR
        return answer(asked)

    fleet = ScriptedFleet("x", script)
    reports = run_batches([make_batch([str(n)]) for n in range(10)], open_dispatcher(fleet, PLAN))
    assert len(list_names(reports)) == 10
    assert only(SetAside, reports) == []


def test_actors_that_start_for_nothing_do_not_hold_up_what_is_timed() -> None:
    """More slots than others leave free: these actors never come up."""

    def script(asked: Asked) -> Answer:
        return answer(asked) if asked.alone or asked.actor == fleet.log[0].actor else None

    fleet = ScriptedFleet("x", script, slots=4)
    plan = make_plan([str(n) for n in range(60)], BOTH)
    assert len(outcomes(open_backend(fleet, plan).execute(plan, plan.orders, StopRequest()))) == 120


def test_small_things_do_not_start_what_takes_long_to_start() -> None:
    fleet = ScriptedFleet("x", slots=4)
    run_batches([make_batch([str(n)]) for n in range(10)], open_dispatcher(fleet, PLAN))
    assert len(fleet.actors) == 1


# --- what is told ------------------------------------------------------------------------------------


def test_every_order_begins_once_and_what_else_took_time_is_told() -> None:
    plan = Plan((*make_plan("ab").cases, make_case("c", Language.CPP)), sampling=COUNTING)
    fleet = losing("a", Loss.ACTOR, 1)()
    events = list(open_backend(fleet, plan).execute(plan, plan.orders, StopRequest()))
    begun = [event.what for event in events if isinstance(event, Begun)]
    assert len(begun) == 3
    assert set(begun) == set(plan.orders)
    done = [(event.kind, event.size) for event in events if isinstance(event, Activity)]
    assert set(done) == {(ActivityKind.START, 0), (ActivityKind.COMPILE, 1)}


def test_nothing_is_kept_of_what_is_done() -> None:
    fleet = ScriptedFleet("xyz", slow_at_first(500.0))
    dispatcher = open_dispatcher(fleet, PLAN)
    kind_group = _native_kind_group()
    batches = [make_batch(["slow"]), *(make_batch([str(n)], kind_group if n % 2 else None) for n in range(50))]
    references: list[weakref.ref[object]] = [weakref.ref(batch) for batch in batches]
    references += (weakref.ref(batch.kind_group) for batch in batches)
    batch_queue = BatchQueue(batches)
    for reports in dispatcher.run(batch_queue, StopRequest()):
        if isinstance(reports, Returned):
            fleet.log.clear()
    del batches, kind_group, reports
    gc.collect()
    assert [one for one in references if one() is not None] == []
    assert batch_queue.is_empty


def test_what_is_known_does_not_grow_with_nodes_that_are_gone() -> None:
    """A new node for each batch."""

    def script(asked: Asked) -> Answer:
        if asked.names:
            fleet.die(asked.node)
            fleet.nodes[f"after {asked.names[0]}"] = 1
            return 0.5, Loss.NODE
        return answer(asked)

    fleet = ScriptedFleet("x", script)
    dispatcher = open_dispatcher(fleet, PLAN)
    reports = run_batches([make_batch([str(n)]) for n in range(20)], dispatcher)
    assert len(only(GivenUp, reports)) == 20
    assert len(fleet.log) > 60
    gc.collect()
    assert len([one for one in gc.get_objects() if type(one) in (Member, Actor)]) <= 4
    assert isinstance(dispatcher, Dispatcher)


# --- nodes that are there, and say nothing -----------------------------------------------------------


TIMEOUT_S = 500.0
IMPATIENT = Sampling((Metric.COUNT,), timeout_s=TIMEOUT_S)


def test_what_is_never_answered_is_asked_of_others_case_by_case() -> None:
    fleet = ScriptedFleet("x", silent_at(Measure))
    fleet.at(TIMEOUT_S, lambda: fleet.nodes.update(y=1))
    fleet.script = by_node(x=silent_at(Measure))
    reports = run_batches([make_batch("ab")], open_dispatcher(fleet, make_plan("ab", IMPATIENT)))
    assert sorted(list_names(reports)) == ["a", "b"]
    assert not only(GivenUp, reports)


def test_nobody_is_waited_for_longer_than_all_that_a_batch_may_start() -> None:
    fleet = ScriptedFleet("x", silent_at(Measure))
    reports = run_batches([make_batch("abc")], open_dispatcher(fleet, make_plan("abc", IMPATIENT)))
    assert sorted(list_names(reports, GivenUp)) == ["a", "b", "c"]
    assert not only(Returned, reports)
    message = only(GivenUp, reports)[0].message
    assert message.startswith("It was given up: the process that ran it ended 3 times. The last time: There was no ")
    first, *others = fleet.list_sent(Measure)
    # Three results, and then one at a time; starting, preparing and checking may take a process each besides.
    waited = others[0].moment - first.moment
    assert 6 * TIMEOUT_S < waited < 6 * TIMEOUT_S + 2 * WATCH_S + 3.0
    assert others[0].names == ["a"]
    assert 4 * TIMEOUT_S < others[1].moment - others[0].moment < 4 * TIMEOUT_S + 2 * WATCH_S + 3.0
    # Each in a process of its own: the one that says nothing is ended.
    assert len({asked.actor for asked in fleet.list_sent(Measure)}) == len(fleet.list_sent(Measure))
    assert len(fleet.actors) <= 1


def test_what_is_compiled_without_end_is_compiled_by_another() -> None:
    fleet = ScriptedFleet("x", by_node(x=silent_at(Build)))
    fleet.at(TIMEOUT_S, lambda: fleet.nodes.update(y=1))
    kind_group = KindGroup((make_case("a", Language.CPP),))
    reports = run_batches([make_batch("a", kind_group)], open_dispatcher(fleet, make_plan("a", IMPATIENT)))
    assert list_names(reports) == ["a"]
    assert [asked.node for asked in fleet.list_sent(Build)][-1] == "y"


def test_a_canary_that_is_never_heard_sets_its_node_aside() -> None:
    fleet = ScriptedFleet("x", silent_at(Canary))
    dispatcher = open_dispatcher(fleet, make_plan("a", IMPATIENT))
    reports: list[object] = []
    with pytest.raises(SetupError, match="There is no node left that can measure"):
        reports.extend(dispatcher.run(BatchQueue([make_batch("a")]), StopRequest()))
    assert len(fleet.list_sent(Canary)) == MOST_FAILURES
    assert not fleet.list_sent(Measure)


def test_a_slow_answer_is_waited_for() -> None:
    fleet = ScriptedFleet("x", lambda asked: (3.9 * TIMEOUT_S, answer(asked)[1]) if asked.names else answer(asked))
    reports = run_batches([make_batch("a")], open_dispatcher(fleet, make_plan("a", IMPATIENT)))
    assert list_names(reports) == ["a"]
    assert len(fleet.list_sent(Measure)) == 1


def test_starting_and_compiling_have_time_however_little_a_case_may_take() -> None:
    seconds: dict[type, float] = {Survey: 60.0, Canary: 300.0, Build: 900.0}
    fleet = ScriptedFleet("x", lambda asked: (seconds.get(type(asked.request), 40.0), answer(asked)[1]))
    hasty = make_plan("a", Sampling((Metric.COUNT,), timeout_s=5.0))
    reports = run_batches([make_batch("a", _native_kind_group())], open_dispatcher(fleet, hasty))
    assert list_names(reports) == ["a"]
    assert [len(fleet.list_sent(kind)) for kind in (Survey, Canary, Build, Measure)] == [1, 1, 1, 1]


@pytest.mark.parametrize("wrong", ["kind", "none", "twice", "others", "things"])
def test_a_node_that_returns_something_else_costs_what_it_was_sent(wrong: str) -> None:
    def lie(asked: Asked) -> Answer:
        seconds, said = answer(asked)
        if not isinstance(said, Measured):
            return seconds, said
        alien = dataclasses.replace(said.outcomes[0], order=make_plan("z").orders[0])
        lies: dict[str, Any] = {
            "kind": CanaryCounted((1,), ()),
            "none": Measured(()),
            "twice": Measured(said.outcomes * 2),
            "others": Measured((alien,) * len(said.outcomes)),
            "things": Measured((5,) * len(said.outcomes)),  # type: ignore[arg-type]
        }
        return seconds, lies[wrong]

    found = outcomes(open_backend(ScriptedFleet("n", lie), PLAN).execute(PLAN, PLAN.orders, StopRequest()))
    assert {outcome.order for outcome in found} == set(PLAN.orders)
    assert all(isinstance(one.result, Failure) and one.result.kind is FailureKind.NO_RESULT for one in found)
