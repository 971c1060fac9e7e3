"""What is known of an input without making it."""

from __future__ import annotations

import numpy as np

from torchmark import BinaryOpFuzzer, FuzzedParameter, FuzzedTensor, Fuzzer, UnaryOpSparseFuzzer
from torchmark.fuzz.fuzzer import as_value, outline


def test_an_outline_tells_what_tensors_will_be_like() -> None:
    fuzzer = BinaryOpFuzzer(0, preset="small")
    for index in range(20):
        one, (tensors, _, params) = outline(fuzzer, index), fuzzer[index]
        for name, tensor in tensors.items():
            assert one.features[f"{name} is contiguous"] is tensor.is_contiguous()
            assert one.features[f"elements of {name}"] == tensor.numel()
        assert one.features["dim"] == params["dim"]
        assert one.elements == tensors["x"].numel()


def test_sizes_beyond_the_last_dimension_and_what_aliases_stand_for_explain_nothing() -> None:
    fuzzer = BinaryOpFuzzer(0, preset="small")
    for index in range(20):
        features = outline(fuzzer, index).features
        dim = int(features["dim"])
        assert [f"k{i}" in features for i in range(3)] == [i < dim for i in range(3)]
        assert [f"y_step_{i}" in features for i in range(3)] == [i < dim for i in range(3)]
        assert not any("any" in name or "pow2" in name or name == "random_value" for name in features)


def test_a_sparse_input_has_features_of_its_own() -> None:
    features = outline(UnaryOpSparseFuzzer(0, preset="small"), 0).features
    assert {"density", "coalesced", "sparse_dim", "x is hybrid", "elements of x"} <= set(features)
    assert "x is contiguous" not in features


def test_what_rules_cannot_speak_of_is_no_feature() -> None:
    fuzzer = Fuzzer(
        [FuzzedParameter("n", 2, 4, "uniform"), FuzzedParameter("pair", distribution={(1, 2): 1.0})],
        [FuzzedTensor("x", ("n",))],
        seed=0,
    )
    assert set(outline(fuzzer, 0).features) == {"n", "x is contiguous", "elements of x"}
    assert as_value((1, 2)) is None
    assert as_value(np.float64(0.5)) == 0.5
    assert as_value("wide") == "wide"
