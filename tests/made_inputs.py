"""Inputs as a fuzzer of binary operators makes them, without torch: sizes, steps, orders, and what follows of them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

from torchmark.model.inputs import Feature, Value

Input = Mapping[str, "Value | None"]
MOST_ELEMENTS = 4 * 1024**2
STEPS = {1: 0.8, 2: 0.06, 4: 0.06, 8: 0.04, 16: 0.04}


def make_input(rng: random.Random, largest: int = 4096) -> dict[str, Value | None]:
    """One input, with some twenty features that hang together."""
    while True:
        dim = rng.choice((1, 2, 3))
        sizes = [_size(rng, largest) for _ in range(dim)]
        if math.prod(sizes) <= MOST_ELEMENTS:
            break
    steps = [rng.choices(list(STEPS), list(STEPS.values()))[0] for _ in range(dim)]
    y_sizes = [size if rng.random() < 0.8 else 1 for size in sizes]
    orders = {name: rng.random() < 0.75 or dim == 1 for name in "xy"}
    made: dict[str, Value | None] = {"dim": dim}
    for name, given in (("k", sizes), ("y_k", y_sizes), ("x_step_", steps)):
        made |= {f"{name}{i}": given[i] if i < dim else None for i in range(3)}
    made["elements of x"] = math.prod(sizes)
    made["elements of y"] = math.prod(y_sizes)
    made["x is contiguous"] = orders["x"] and all(step == 1 for step in steps)
    made["y is contiguous"] = orders["y"]
    made["x and y have the same shape"] = sizes == y_sizes
    made["y is broadcast"] = sizes != y_sizes
    made["bytes of x"] = 4 * math.prod(size * step for size, step in zip(sizes, steps, strict=True))
    made["smallest size of x"] = min(sizes)
    made["largest size of x"] = max(sizes)
    made["dtype"] = rng.choice(("float32", "float64", "int32"))
    made["density"] = round(10 ** rng.uniform(-3, 0), 4)
    return made


def _size(rng: random.Random, largest: int) -> int:
    exponent = rng.uniform(1, math.log2(largest))
    return 2 ** round(exponent) if rng.random() < 0.2 else round(2**exponent)


def make_study(
    seed: int,
    count: int,
    effect: Callable[[Input, float], float] = lambda made, seconds: 0.0,
    *,
    largest: int = 4096,
    outliers: float = 0.02,
    spread: float = 0.005,
) -> tuple[list[Feature], list[float], list[float], list[Input]]:
    """Features, effects, their noise, and the inputs. `effect` gives what is planted, from an input and its time.

    Small inputs are noisier, as timers make them, and a few are hit by something else altogether.
    """
    rng = random.Random(seed)
    inputs: list[Input] = [make_input(rng, largest) for _ in range(count)]
    effects, noise = [], []
    for made in inputs:
        elements = made["elements of x"]
        assert isinstance(elements, int)
        sigma = spread * (1 + 3 / math.sqrt(1 + elements / 1000))
        hit = rng.choice((-1, 1)) * rng.uniform(0.1, 1.5) if rng.random() < outliers else 0.0
        effects.append(effect(made, 2e-6 + elements * 3e-10) + rng.gauss(0, sigma) + hit)
        noise.append(2 * sigma)
    names = inputs[0] if inputs else {}
    return [Feature(name, tuple(made[name] for made in inputs)) for name in names], effects, noise, inputs
