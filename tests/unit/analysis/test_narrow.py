"""Parts of runs."""

from __future__ import annotations

from tests.sample_runs import ADD, COUNT, FAILING, ODD, WALL, sample_run
from torchmark.analysis.results import narrow_run
from torchmark.model.plan import Target


def test_nothing_given_is_all_of_it() -> None:
    run = sample_run()
    assert narrow_run(run) == run


def test_a_part_has_what_was_asked_for_in_its_old_order() -> None:
    old, new = Target("old"), Target("new")
    part = narrow_run(sample_run([old, new]), cases=[FAILING, ADD], targets=[new], metrics=[WALL])
    assert part.plan.cases == (ADD, FAILING)
    assert part.plan.targets == (new,)
    assert part.plan.sampling.metrics == (WALL,)
    assert {outcome.order.metric for outcome in part.outcomes} == {WALL}
    assert (part.info.orders, part.info.outcomes, part.info.failures) == (4, 4, 2)


def test_what_the_plan_does_not_have_is_not_added() -> None:
    part = narrow_run(sample_run(), cases=[ODD], targets=[Target("other")], metrics=[COUNT])
    assert part.plan.targets == ()
    assert part.outcomes == ()
