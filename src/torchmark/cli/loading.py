"""Loading what needs torch, when it is needed, and saying so where torch is not there."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType

from torchmark.errors import SetupError
from torchmark.model.rule import Feature, RuleSearch
from torchmark.model.sdk import Sdk


def load_inputs() -> tuple[ModuleType, ModuleType]:
    """What makes fuzzers by their names, and what times statements on their inputs."""
    with _explaining():
        from torchmark.api import fuzzers, inputs
    return fuzzers, inputs


def look_for_rules(
    features: Sequence[Feature], effects: Sequence[float], noise: Sequence[float], neutral: float | None
) -> RuleSearch:
    """Look for rules. This loads scipy, which takes a second: for when all is measured."""
    from torchmark.analysis.rules import find_rules

    return find_rules(features, effects, noise, neutral=neutral)


def load_sdk() -> Sdk:
    """What the torch of this process needs for compiling C++."""
    with _explaining():
        from torchmark.measure.sdk import read_sdk
    return read_sdk()


@contextlib.contextmanager
def _explaining() -> Iterator[None]:
    try:
        yield
    except (ImportError, OSError) as error:
        # A shared library of torch's that cannot be loaded is an OSError.
        missing = isinstance(error, ModuleNotFoundError) and error.name == "torch"
        raise SetupError(
            f"{sys.executable} has no torch." if missing else f"torch of {sys.executable} does not load: {error}.",
            missing="torch",
            advice="Install it there, or run torchmark in the environment that has it.",
        ) from error
