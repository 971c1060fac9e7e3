from __future__ import annotations

import dataclasses

from tests.sample_runs import ADD, ENVIRONMENT, FAILING
from torchmark.api.comparison import Evidence
from torchmark.model.plan import Metric, Order, Target

BASE, HEAD = Target("base", "/a"), Target("head", "/b")


def test_environments_are_told_by_target_each_once() -> None:
    other = dataclasses.replace(ENVIRONMENT, torch_version="1.13.1")
    found = {(ADD, BASE): ENVIRONMENT, (FAILING, BASE): ENVIRONMENT, (ADD, HEAD): other}
    evidence = Evidence(environments={Order(*key, Metric.COUNT): where for key, where in found.items()})
    assert evidence.list_environments(BASE) == (ENVIRONMENT,)
    assert evidence.find_environment(HEAD) == other
    assert evidence.find_environment(Target("nowhere")) is None
