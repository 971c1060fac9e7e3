"""The fuzzer: a repeatable stream of inputs, as tensors, as Python text, and as features known before they exist."""

from __future__ import annotations

import ast
import functools
import inspect
import keyword
import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch

from torchmark.errors import DefinitionError, UsageError
from torchmark.fuzz import tensors
from torchmark.fuzz.parameters import FuzzedParameter, ParameterAlias
from torchmark.fuzz.sparse import FuzzedSparseTensor
from torchmark.fuzz.tensors import Entropy, FuzzedTensor, Params, is_overridden
from torchmark.model.inputs import FuzzedInput, Value
from torchmark.model.task import name_value

Predicate = Callable[[dict[str, Any]], object]


def adapt(constraint: Callable[..., object], names: Collection[str]) -> Predicate:
    """A function of all parameters in one dictionary.

    A constraint gets parameters by name: those that it names, or all if it takes any. One that names none of them and
    takes a single argument gets the dictionary.

    >>> fits = adapt(lambda a, b: a < b, ["a", "b", "c"])
    >>> fits({"a": 1, "b": 2, "c": 0})
    True
    >>> adapt(lambda params: params["c"] > 0, ["a", "b", "c"])({"a": 1, "b": 2, "c": 0})
    False
    """
    if not callable(constraint):
        raise DefinitionError(f"A constraint is a function of parameters, not {constraint!r}.")
    try:
        taken = list(inspect.signature(constraint).parameters.values())
    except (TypeError, ValueError):
        # Some functions written in C do not tell.
        return constraint
    by_name = [p for p in taken if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name in names]
    missing = [p for p in taken if p not in by_name and p.default is p.empty and p.kind not in _VARIADIC]
    if not missing and any(p.kind is p.VAR_KEYWORD for p in taken):
        return lambda params: constraint(**params)
    if not missing and by_name:
        wanted = [p.name for p in by_name]
        return lambda params: constraint(**{name: params[name] for name in wanted})
    positional = [p for p in taken if p.kind is not p.KEYWORD_ONLY]
    if not by_name and positional and all(p.default is not p.empty or p in positional[:1] for p in missing):
        return constraint
    unknown = ", ".join(p.name for p in missing) or "nothing"
    raise DefinitionError(
        f"The constraint {name_constraint(constraint)} asks for {unknown}. The parameters are: {', '.join(names)}. "
        "A constraint takes parameters by their names, or all of them as one dictionary."
    )


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def name_constraint(constraint: Callable[..., object]) -> str:
    name = getattr(constraint, "__qualname__", None) or repr(constraint)
    code = getattr(constraint, "__code__", None)
    return name if code is None else f"{name} ({code.co_filename}, line {code.co_firstlineno})"


def refuses(predicate: Predicate, params: Params) -> bool:
    """Whether a condition does not hold; one that fails on what others would have kept from it does not count."""
    try:
        return not predicate(dict(params))
    except Exception:
        return False


_FOR_SPARSE = (tensors.fill, tensors.make_sparse, tensors.place_at_random, tensors.unravel)


def write_input(
    seed: int, tensors: Sequence[FuzzedTensor], params: Mapping[str, Any], orders: Sequence[Any], names: Iterable[str]
) -> str:
    """Statements that make all tensors, and variables for the parameters that are named."""
    for tensor in tensors:
        if not _is_free(tensor.name):
            raise DefinitionError(f"Python has no variable called {tensor.name!r}, or uses it here. Rename the tensor.")
    lines = [write_for_sparse()] if any(isinstance(t, FuzzedSparseTensor) for t in tensors) else []
    lines += [f"{name} = {params[name]!r}" for name in names if _is_free(name)]
    lines.append(f"torch.manual_seed({seed})")
    lines += [tensor.write(params, order) for tensor, order in zip(tensors, orders, strict=True)]
    return "\n".join(lines)


def _is_free(name: str) -> bool:
    """Whether it can be the name of a variable, and is not needed for something else."""
    taken = {"torch", *(function.__name__ for function in _FOR_SPARSE)}
    return name.isidentifier() and not keyword.iskeyword(name) and name not in taken


@functools.cache
def write_for_sparse() -> str:
    """The functions that make sparse tensors, without what Python 3.9 would stumble over."""
    return "\n\n".join(ast.unparse(_strip(ast.parse(inspect.getsource(function)))) for function in _FOR_SPARSE)


def _strip(tree: ast.Module) -> ast.Module:
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    function.body = function.body[1:]
    function.returns = None
    for argument in function.args.args:
        argument.annotation = None
    return tree


T = TypeVar("T")

# Ten times as patient as torch.utils.benchmark, and still done in a few tenths of a second; a number, not a time, so
# that it does not depend on the machine whether an input is found.
ATTEMPTS = 10_000
# To find out what is in the way, that many more are tried with all conditions.
DIAGNOSED = 1000
LARGEST_SEED = 2**32 - 1


class FuzzedItem(NamedTuple):
    """One input: tensors by name, what each is like, and the parameters they were made from."""

    tensors: dict[str, torch.Tensor]
    tensor_properties: dict[str, dict[str, Any]]
    params: dict[str, Any]

    def __repr__(self) -> str:
        sizes = [f"{name} {'x'.join(map(str, x.shape)) or 'scalar'} {x.dtype}" for name, x in self.tensors.items()]
        return name_value(self, f"{'; '.join(sizes)}; {', '.join(f'{n}={v!r}' for n, v in self.params.items())}")


class Draft(NamedTuple):
    """What an input will be, before any of it exists."""

    seed: int
    """Of its content."""
    params: dict[str, Any]
    orders: tuple[Any, ...]
    """In which order the dimensions of each tensor lie in memory."""


class Fuzzer:
    """Turns parameters and tensors into a repeatable stream of inputs.

    parameters, tensors: lists, of which elements may be lists.
    constraints: functions that are called with parameters by name, and say whether these are fit to be used. One that
        takes a single argument which is no parameter's name gets all of them as a dictionary.
    seed: from 0 to 2**32 - 1; a random one by default, see `seed`.

    Inputs are tuples `(tensors, tensor_properties, params)`. The random state of torch stays as it is.

    >>> fuzzer = Fuzzer(
    ...     parameters=[FuzzedParameter("n", 1, 16, "loguniform")],
    ...     tensors=[FuzzedTensor("x", size=("n",))],
    ...     seed=0,
    ... )
    >>> [params["n"] for _, _, params in fuzzer.take(2)]
    [7, 4]
    >>> fuzzer[1_000_000].tensors["x"].shape == fuzzer[1_000_000].tensors["x"].shape
    True
    """

    # Without end, so not to be iterated over by accident.
    __iter__ = None

    def __init__(
        self,
        parameters: Iterable[FuzzedParameter | Iterable[FuzzedParameter]],
        tensors: Iterable[FuzzedTensor | Iterable[FuzzedTensor]],
        constraints: Iterable[Callable[..., object]] | None = None,
        seed: int | None = None,
    ) -> None:
        self._seed = check_seed(seed)
        self._parameters = _unpack(parameters, FuzzedParameter)
        self._tensors = _unpack(tensors, FuzzedTensor)
        self._constraints = tuple(constraints or ())
        self._check_names()
        names = [p.name for p in self._parameters]
        self._predicates: tuple[Predicate, ...] = tuple(adapt(c, names) for c in self._constraints)
        self._samples = [(p.name, p.sample, p.strict) for p in self._parameters]
        # A subclass with a `sample` of its own may give an alias, too.
        self._aliasing = [p.name for p in self._parameters if p.aliases or is_overridden(p, FuzzedParameter, "sample")]
        self._rejections = 0
        self._total_generated = 0

    @property
    def seed(self) -> int:
        """What to give for `seed` to get the same inputs."""
        return self._seed

    @property
    def specification(self) -> tuple[tuple[FuzzedParameter, ...], tuple[FuzzedTensor, ...]]:
        """Its parameters, and its tensors."""
        return self._parameters, self._tensors

    @property
    def rejection_rate(self) -> float:
        """Which share of all parameters that were drawn so far was out of bounds; 0 before the first."""
        return self._rejections / self._total_generated if self._total_generated else 0.0

    def take(self, n: int) -> Iterator[FuzzedItem]:
        """The first `n` inputs, always the same."""
        state, seed = self._begin(np.random.RandomState(self._seed))
        entropy = Entropy(seed)
        for _ in range(n):
            yield self._make(self._draw(state, seed), entropy)

    def parameters(self, n: int) -> Iterator[dict[str, Any]]:
        """The parameters of the first `n` inputs, without the tensors: nothing is allocated."""
        state, seed = self._begin(np.random.RandomState(self._seed))
        for _ in range(n):
            yield self._draw(state, seed).params

    def __getitem__(self, index: int) -> FuzzedItem:
        """Input `index` of the stream by index: at once, whatever the index, and not the one that `take` gives."""
        draft = self.draft(index)
        return self._make(draft, Entropy(draft.seed))

    def draft(self, index: int) -> Draft:
        """What `fuzzer[index]` will be, without its tensors."""
        try:
            key = operator.index(index)
        except TypeError:
            raise TypeError(f"An input has a number, not {index!r}.") from None
        if key < 0:
            raise IndexError("Inputs are counted from 0, and have no end.")
        state = np.random.RandomState(np.random.PCG64(np.random.SeedSequence(self._seed, spawn_key=(key,))))
        return self._draw(*self._begin(state))

    def write(self, draft: Draft) -> str:
        """Python that makes what `fuzzer[index]` has, with torch alone: for other processes, and to be shown."""
        return write_input(draft.seed, self._tensors, draft.params, draft.orders, self.names_in_use(draft))

    def describe(self, draft: Draft) -> dict[str, dict[str, Any]]:
        """What the tensors will be like, by name."""
        pairs = zip(self._tensors, draft.orders, strict=True)
        return {tensor.name: tensor.describe(draft.params, order) for tensor, order in pairs}

    def names_in_use(self, draft: Draft) -> list[str]:
        """The parameters that tensors have been made from: not what aliases stood for, nor sizes beyond the last."""
        return list(dict.fromkeys(name for tensor in self._tensors for name in tensor.names_in_use(draft.params)))

    @staticmethod
    def _begin(state: np.random.RandomState) -> tuple[np.random.RandomState, int]:
        """The state, and the first number of it, which is the seed of what tensors contain."""
        return state, int(state.randint(low=0, high=2**63, dtype=np.int64))

    def _draw(self, state: np.random.RandomState, seed: int) -> Draft:
        params = self._generate(state)
        for tensor in self._tensors:
            tensor.check_extent(params)
        return Draft(seed, params, tuple([tensor.draw_order(params, state) for tensor in self._tensors]))

    def _make(self, draft: Draft, entropy: Entropy) -> FuzzedItem:
        tensors, properties = {}, {}
        for tensor, order in zip(self._tensors, draft.orders, strict=True):
            tensors[tensor.name], properties[tensor.name] = tensor.make(draft.params, order, entropy)
        return FuzzedItem(tensors, properties, draft.params)

    def _generate(self, state: np.random.RandomState) -> dict[str, Any]:
        """Parameters that keep all bounds and meet all constraints."""
        kept: dict[str, Any] = {}
        for _ in range(ATTEMPTS):
            params = self._sample(state, kept)
            self._total_generated += 1
            if all(f(params) for f in self._predicates) and all(t.satisfies_constraints(params) for t in self._tensors):
                return params
            self._rejections += 1
        raise UsageError(self._explain_failure(state, kept))

    def _sample(self, state: np.random.RandomState, kept: dict[str, Any]) -> dict[str, Any]:
        """A value for each parameter; what is strict is drawn only once, and then `kept`."""
        params = {}
        for name, sample, strict in self._samples:
            if strict and name not in kept:
                kept[name] = sample(state)
            params[name] = kept[name] if strict else sample(state)
        for name in self._aliasing:
            value, steps = params[name], 0
            while isinstance(value, ParameterAlias):
                value, steps = params[value.alias_to], steps + 1
                if steps > len(params):
                    raise DefinitionError(f"ParameterAlias cycle detected\n{params}")
            params[name] = value
        return params

    def _explain_failure(self, state: np.random.RandomState, kept: dict[str, Any]) -> str:
        """Which condition is most in the way, of all that there are."""
        rejected: Counter[str | int] = Counter()
        for _ in range(DIAGNOSED):
            params = self._sample(state, kept)
            for t in self._tensors:
                # A subclass may reject for reasons of its own.
                breaches = t.find_breaches(params) or ["satisfies_constraints"] * (not t.satisfies_constraints(params))
                rejected.update(f"tensor {t.name!r}: {breach}" for breach in breaches)
            # By number: functions that are written in one line have the same name.
            rejected.update(i for i, predicate in enumerate(self._predicates) if refuses(predicate, params))
        text = f"Failed to generate a set of valid parameters. {ATTEMPTS} attempts were all rejected."
        if not rejected:
            return text
        causes = [
            f"{cause if isinstance(cause, str) else self._name_constraint(cause)}: {count / DIAGNOSED:.0%} of them"
            # What rejects all of them is enough to know; otherwise two may exclude each other.
            for cause, count in rejected.most_common(1 if max(rejected.values()) == DIAGNOSED else 2)
        ]
        strict = [f"{name}={value!r}" for name, value in kept.items() if not isinstance(value, ParameterAlias)]
        held = f" {', '.join(strict)} had been drawn before that (strict)." if strict else ""
        return f"{text} Most were rejected by {'; then by '.join(causes)}.{held}"

    def _name_constraint(self, number: int) -> str:
        return f"the constraint {name_constraint(self._constraints[number])}"

    def _check_names(self) -> None:
        """Every name that is used is a parameter's, and means one thing."""
        parameters, tensors = [p.name for p in self._parameters], [t.name for t in self._tensors]
        overlap = set(parameters) & set(tensors)
        if overlap:
            raise DefinitionError(f"Duplicate names in parameters and tensors: {overlap}")
        for kind, names in (("parameters", parameters), ("tensors", tensors)):
            if twice := {name for name in names if names.count(name) > 1}:
                raise DefinitionError(f"Duplicate names in {kind}: {twice}")
        known = dict(zip(parameters, self._parameters, strict=True))
        uses = [(name, f"Parameter {p.name!r}") for p in self._parameters for name in p.aliases]
        uses += [(name, f"Tensor {t.name!r}") for t in self._tensors for name in t.names]
        for used, where in uses:
            if used not in known:
                raise DefinitionError(f"{where} uses {used!r}, which is no parameter. There are: {', '.join(known)}.")
        for tensor in self._tensors:
            for name in find_sources(tensor.whole_names, known):
                if not known[name].is_whole:
                    raise DefinitionError(
                        f"Tensor {tensor.name!r} uses {name!r} where a whole number is needed: {known[name]!r}."
                    )


def check_seed(seed: int | None) -> int:
    """The seed as a plain number, or a random one."""
    if seed is None:
        return int(np.random.RandomState().randint(0, LARGEST_SEED, dtype=np.int64))
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if not 0 <= number <= LARGEST_SEED:
        raise UsageError(f"A seed is a whole number from 0 to {LARGEST_SEED}, not {seed!r}.")
    return number


def find_sources(names: Iterable[str], parameters: Mapping[str, FuzzedParameter]) -> Iterable[str]:
    found, waiting = dict.fromkeys(names), list(names)
    while waiting:
        new = [alias for alias in parameters[waiting.pop()].aliases if alias not in found]
        found.update(dict.fromkeys(new))
        waiting += new
    return found


def _unpack(values: Iterable[T | Iterable[T]], kind: type[T]) -> tuple[T, ...]:
    flat: list[T] = []
    for value in values:
        if isinstance(value, kind):
            flat.append(value)
        elif isinstance(value, Iterable):
            flat += value
        else:
            raise DefinitionError(f"Expected a {kind.__name__}, not {value!r}.")
    for element in flat:
        if not isinstance(element, kind):
            raise DefinitionError(f"Expected a {kind.__name__}, not {element!r}.")
    return tuple(flat)


def outline(fuzzer: Fuzzer, index: int) -> FuzzedInput:
    """Input number `index` of a fuzzer's stream by index, without its tensors."""
    draft = fuzzer.draft(index)
    tensors = fuzzer.describe(draft)
    values = {name: as_value(draft.params[name]) for name in fuzzer.names_in_use(draft)}
    features: dict[str, Value] = {name: value for name, value in values.items() if value is not None}
    for name, tensor in tensors.items():
        features |= describe_tensor(name, tensor)
    return FuzzedInput(index, features, tensors, fuzzer.write(draft))


def as_value(value: Any) -> Value | None:
    """A parameter as a plain value; None for what rules cannot speak of."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (bool, int, float, str)) else None


def describe_tensor(name: str, tensor: dict[str, Any]) -> dict[str, Value]:
    """What parameters do not say of it by themselves."""
    kinds = [kind for kind in ("contiguous", "hybrid") if f"is_{kind}" in tensor]
    return {**{f"{name} is {kind}": tensor[f"is_{kind}"] for kind in kinds}, f"elements of {name}": tensor["numel"]}
