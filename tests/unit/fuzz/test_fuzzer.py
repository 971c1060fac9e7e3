"""The fuzzer: streams are those that are stored, repeatable, and leave all other random numbers alone."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tests import fuzzer_streams
from tests.sampling import assert_shares
from torchmark import DefinitionError, FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias, UnaryOpFuzzer, UsageError
from torchmark.fuzz.fuzzer import check_seed

STORED = json.loads(fuzzer_streams.GOLDEN.read_text())


def make_small(seed: int | None = 0, **arguments: Any) -> Fuzzer:
    parameters = [FuzzedParameter("n", 1, 16, "loguniform")]
    return Fuzzer(parameters, [FuzzedTensor("x", size=("n",), **arguments)], seed=seed)


# --- Streams ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", fuzzer_streams.SEEDS)
@pytest.mark.parametrize("name", fuzzer_streams.SPECIFICATIONS)
def test_streams_are_those_of_the_reference(name: str, seed: int) -> None:
    import torchmark

    # Through JSON, so that tuples are compared as lists.
    ours = json.loads(json.dumps(fuzzer_streams.run_stream(torchmark, name, seed)))
    assert ours == STORED["streams"][name][str(seed)]


def test_stored_streams_say_what_they_were_made_with() -> None:
    assert set(STORED["made_with"]) == {"torch", "numpy", "python"}
    assert set(STORED["streams"]) == set(fuzzer_streams.SPECIFICATIONS)


def test_stored_streams_have_all_kinds_of_tensors() -> None:
    tensors = [
        t for seeds in STORED["streams"].values() for s in seeds.values() for i in s for t in i["tensors"].values()
    ]
    assert {t["is_contiguous"] for t in tensors} == {True, False}
    assert {len(t["shape"]) for t in tensors} == {0, 1, 2, 3, 4}
    assert len({t["dtype"] for t in tensors}) == 9
    assert any(t["order"] != sorted(t["order"]) for t in tensors)
    assert any(step > 1 for t in tensors for step in t["steps"])


def test_the_values_that_users_know() -> None:
    (first, _, one), (second, _, two) = make_small(0).take(2)
    assert (one, two) == ({"n": 7}, {"n": 4})
    assert first["x"].tolist() == pytest.approx([0.7821, 0.0536, 0.9888, 0.1949, 0.5242, 0.1987, 0.5094], abs=5e-5)
    assert second["x"].tolist() == pytest.approx([0.7166, 0.5961, 0.8303, 0.0050], abs=5e-5)


def test_taking_again_gives_the_same() -> None:
    fuzzer = make_small(7)
    taken = [item.tensors["x"] for item in fuzzer.take(5)]
    assert all(torch.equal(item.tensors["x"], x) for item, x in zip(fuzzer.take(5), taken, strict=True))
    assert all(torch.equal(item.tensors["x"], x) for item, x in zip(make_small(7).take(5), taken, strict=True))
    assert [len(item.tensors["x"]) for item in make_small(8).take(5)] != list(map(len, taken))
    assert list(fuzzer.take(0)) == []


def test_streams_that_are_taken_in_turns_do_not_disturb_each_other() -> None:
    fuzzer = make_small(7)
    alone = [item.tensors["x"] for item in fuzzer.take(4)]
    for one, other, x in zip(fuzzer.take(4), fuzzer.take(4), alone, strict=True):
        torch.rand(3)
        assert torch.equal(one.tensors["x"], x)
        assert torch.equal(other.tensors["x"], x)


def test_an_input_by_its_number_does_not_depend_on_what_was_asked_before() -> None:
    one, other = make_small(7), make_small(7)
    asked = [3, 10**6, 0, 10**6, 2**40, 3]
    answers = {k: one[k] for k in asked}
    list(other.take(3))
    for k in sorted(answers, reverse=True):
        assert other[k].params == answers[k].params == other.draft(k).params
        assert torch.equal(other[k].tensors["x"], answers[k].tensors["x"])
    number: Any = np.int64(3)
    assert torch.equal(one[number].tensors["x"], answers[3].tensors["x"])


def test_inputs_by_number_differ_from_each_other_and_between_seeds() -> None:
    fuzzer = Fuzzer([FuzzedParameter("v", 0, 2**62, "uniform")], [], seed=1)
    other = Fuzzer([FuzzedParameter("v", 0, 2**62, "uniform")], [], seed=2)
    numbers = [*range(300), *(2**i + 3 for i in range(20, 70))]
    drafts = [f.draft(k) for f in (fuzzer, other) for k in numbers]
    assert len({draft.params["v"] for draft in drafts}) == len({draft.seed for draft in drafts}) == len(drafts)


def test_inputs_are_counted_from_zero_and_by_whole_numbers() -> None:
    with pytest.raises(IndexError, match="Inputs are counted from 0, and have no end"):
        make_small()[-1]
    wrong: list[Any] = [1.0, "1", None, slice(3)]
    for index in wrong:
        with pytest.raises(TypeError, match="An input has a number, not"):
            make_small()[index]
    with pytest.raises(TypeError):
        iter(make_small())


def test_parameters_come_without_their_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    fuzzer = UnaryOpFuzzer(seed=3, preset="small")
    taken = [item.params for item in fuzzer.take(20)]
    drafts = [fuzzer.draft(k) for k in range(5)]

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("something is allocated")

    for name in ("rand", "randint", "empty", "Generator"):
        monkeypatch.setattr(torch, name, refuse)
    assert list(fuzzer.parameters(20)) == taken
    assert [fuzzer.draft(k).params for k in range(5)] == [draft.params for draft in drafts]
    assert all(fuzzer.describe(draft)["x"]["numel"] >= 16 for draft in drafts)


FRESH = """
import hashlib
from torchmark import BinaryOpFuzzer
fuzzer = BinaryOpFuzzer(seed=5, preset="small")
items = [*fuzzer.take(2), fuzzer[1_000_000]]
content = b"".join(t.contiguous().numpy().tobytes() for item in items for t in item.tensors.values())
digest = hashlib.sha256(content + repr([item.params for item in items]).encode()).hexdigest()
"""


def test_another_process_gets_the_same() -> None:
    done = subprocess.run([sys.executable, "-c", FRESH + "print(digest)"], capture_output=True, text=True, check=True)
    here: dict[str, Any] = {"hashlib": hashlib}
    exec(FRESH, here)
    assert done.stdout.strip() == here["digest"]


# --- Random numbers of others -----------------------------------------------------------------------------


def constructor(size: tuple[int, ...], dtype: torch.dtype, **_: Any) -> torch.Tensor:
    return torch.rand(size, dtype=dtype)


def consume_all(fuzzer: Fuzzer) -> None:
    list(fuzzer.take(4))


def consume_half(fuzzer: Fuzzer) -> None:
    stream = fuzzer.take(4)
    next(stream)
    next(stream)


def consume_by_number(fuzzer: Fuzzer) -> None:
    fuzzer[5]


@pytest.mark.parametrize("consume", [consume_all, consume_half, consume_by_number])
@pytest.mark.parametrize("arguments", [{}, {"tensor_constructor": constructor}])
def test_the_callers_random_numbers_stay_as_they_are(
    consume: Callable[[Fuzzer], None], arguments: dict[str, Any]
) -> None:
    before, numpy_before = torch.get_rng_state(), np.random.get_state(legacy=False)
    consume(make_small(None, **arguments))
    assert torch.equal(torch.get_rng_state(), before)
    assert repr(np.random.get_state(legacy=False)) == repr(numpy_before)


def test_a_constructor_that_fails_leaves_the_callers_random_numbers_as_they_are() -> None:
    def construct(size: tuple[int, ...], **_: Any) -> torch.Tensor:
        torch.rand(3)
        raise ZeroDivisionError

    before = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError):
        make_small(0, tensor_constructor=construct)[0]
    assert torch.equal(torch.get_rng_state(), before)


def test_a_constructor_of_ones_own_draws_from_the_same_stream() -> None:
    custom = make_small(0, tensor_constructor=constructor)
    for ours, plain in zip(custom.take(3), make_small(0).take(3), strict=True):
        assert torch.equal(ours.tensors["x"], plain.tensors["x"])
    assert torch.equal(custom[4].tensors["x"], make_small(0)[4].tensors["x"])


# --- Specifications ---------------------------------------------------------------------------------------


def number(name: str = "n", low: int = 1, high: int = 9, strict: bool = False) -> FuzzedParameter:
    return FuzzedParameter(name, low, high, "uniform", strict)


def alias(name: str, *targets: str, strict: bool = False) -> FuzzedParameter:
    return FuzzedParameter(name, None, None, {ParameterAlias(t): 1 / len(targets) for t in targets}, strict)


@pytest.mark.parametrize(
    ("parameters", "tensors", "message"),
    [
        ([number("x")], [FuzzedTensor("x", (1,))], "Duplicate names in parameters and tensors: {'x'}"),
        ([number(), number()], [], "Duplicate names in parameters: {'n'}"),
        ([], [FuzzedTensor("x", (1,)), FuzzedTensor("x", (2,))], "Duplicate names in tensors: {'x'}"),
        ([number()], [FuzzedTensor("x", ("m",))], r"Tensor 'x' uses 'm', which is no parameter\. There are: n\."),
        ([number()], [FuzzedTensor("x", (1,), ("m",))], "uses 'm', which is no parameter"),
        ([number()], [FuzzedTensor("x", (1,), dim_parameter="m")], "uses 'm', which is no parameter"),
        ([number(), alias("m", "k")], [], r"Parameter 'm' uses 'k', which is no parameter\. There are: n, m\."),
        ([3], [], r"Expected a FuzzedParameter, not 3\."),
        (["n"], [], "Expected a FuzzedParameter, not 'n'"),
        ([[[number()]]], [], r"Expected a FuzzedParameter, not \["),
        ([], [number()], r"Expected a FuzzedTensor, not FuzzedParameter\('n', 1, 9"),
        ([FuzzedParameter("n", 0.5, 2, "uniform")], [FuzzedTensor("x", ("n",))], "where a whole number is needed"),
    ],
)
def test_a_specification_that_means_nothing_is_refused(parameters: Any, tensors: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        Fuzzer(parameters, tensors, seed=0)


def test_lists_may_have_lists_in_them() -> None:
    tensors: list[Any] = [[FuzzedTensor("x", ("n",)), FuzzedTensor("y", ("m",))], FuzzedTensor("z", (1,))]
    fuzzer = Fuzzer([number(), (number(name) for name in "mk")], tensors, seed=0)
    item = fuzzer[0]
    assert (list(item.tensors), list(item.params)) == (["x", "y", "z"], ["n", "m", "k"])
    assert [p.name for p in fuzzer.specification[0]] == ["n", "m", "k"]
    assert list(Fuzzer([], [], seed=0).take(1)) == [({}, {}, {})]


@pytest.mark.parametrize("seed", [-1, 2**32, 1.0, "1", 2**64])
def test_a_seed_that_numpy_does_not_take_is_refused(seed: Any) -> None:
    with pytest.raises(UsageError, match=rf"A seed is a whole number from 0 to 4294967295, not {seed!r}\."):
        Fuzzer([], [], seed=seed)


def test_seeds() -> None:
    large: Any = np.int64(2**32 - 1)
    assert (check_seed(0), check_seed(large)) == (0, 2**32 - 1)
    assert make_small(None).seed != make_small(None).seed
    fuzzer = make_small(None)
    assert list(make_small(fuzzer.seed).parameters(9)) == list(fuzzer.parameters(9))


def test_an_alias_has_the_value_of_its_target_also_through_others() -> None:
    fuzzer = Fuzzer([alias("c", "b"), alias("b", "a"), number("a"), alias("d", "c")], [], seed=0)
    assert all(len(set(params.values())) == 1 for params in fuzzer.parameters(50))


class Follower(FuzzedParameter):
    def sample(self, state: np.random.RandomState) -> Any:
        return ParameterAlias("n")


def test_a_subclass_may_draw_an_alias() -> None:
    fuzzer = Fuzzer([number("n", 1, 100), Follower("m", 0, 0, "uniform")], [FuzzedTensor("x", ("m",))], seed=0)
    assert fuzzer[0].tensors["x"].shape == (fuzzer[0].params["n"],)


def test_a_circle_of_aliases_is_found() -> None:
    for circle in ([alias("a", "a")], [alias("a", "b"), alias("b", "c"), alias("c", "a")]):
        with pytest.raises(DefinitionError, match="ParameterAlias cycle detected"):
            Fuzzer(circle, [], seed=0).draft(0)
    harmless = [FuzzedParameter("a", distribution={ParameterAlias("b"): 0.0, 4: 1.0}), alias("b", "a")]
    assert Fuzzer(harmless, [], seed=0).draft(0).params == {"a": 4, "b": 4}


def test_aliases_are_drawn_as_often_as_their_probability_says() -> None:
    lengths = [number("n", 2), FuzzedParameter("m", distribution={ParameterAlias("n"): 0.7, 1: 0.3})]
    drawn = list(Fuzzer(lengths, [], seed=1).parameters(3000))
    assert all(params["m"] in (1, params["n"]) for params in drawn)
    assert_shares((params["m"] == 1 for params in drawn), {True: 0.3, False: 0.7})


def test_what_is_strict_is_not_skewed_by_what_is_rejected() -> None:
    dims: dict[Any, float] = {1: 0.2, 2: 0.3, 3: 0.5}

    def draw_dims(strict: bool) -> list[int]:
        parameters: list[Any] = [
            FuzzedParameter("dim", distribution=dims, strict=strict),
            [FuzzedParameter(f"k{i}", 1, 64, "loguniform") for i in range(3)],
        ]
        x = FuzzedTensor("x", ("k0", "k1", "k2"), dim_parameter="dim", max_elements=64, device="meta")
        return [params["dim"] for params in Fuzzer(parameters, [x], seed=4).parameters(1500)]

    assert_shares(draw_dims(strict=True), dims)
    with pytest.raises(AssertionError):
        assert_shares(draw_dims(strict=False), dims)


def test_a_strict_alias_keeps_its_target_and_not_the_value() -> None:
    parameters = [number("a", 1, 100), number("b", 201, 300), alias("c", "a", "b", strict=True)]
    fuzzer = Fuzzer(parameters, [], constraints=[lambda a, b: a % 8 == 0 and b % 4 == 0], seed=0)
    drawn = list(fuzzer.parameters(300))
    assert all(params["c"] in (params["a"], params["b"]) for params in drawn)
    assert_shares((params["c"] == params["a"] for params in drawn), {True: 0.5, False: 0.5})


# --- What cannot be met -----------------------------------------------------------------------------------


def fail(*constraints: Callable[..., object], x: FuzzedTensor | None = None) -> str:
    parameters = [number("n", 1, 100), number("kept", 5, 5, strict=True)]
    with pytest.raises(UsageError) as caught:
        Fuzzer(parameters, [x] if x else [], constraints=constraints, seed=0).draft(0)
    message = str(caught.value)
    assert message.startswith("Failed to generate a set of valid parameters. 10000 attempts were all rejected. Most ")
    assert message.endswith("% of them. kept=5 had been drawn before that (strict).")
    return message


def test_the_constraint_that_is_in_the_way_is_named_with_its_place() -> None:
    never = lambda n: n > 100  # noqa: E731
    line = never.__code__.co_firstlineno
    # The first one rejects nearly all, and what it leaves the second one rejects.
    message = fail(lambda n: n > 95, never)
    assert f"by the constraint {never.__qualname__} ({__file__}, line {line}): 100% of them." in message


def test_the_bound_that_is_in_the_way_is_named() -> None:
    assert "by tensor 'x': min_elements=101: 100%" in fail(
        lambda n: n > 90, x=FuzzedTensor("x", ("n",), min_elements=101)
    )
    # Most are beyond the first bound, too, but all are beyond the second.
    both = FuzzedTensor("x", ("n",), max_elements=10, max_allocation_bytes=3)
    assert "by tensor 'x': max_allocation_bytes=3: 100%" in fail(x=both)


def test_conditions_that_exclude_each_other_are_not_blamed_for_all() -> None:
    message = fail(lambda n: n > 30, lambda n: n <= 30)
    first, second = (int(share) for share in re.findall(r"\): (\d+)% of them", message))
    assert 60 < first < 80
    # Rounded, one up and one down or both up.
    assert 99 <= first + second <= 101


def test_a_constraint_that_others_protect_does_not_hide_what_is_in_the_way() -> None:
    def cannot_take_all(n: int) -> bool:
        return 1 / (n - 101) > 0

    message = fail(lambda n: n > 100, cannot_take_all)
    assert "cannot_take_all" not in message


def test_rejections_are_counted() -> None:
    fuzzer = Fuzzer([number("n", 1, 4)], [], constraints=[lambda n: n == 1], seed=0)
    assert fuzzer.rejection_rate == 0.0
    draws = np.random.RandomState(0)
    draws.randint(0, 2**63, dtype=np.int64)
    drawn = [draws.randint(1, 5)]
    while drawn[-1] != 1:
        drawn.append(draws.randint(1, 5))
    next(fuzzer.parameters(1))
    assert fuzzer.rejection_rate == (len(drawn) - 1) / len(drawn)
    for _ in fuzzer.take(1000):
        pass
    # Nearly three of four; the last draw of each input is never rejected.
    assert abs(fuzzer.rejection_rate - 0.75) < 0.02
    assert make_small().rejection_rate == 0.0
    always = make_small()
    list(always.take(5))
    assert always.rejection_rate == 0.0


def test_fuzzers_can_be_pickled() -> None:
    fuzzer = UnaryOpFuzzer(3, preset="small")
    again = pickle.loads(pickle.dumps(fuzzer))
    assert list(again.parameters(3)) == list(fuzzer.parameters(3))
