"""Parameters that are drawn at random, and aliases of them.

For a given state the values, and how many numbers are taken from the state, are those of `torch.utils.benchmark`.
"""

from __future__ import annotations

import bisect
import numbers
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from torchmark.errors import DefinitionError

# How far from one the sum of probabilities may be.
TOLERANCE = 1e-5

Draw = Callable[[np.random.RandomState], Any]


class ParameterAlias:
    """Stands for the value of another parameter, as a key of a distribution.

    Here `y` has the length of `x`, or one element:

    >>> lengths = [
    ...     FuzzedParameter("x_len", 4, 1024, distribution="uniform"),
    ...     FuzzedParameter("y_len", distribution={ParameterAlias("x_len"): 0.5, 1: 0.5}),
    ... ]

    An alias of an alias is fine, a circle is not.
    """

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A named value that is drawn anew for each input.

    distribution: `"loguniform"` and `"uniform"` draw between `minval` and `maxval`, both included; uniform draws whole
        numbers unless one of the bounds is a float, loguniform rounds down to one, or to `minval`. A dictionary gives
        values with their probabilities, which add up to one; a value may be a `ParameterAlias`.
    strict: drawn once for each input, and kept when the other parameters are drawn again because a bound or a
        constraint was not met. So bounds on the size cannot make some numbers of dimensions rarer than was asked for.

    >>> state = np.random.RandomState(0)
    >>> FuzzedParameter("n", 1, 16, "loguniform").sample(state)
    4
    >>> FuzzedParameter("kind", distribution={"tall": 0.25, "wide": 0.75}).sample(state)
    'wide'
    """

    def __init__(
        self,
        name: str,
        minval: float | None = None,
        maxval: float | None = None,
        distribution: str | Mapping[Any, float] | None = None,
        strict: bool = False,
    ) -> None:
        if not isinstance(name, str):
            raise DefinitionError(f"The name of a parameter is a text, not {name!r}.")
        self._name = name
        self._minval = minval
        self._maxval = maxval
        self._distribution = distribution
        self.strict = strict
        # Made once: drawing is what most of the time goes into.
        self._draw: Draw = self._choose_draw()

    def sample(self, state: np.random.RandomState) -> Any:
        """Draw a value."""
        return self._draw(state)

    @property
    def name(self) -> str:
        """What tensors and constraints call it."""
        return self._name

    def __getstate__(self) -> dict[str, Any]:
        # Functions that are made here cannot be pickled; they can be made again.
        return {name: value for name, value in vars(self).items() if name != "_draw"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._draw = self._choose_draw()

    def __repr__(self) -> str:
        bounds = "" if self._minval is None else f", {self._minval!r}, {self._maxval!r}"
        strict = ", strict=True" if self.strict else ""
        return f"FuzzedParameter({self._name!r}{bounds}, distribution={self._distribution!r}{strict})"

    @property
    def aliases(self) -> tuple[str, ...]:
        """The parameters whose value it may take."""
        choices = self._distribution if isinstance(self._distribution, Mapping) else ()
        return tuple(choice.alias_to for choice in choices if isinstance(choice, ParameterAlias))

    @property
    def is_whole(self) -> bool:
        """Whether it is always a whole number, as sizes have to be, as far as it is not an alias."""
        if isinstance(self._distribution, Mapping):
            drawn = (choice for choice, probability in self._distribution.items() if probability > 0)
            return all(isinstance(choice, (int, np.integer, ParameterAlias)) for choice in drawn)
        return self._has_whole_bounds or (self._distribution == "loguniform" and _is_whole(self._minval))

    @property
    def _has_whole_bounds(self) -> bool:
        return isinstance(self._minval, int) and isinstance(self._maxval, int)

    def _choose_draw(self) -> Draw:
        if isinstance(self._distribution, Mapping):
            return self._choice(self._distribution)
        if self._distribution not in ("loguniform", "uniform"):
            raise self._fault(
                f"Unknown distribution: {self._distribution}",
                'There are "loguniform", "uniform", and dictionaries of values with their probabilities.',
            )
        low, high = self._minval, self._maxval
        if low is None or high is None:
            raise self._fault(f'"{self._distribution}" needs minval and maxval')
        if not low <= high or not abs(high - low) <= sys.float_info.max:
            raise self._fault(f"There is nothing between minval={low!r} and maxval={high!r}")
        return self._loguniform(low, high) if self._distribution == "loguniform" else self._uniform(low, high)

    def _loguniform(self, low: float, high: float) -> Draw:
        if low <= 0:
            raise self._fault(f'"loguniform" needs a minval above zero, not {low!r}')
        log_low, log_high = np.log2(float(low)), np.log2(float(high))
        # Sizes are to be had from bounds like 1e6, too.
        lowest, highest = (int(bound) if _is_whole(bound) else float(bound) for bound in (low, high))

        def draw(state: np.random.RandomState) -> float:
            value = int(2 ** state.uniform(log_low, log_high))
            if value < lowest:
                return lowest
            return highest if value > highest else value

        return draw

    def _uniform(self, low: float, high: float) -> Draw:
        if self._has_whole_bounds:
            first, beyond = int(low), int(high) + 1
            if first < -(2**63) or beyond > 2**63:
                raise self._fault("Whole numbers are drawn from those of 64 bits", "Give one of the bounds as a float.")
            return lambda state: int(state.randint(first, beyond))
        return lambda state: state.uniform(low, high)

    def _choice(self, distribution: Mapping[Any, float]) -> Draw:
        probabilities = list(distribution.values())
        for probability in probabilities:
            if not isinstance(probability, numbers.Real):
                raise self._fault(
                    f"{probability!r} is no probability", "A distribution has values as keys, and their probabilities."
                )
        if any(p < 0 for p in probabilities):
            raise self._fault("Probabilities cannot be negative")
        # Written so that what is not a number is refused, too.
        if not abs(sum(probabilities) - 1) <= TOLERANCE:
            raise self._fault("Distribution is not normalized", f"The probabilities add up to {sum(probabilities):g}.")
        for bound, value in (("minval", self._minval), ("maxval", self._maxval)):
            if value is not None:
                raise self._fault(f"When passing a custom distribution, '{bound}' must be None")
        # What RandomState.choice does, without doing all of it again for each draw.
        cumulated = np.cumsum(np.array(probabilities, dtype=np.double))
        cumulated /= cumulated[-1]
        # Numbers of numpy are not written in a way that all interpreters read.
        choices = [choice.item() if isinstance(choice, np.generic) else choice for choice in distribution]
        steps = cumulated.tolist()
        return lambda state: choices[bisect.bisect_right(steps, state.random_sample())]

    def _fault(self, problem: str, advice: str = "") -> DefinitionError:
        return DefinitionError(f"{problem}: parameter {self._name!r}. {advice}".rstrip())


def _is_whole(bound: float | None) -> bool:
    return bound is not None and bound == int(bound)
