from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.drawings import SVG, Drawing
from tests.made_histories import ADD, TIMED, make_days
from tests.sample_runs import HOST
from torchmark.analysis.history import confirm, trace_histories
from torchmark.model.history import Difference, Ground, History, Point, Shift, ShiftStanding
from torchmark.model.judgement import Spread, Verdict
from torchmark.model.plan import Metric, Target
from torchmark.model.run import Run, RunInfo, Source
from torchmark.report.plots.history import draw_history, ink
from torchmark.report.plots.svg import colour

NEW_TORCH = dataclasses.replace(TIMED, torch_version="2.14.0")


def trace(days: list[Run]) -> History:
    return confirm(trace_histories(days)[0], {run.info.id: run for run in days})


@pytest.fixture(scope="module")
def changed() -> History:
    """On the twenty-first of forty days another torch makes it slower."""
    return trace(make_days([1.0] * 20 + [1.1] * 20, [5000] * 20 + [5600] * 20, environments={20: NEW_TORCH}))


def test_a_change_is_marked_and_told(changed: History) -> None:
    drawing = Drawing(draw_history(changed, Metric.COUNT, name="add"))
    assert {"instructions", "5,600", "+12.0 % confirmed", "40 runs"} <= set(drawing.texts)
    told = next(one for one in drawing.titles if "confirmed" in one)
    assert told.endswith("day-20, commit c0ffee: instructions +600 (+12.0 %), confirmed: counts are exact. "
                         "torch 2.13.0 → 2.14.0.")  # fmt: skip
    assert drawing.words.startswith(
        "add. 5,600 instructions in the newest of 40 runs, 5,000 instructions in the oldest."
    )
    assert colour(Verdict.SLOWER) in draw_history(changed, Metric.WALL)


def test_runs_tell_their_day_their_commit_and_their_value(changed: History) -> None:
    titles = Drawing(draw_history(changed, Metric.COUNT)).titles
    assert sum(one.endswith("commit c0ffee: 5,000 instructions") for one in titles) == 20
    assert len(Drawing(draw_history(changed, Metric.COUNT, hover=False)).titles) == 2


def test_noise_does_not_fill_the_height() -> None:
    drawing = Drawing(draw_history(trace(make_days([1.0] * 12)), Metric.WALL))
    assert {"+1 %", "0 %", "−1 %"} <= set(drawing.texts)


@pytest.mark.parametrize(
    ("levels", "texts"),
    [([1.0], {"measured in one run only"}), ([None], {"nothing was measured"}), ([None, 1.0, 1.0], {"3 runs"})],
)
def test_short_histories_are_drawn_too(levels: list[float | None], texts: set[str]) -> None:
    assert texts <= set(Drawing(draw_history(trace(make_days(levels)), Metric.WALL)).texts)


def test_nothing_connects_what_cannot_be_compared() -> None:
    days = make_days([1.0] * 3 + [4.0] * 3, environments={3: dataclasses.replace(TIMED, cpu_capability="DEFAULT")})
    for metric in Metric:
        drawing = Drawing(draw_history(trace(days), metric))
        line = next(str(one.get("d")) for one in drawing.root.iter(f"{SVG}path") if one.get("stroke-linejoin"))
        assert sum(" " in part for part in line.replace("V", "M").split("M")) - line.count("V") == 2


def shift(standing: ShiftStanding, before: float | None = 0.0, after: float | None = 0.1) -> Shift:
    return Shift(
        metrics=(Metric.WALL,),
        position=1,
        previous=0,
        standing=standing,
        ground=Ground.NONE,
        before=before,
        after=after,
    )


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (shift(ShiftStanding.CONFIRMED), Verdict.SLOWER),
        (shift(ShiftStanding.CONFIRMED, 0.1, 0.0), Verdict.FASTER),
        (shift(ShiftStanding.UNCONFIRMED), Verdict.UNDECIDED),
        (shift(ShiftStanding.ENVIRONMENT), Verdict.SAME),
        (shift(ShiftStanding.REDEFINED, None, None), Verdict.SAME),
    ],
)
def test_only_what_is_confirmed_is_called_slower_or_faster(one: Shift, expected: Verdict) -> None:
    assert ink(one) == colour(expected)


_numbers = st.floats(-1, 1) | st.floats()
_runs = st.builds(
    RunInfo, st.just("0" * 32), st.text(), st.floats(0, 4e9) | st.floats(), st.none(), st.just("0.1"), st.just(HOST),
    st.just((Source(ADD.suite, "<b>&"),)),
)  # fmt: skip
_points = st.builds(
    Point, _runs, st.none() | _numbers, st.none() | st.integers(0, 1),
    st.none() | st.builds(Spread, st.floats(0, 1e12) | st.floats(), st.floats(), st.floats()),
)  # fmt: skip


@st.composite
def _histories(draw: st.DrawFn) -> History:
    points = tuple(draw(st.lists(_points, max_size=12)))
    shifts = []
    if len(points) > 1:
        for position in sorted(draw(st.sets(st.integers(1, len(points) - 1), max_size=4))):
            levels = draw(st.tuples(st.floats(-5, 5), st.floats(-5, 5)))
            shifts.append(
                Shift(
                    (draw(st.sampled_from(Metric)),), position, position - 1, draw(st.sampled_from(ShiftStanding)),
                    Ground.NONE, *levels, None, (Difference("torch", draw(st.text()), None),),
                )
            )  # fmt: skip
    anchors = tuple(point.run for point in points[:1]) * 2
    if not anchors:
        points = ()
    return History(case=ADD, target=Target(), points=points, anchors=anchors, shifts=tuple(shifts))


@settings(deadline=None)
@given(_histories(), st.sampled_from(Metric), st.text())
def test_every_history_is_well_formed(history: History, metric: Metric, name: str) -> None:
    Drawing(draw_history(history, metric, name=name)).check_bounds()
