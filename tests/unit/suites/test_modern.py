from __future__ import annotations

import pytest

from torchmark.define.discovery import Discovered, discover
from torchmark.model.plan import AutogradMode, Case, RuntimeMode
from torchmark.model.task import Language


@pytest.fixture(scope="module")
def modern() -> Discovered:
    return discover(["modern"])


def below(modern: Discovered, *label: str) -> list[Case]:
    return [case for case in modern.cases if case.label[: len(label)] == label]


def test_it_has_no_faults_and_at_least_60_cases(modern: Discovered) -> None:
    assert modern.faults == ()
    assert len(modern.cases) >= 60


def test_every_case_has_a_key_of_its_own(modern: Discovered) -> None:
    assert len({case.key for case in modern.cases}) == len(modern.cases)


@pytest.mark.parametrize(
    "label",
    [
        *(("Attention", use, which) for use in ("training", "inference") for which in ("causal", "not causal")),
        ("Normalisation", "rms_norm"),
        ("Embedding", "embedding"),
        ("Loss", "cross-entropy"),
        *(("Optimiser", name, "for-loop") for name in ("SGD", "Adam", "AdamW")),
        *(("Casts", name) for name in ("float32 to bfloat16", "float32 to float16", "float32 to int64", "no-op")),
        *(("Casts", f"{dtype} to float32") for dtype in ("bfloat16", "float16", "int64")),
        ("Inference mode views", "view"),
        *(("Matmul", dtype, f"{n} x {n}") for dtype in ("float32", "bfloat16") for n in (1, 16, 64)),
        ("Compiled training", "simple"),
        ("Compiled training", "ensemble"),
    ],
)
def test_a_topic_is_there_in_both_languages(modern: Discovered, label: tuple[str, ...]) -> None:
    assert {case.args.language for case in below(modern, *label)} == set(Language)


@pytest.mark.parametrize("optimiser", ["SGD", "Adam", "AdamW"])
def test_an_optimiser_steps_in_all_its_ways(modern: Discovered, optimiser: str) -> None:
    assert {case.label[2] for case in below(modern, "Optimiser", optimiser)} == {"for-loop", "foreach", "fused"}


@pytest.mark.parametrize("name", ["mm", "addmm", "bmm", "linear"])
def test_a_product_is_there_in_each_size_and_type(modern: Discovered, name: str) -> None:
    assert len({case.label for case in below(modern, "Matmul") if case.label[-1] == name}) == 2 * 3


@pytest.mark.parametrize("module", ["Linear", "LayerNorm", "Conv2d", "BatchNorm2d", "MLP"])
def test_a_module_is_compiled_and_eager(modern: Discovered, module: str) -> None:
    runtimes = {case.autolabels.runtime for case in below(modern, "Compiled modules", module)}
    assert runtimes == {RuntimeMode.EAGER, RuntimeMode.COMPILE}


@pytest.mark.parametrize("topic", ["Attention", "Loss", "Compiled training"])
def test_a_topic_is_there_with_its_backward_pass(modern: Discovered, topic: str) -> None:
    cases = below(modern, topic)
    assert {case.autolabels.autograd for case in cases} == {AutogradMode.FORWARD, AutogradMode.FORWARD_BACKWARD}


def test_what_is_compiled_runs_on_one_thread_and_without_torchscript(modern: Discovered) -> None:
    assert {case.args.num_threads for case in modern.cases} == {1}
    assert RuntimeMode.JIT not in {case.autolabels.runtime for case in modern.cases}


def test_whatever_is_compiled_can_be_left_out_by_its_tag(modern: Discovered) -> None:
    compiled = [case for case in modern.cases if case.autolabels.runtime == RuntimeMode.COMPILE]
    assert compiled
    assert all("compile" in case.tags for case in compiled)


def test_all_variants_of_a_group_are_compared(modern: Discovered) -> None:
    groups: dict[tuple[str, ...], list[Case]] = {}
    for case in modern.cases:
        groups.setdefault(case.label, []).append(case)
    several = [case for group in groups.values() if len(group) > 1 for case in group]
    assert all(case.check is not None for case in several)
