"""What is done leaves nothing behind: a long run takes no more memory at its end than in its middle."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from torchmark.model.environment import Environment
from torchmark.model.outcome import ActivityKind, Failure, FailureKind, Outcome
from torchmark.model.plan import AutogradMode, AutoLabels, Case, Metric, Plan, RuntimeMode, Sampling, Target, TimerArgs
from torchmark.model.task import Language
from torchmark.processes import StopRequest
from torchmark.runner.lab import Prepared
from torchmark.runner.local import LocalBackend
from torchmark.runner.prepare import Made, Stage

HERE = Environment("python", "3", "2")


class Result(Failure):
    """One that weak references can tell of."""


class PretendedLab:
    """A `Lab` whose workers answer at once, and whose every result is watched."""

    def __init__(self, target: Target, environ: Mapping[str, str]) -> None:
        self.target = target
        self.results: list[weakref.ref[Result]] = []

    def start(self) -> None: ...

    def pin(self, cores: Sequence[int]) -> None: ...

    def abandon(self) -> None: ...

    def make_counter(self) -> PretendedLab:
        return self

    def time(self, *_: object) -> tuple[Any, Environment]:
        result = Result(FailureKind.RAISED, "no")
        self.results.append(weakref.ref(result))
        return result, HERE

    count = time


class PretendedPreparation:
    def __init__(self, *_: object) -> None: ...

    def stages(self, cases: Sequence[Case]) -> Iterator[Stage]:
        def run(_: int) -> Made:
            return {case: Prepared(case) for case in cases}

        yield Stage(ActivityKind.CHECK, len(cases), run)


def test_ten_thousand_orders_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchmark.runner.local.Preparation", PretendedPreparation)
    monkeypatch.setattr("torchmark.runner.local.find_valgrind", lambda path: "valgrind")
    labels = AutoLabels(RuntimeMode.EAGER, AutogradMode.FORWARD, Language.PYTHON)
    cases = tuple(Case((str(number),), labels, TimerArgs("x")) for number in range(500))
    plan = Plan(cases, sampling=Sampling((Metric.WALL, Metric.COUNT), repeat=10))
    labs: list[PretendedLab] = []

    def make_lab(*args: Any) -> Any:
        labs.append(PretendedLab(*args))
        return labs[-1]

    backend = LocalBackend([0, 1], {"PATH": "/bin"}, make_lab)
    backend.open(plan)
    sizes: list[int] = []
    for number, event in enumerate(backend.execute(plan, plan.orders, StopRequest())):
        if isinstance(event, Outcome) and number % 2000 > 1997:
            gc.collect()
            sizes.append(len(gc.get_objects()))
            assert sum(one() is not None for one in labs[0].results) < 5
    backend.close()
    assert len(labs[0].results) == 10_000
    assert len(sizes) > 5
    # The weak references of this very test, and hardly anything else.
    grown = sizes[-1] - sizes[0]
    assert grown < len(labs[0].results) + 200
