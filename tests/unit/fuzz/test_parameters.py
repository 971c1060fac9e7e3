"""Draws equal those worked by hand and numpy's own; what cannot be drawn is refused where it is written."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark import DefinitionError, FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias

# What RandomState(0).random_sample() gives, one after the other.
SAMPLES = (0.5488135, 0.7151894, 0.6027634, 0.5448832, 0.4236548, 0.6458941, 0.4375872, 0.8917730, 0.9636628, 0.3834415)


class FixedState:
    """A state of numpy's that always draws the same."""

    def __init__(self, value: float) -> None:
        self.value = value

    def random_sample(self) -> float:
        return self.value

    def uniform(self, low: float, high: float) -> float:
        return low + self.value * (high - low)


def draw(parameter: FuzzedParameter, count: int, seed: int = 0) -> list[Any]:
    state = np.random.RandomState(seed)
    return [parameter.sample(state) for _ in range(count)]


def test_choices_are_drawn_where_a_number_falls_among_cumulated_probabilities() -> None:
    state = np.random.RandomState(0)
    assert [state.random_sample() for _ in SAMPLES] == pytest.approx(SAMPLES, abs=1e-7)
    # Cumulated: a to 0.5, b to 0.6, c to 0.8, d to 1.
    choice = FuzzedParameter("p", distribution={"a": 0.5, "b": 0.1, "c": 0.2, "d": 0.2})
    assert draw(choice, 10) == ["b", "c", "c", "b", "a", "c", "a", "d", "d", "a"]


def test_a_number_on_a_border_belongs_to_what_comes_after() -> None:
    choice = FuzzedParameter("p", distribution={"never": 0.0, "a": 0.5, "b": 0.5, "nor this": 0.0})
    borders = {0.0: "a", 0.25: "a", 0.5: "b", math.nextafter(0.5, 0): "a", math.nextafter(1, 0): "b"}
    for value, expected in borders.items():
        state: Any = FixedState(value)
        assert choice.sample(state) == expected


@given(st.lists(st.integers(0, 50), min_size=1, max_size=12).filter(any), st.integers(0, 2**32 - 1))
def test_choices_are_those_of_numpy(weights: list[int], seed: int) -> None:
    shares = [weight / sum(weights) for weight in weights]
    ours = draw(FuzzedParameter("p", distribution=dict(enumerate(shares))), 5, seed)
    state = np.random.RandomState(seed)
    assert ours == [state.choice(len(shares), p=shares) for _ in range(5)]


def test_keys_come_back_as_they_are_but_for_numbers_of_numpy() -> None:
    key = ParameterAlias("n")
    assert draw(FuzzedParameter("p", distribution={key: 1.0}), 1) == [key]
    (value,) = draw(FuzzedParameter("p", distribution={np.int64(3): 1.0}), 1)
    assert (value, type(value)) == (3, int)


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 2**32 - 1))
def test_loguniform_draws_whole_numbers_within_its_bounds(low: int, more: int, seed: int) -> None:
    for kind in (int, float):
        for value in draw(FuzzedParameter("n", kind(low), kind(low + more), "loguniform"), 5, seed):
            assert isinstance(value, int)
            assert low <= value <= low + more


def test_loguniform_rounds_down_but_not_below_its_lower_bound() -> None:
    parameter = FuzzedParameter("n", 1.5, 8, "loguniform")
    lowest: Any = FixedState(0.0)
    assert parameter.sample(lowest) == 1.5
    assert set(draw(parameter, 200)) == {1.5, 2, 3, 4, 5, 6, 7}


def test_uniform_draws_whole_numbers_up_to_both_bounds_unless_one_is_a_float() -> None:
    assert set(draw(FuzzedParameter("n", -1, 2, "uniform"), 100)) == {-1, 0, 1, 2}
    floats = draw(FuzzedParameter("n", 1, 2.0, "uniform"), 100)
    assert all(isinstance(value, float) and 1 <= value < 2 for value in floats)


def test_very_large_bounds() -> None:
    assert all(1 <= value <= 2**80 for value in draw(FuzzedParameter("n", 1, 2**80, "loguniform"), 20))
    assert all(-(2**63) <= value < 2**63 for value in draw(FuzzedParameter("n", -(2**63), 2**63 - 1, "uniform"), 20))


def test_a_subclass_may_draw_in_its_own_way() -> None:
    class Even(FuzzedParameter):
        def sample(self, state: np.random.RandomState) -> Any:
            return 2 * super().sample(state)

    fuzzer = Fuzzer([Even("n", 1, 8, "uniform")], [], seed=0)
    plain = Fuzzer([FuzzedParameter("n", 1, 8, "uniform")], [], seed=0)
    assert [p["n"] for p in fuzzer.parameters(9)] == [2 * p["n"] for p in plain.parameters(9)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"distribution": None}, r"Unknown distribution: None: parameter 'n'\. There are .*dictionaries"),
        ({"distribution": "normal", "minval": 1, "maxval": 2}, "Unknown distribution: normal"),
        ({"distribution": "uniform", "minval": 1}, r"\"uniform\" needs minval and maxval: parameter 'n'\."),
        ({"distribution": "loguniform", "maxval": 1}, "needs minval and maxval"),
        ({"distribution": "uniform", "minval": 3, "maxval": 2}, "nothing between minval=3 and maxval=2"),
        ({"distribution": "uniform", "minval": 0, "maxval": math.inf}, "nothing between"),
        ({"distribution": "uniform", "minval": math.nan, "maxval": 1}, "nothing between"),
        ({"distribution": "uniform", "minval": 0, "maxval": 10**400}, "nothing between"),
        ({"distribution": "uniform", "minval": 0, "maxval": 2**63}, r"64 bits.*as a float\."),
        ({"distribution": "loguniform", "minval": 0, "maxval": 4}, "minval above zero, not 0"),
        ({"distribution": {}}, r"not normalized: parameter 'n'\. The probabilities add up to 0\."),
        ({"distribution": {1: 0.5, 2: 0.4}}, r"add up to 0\.9\."),
        ({"distribution": {1: 1.0, 2: 1e-4}}, "not normalized"),
        ({"distribution": {1: math.nan}}, "not normalized"),
        ({"distribution": {1: 1.5, 2: -0.5}}, "Probabilities cannot be negative: parameter 'n'"),
        ({"distribution": {0.5: ParameterAlias("m")}}, "is no probability: parameter 'n'. A distribution has values"),
        ({"distribution": {1: "1"}}, "'1' is no probability"),
        ({"distribution": {1: 1.0}, "minval": 1}, "custom distribution, 'minval' must be None"),
        ({"distribution": {1: 1.0}, "maxval": 1}, "custom distribution, 'maxval' must be None"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        FuzzedParameter("n", **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"distribution": "uniform", "minval": 2, "maxval": 2},
        {"distribution": "uniform", "minval": 0.0, "maxval": 2**63},
        {"distribution": "loguniform", "minval": 0.5, "maxval": 4},
        {"distribution": {1: 1}},
        {"distribution": {1: 1.0, 2: 5e-6}},
        {"distribution": {1: np.float32(0.5), 2: 0.5}},
    ],
)
def test_what_can_be_drawn_is_drawn(arguments: dict[str, Any]) -> None:
    assert draw(FuzzedParameter("n", **arguments), 3)


def test_a_name_is_a_text() -> None:
    name: Any = 3
    with pytest.raises(DefinitionError, match="The name of a parameter is a text, not 3"):
        FuzzedParameter(name, 1, 2, "uniform")


@pytest.mark.parametrize(
    ("parameter", "is_whole"),
    [
        (FuzzedParameter("n", 1, 2, "uniform"), True),
        (FuzzedParameter("n", 1, 2.0, "uniform"), False),
        (FuzzedParameter("n", 1, 1e6, "loguniform"), True),
        (FuzzedParameter("n", 1.5, 9, "loguniform"), False),
        (FuzzedParameter("n", distribution={1: 0.5, np.int64(2): 0.5}), True),
        (FuzzedParameter("n", distribution={1: 0.5, 2.5: 0.5}), False),
        (FuzzedParameter("n", distribution={1: 1.0, "never": 0.0}), True),
        (FuzzedParameter("n", distribution={ParameterAlias("whole"): 1.0}), True),
        (FuzzedParameter("n", distribution={ParameterAlias("float"): 1.0}), False),
        (FuzzedParameter("n", distribution={ParameterAlias("chain"): 0.5, 1: 0.5}), False),
    ],
)
def test_only_whole_numbers_can_be_lengths(parameter: FuzzedParameter, is_whole: bool) -> None:
    others = [
        FuzzedParameter("whole", 1, 3, "uniform"),
        FuzzedParameter("float", 0.0, 3.0, "uniform"),
        FuzzedParameter("chain", distribution={ParameterAlias("float"): 1.0}),
    ]
    tensor = FuzzedTensor("x", size=("n",))
    if is_whole:
        assert Fuzzer([parameter, others], [tensor], seed=0)[0].tensors["x"].dim() == 1
    else:
        with pytest.raises(
            DefinitionError, match=r"Tensor 'x' uses '(n|float)' where a whole number is needed: Fuzzed"
        ):
            Fuzzer([parameter, others], [tensor], seed=0)


def test_a_parameter_is_shown_as_it_is_written() -> None:
    assert repr(FuzzedParameter("n", 1, 2, "uniform")) == "FuzzedParameter('n', 1, 2, distribution='uniform')"
    strict = FuzzedParameter("n", distribution={1: 1.0}, strict=True)
    assert repr(strict) == "FuzzedParameter('n', distribution={1: 1.0}, strict=True)"
    assert repr(ParameterAlias("n")) == "ParameterAlias[alias_to: n]"
