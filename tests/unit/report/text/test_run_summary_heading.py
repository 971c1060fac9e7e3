from __future__ import annotations

import dataclasses
import time

import pytest

from tests.made_summaries import make_case
from torchmark.model.environment import Environment
from torchmark.model.outcome import Outcome
from torchmark.model.plan import Plan
from torchmark.model.run import Host, Run, RunInfo, Source
from torchmark.model.task import Times
from torchmark.report.text.run_summary import describe_run

INFO = RunInfo(
    id="0123456789abcdef" * 2,
    name="base",
    created=86400.0,
    finished=86700.0,
    torchmark="0.1",
    host=Host("Linux x86_64", "EPYC", 4, 4),
)
NATIVE = Environment(
    python="python",
    python_version="3.11.7",
    torch_version="2.13.0",
    cpu_capability="AVX512",
    native_capability="AVX512",
)
COUNTED = dataclasses.replace(NATIVE, cpu_capability="AVX2", valgrind="valgrind-3.19.0")


def make_run(info: RunInfo, *environments: Environment) -> Run:
    plan = Plan((make_case("a"),))
    outcomes = (
        Outcome(order=plan.orders[0], result=Times(1, (1.0,)), began=0.0, ended=1.0, environment=environment)
        for environment in environments
    )
    return Run(info, plan, tuple(outcomes))


@pytest.fixture(autouse=True)
def a_zone_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "localtime", time.gmtime)


def test_a_heading_names_the_run_and_where_it_ran() -> None:
    assert describe_run(make_run(INFO, NATIVE, COUNTED), 90).splitlines() == [
        "Run base (0123456789ab), 1970-01-02 00:00, finished 1970-01-02 00:05",
        "  torch 2.13.0, Python 3.11.7, AVX512, Valgrind 3.19.0 (where it is AVX2)",
        "  EPYC, 4 cores, Linux x86_64",
    ]


def test_a_heading_says_what_is_not_as_it_should_be() -> None:
    info = dataclasses.replace(
        INFO,
        name="",
        finished=None,
        orders=4,
        outcomes=2,
        failures=1,
        host=Host("Linux", None, 8, 2),
        sources=(Source("bench.py", "c0ffee" * 7, dirty=True),),
    )
    assert describe_run(make_run(info), 90).splitlines() == [
        "Run 0123456789ab, 1970-01-02 00:00, not finished: 2 of 4 results, 1 failure",
        "  2 of 8 cores, Linux",
        "  bench.py at c0ffeec0ff with changes",
    ]


def test_a_heading_tells_of_every_torch_that_results_are_of() -> None:
    newer = dataclasses.replace(NATIVE, torch_version="2.14.0")
    assert "  torch 2.13.0 and 2.14.0, Python 3.11.7, AVX512" in describe_run(make_run(INFO, NATIVE, newer), 90)
