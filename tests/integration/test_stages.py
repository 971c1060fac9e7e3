"""Differences in instructions explained for real: between statements, and between two versions of torch."""

from __future__ import annotations

import pytest

from torchmark.analysis.verdict.explain import explain
from torchmark.callgrind.profiles import standardise, tally
from torchmark.define.discovery import discover
from torchmark.model.costs import Counts, Tally
from torchmark.model.job import CountJob, Place
from torchmark.model.judgement import Explanation
from torchmark.model.plan import AutogradMode, AutoLabels, Label, RuntimeMode
from torchmark.model.task import Language
from torchmark.runner.worker import Worker, count

# What may be left without a stage, as a share of all instructions.
MOST_UNPLACED = 0.15

ADD = (("Pointwise", "Math", "add", "Case:  0"), AutogradMode.FORWARD)
LINEAR = (("nn Modules", "Linear"), AutogradMode.FORWARD)
FORWARD = (("training", "simple"), AutogradMode.FORWARD)
BACKWARD = (("training", "simple"), AutogradMode.FORWARD_BACKWARD)


def count_case(worker: Worker, label: Label, autograd: AutogradMode) -> Tally:
    wanted = AutoLabels(RuntimeMode.EAGER, autograd, Language.PYTHON)
    cases = [case for case in discover(["standard"]).cases if (case.label, case.autolabels) == (label, wanted)]
    (args,) = (case.args for case in cases if case.args.num_threads == 1)
    counts = count(worker, CountJob(args.stmt, args.setup, Place("/"), layouts=(0,)), baseline=False)
    assert isinstance(counts, Counts), counts
    return tally(counts, (0,))


def explain_all(base: Tally, head: Tally) -> Explanation:
    """An explanation that is checked to be one of every single instruction."""
    explanation = explain(base, head, standardise)
    assert explanation is not None
    for changes in (explanation.functions, explanation.stages):
        assert sum(round(change.base * base.number) for change in changes) == base.total
        assert sum(round(change.head * head.number) for change in changes) == head.total
    return explanation


@pytest.mark.parametrize("case", [ADD, LINEAR, BACKWARD])
def test_nearly_every_instruction_has_a_stage(counting_worker: Worker, case: tuple[Label, AutogradMode]) -> None:
    counted = count_case(counting_worker, *case)
    parts = {change.stage: change.head for change in explain_all(counted, counted).stages}
    assert parts["other"] < MOST_UNPLACED * sum(parts.values()), parts
    assert all(parts[stage] for stage in parts if stage not in ("TorchScript", "other")), parts


def test_a_backward_pass_is_told_by_autograd(counting_worker: Worker) -> None:
    explanation = explain_all(count_case(counting_worker, *FORWARD), count_case(counting_worker, *BACKWARD))
    changes = {change.function: change for change in explanation.functions}
    engine = changes["torch::autograd::Engine::evaluate_function"]
    assert (engine.stage, engine.base) == ("autograd", 0)
    assert engine.head > 0


def test_two_versions_of_torch_are_told_apart_to_the_instruction(
    counting_worker: Worker, debian_worker: Worker
) -> None:
    explanation = explain_all(count_case(debian_worker, *LINEAR), count_case(counting_worker, *LINEAR))
    shared = [change for change in explanation.functions if change.base and change.head]
    assert {"_PyEval_EvalFrameDefault", "malloc", "torch::FunctionSignature::parse"} <= {f.function for f in shared}
    # Many functions of Debian's libraries have no name, so that they have no counterpart.
    assert sum(change.base for change in shared) > sum(change.base for change in explanation.functions) / 3
