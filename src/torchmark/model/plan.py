"""What is to be measured: cases and their variants, where and how, in which order; and the machines that took part."""

from __future__ import annotations

import dataclasses
import enum
import json

from torchmark.model.job import DEFAULT_LAYOUTS
from torchmark.model.task import Language, format_fields, name_value

Label = tuple[str, ...]


class RuntimeMode(enum.Enum):
    """How a statement is executed."""

    EAGER = "Eager"
    JIT = "TorchScript"
    EXPLICIT = ""
    """As its author wrote it, whatever that is."""
    COMPILE = "torch.compile"


class AutogradMode(enum.Enum):
    """What of a computation is executed."""

    FORWARD = "Forward"
    FORWARD_BACKWARD = "Forward + Backward"
    EXPLICIT = ""


@dataclasses.dataclass(frozen=True)
class CompileMode:
    """A back end of `torch.compile`, and its mode where it has some.

    >>> CompileMode("inductor", "max-autotune").title
    'torch.compile (inductor, max-autotune)'
    """

    backend: str = "inductor"
    mode: str | None = None

    @property
    def title(self) -> str:
        """What results are labelled with; the default one has nothing in brackets."""
        if self == CompileMode():
            return RuntimeMode.COMPILE.value
        return f"{RuntimeMode.COMPILE.value} ({', '.join(filter(None, (self.backend, self.mode)))})"


@dataclasses.dataclass(frozen=True, repr=False)
class AutoLabels:
    """Which variant of its group a case is."""

    runtime: RuntimeMode
    autograd: AutogradMode
    language: Language
    compiling: CompileMode | None = None
    """How it is compiled, where `runtime` is COMPILE."""

    def __repr__(self) -> str:
        return name_value(self, ", ".join(filter(None, self.as_dict.values())))

    @property
    def as_dict(self) -> dict[str, str]:
        """The labels as text.

        >>> AutoLabels(RuntimeMode.JIT, AutogradMode.FORWARD, Language.CPP).as_dict
        {'runtime': 'TorchScript', 'autograd': 'Forward', 'language': 'C++'}
        """
        return {
            "runtime": self.runtime.value if self.compiling is None else self.compiling.title,
            "autograd": self.autograd.value,
            "language": "Python" if self.language == Language.PYTHON else "C++",
        }


@dataclasses.dataclass(frozen=True, repr=False)
class TimerArgs:
    """What a `Timer` is made of, and nothing else.

    >>> TimerArgs("x + 1", "x = torch.ones(4)").language
    <Language.PYTHON: 0>
    """

    stmt: str
    setup: str = "pass"
    global_setup: str = ""
    num_threads: int = 1
    language: Language = Language.PYTHON

    def __repr__(self) -> str:
        return format_fields(self)


@dataclasses.dataclass(frozen=True)
class Artefact:
    """A TorchScript model that has to be on the disk before a case can load it.

    `file` stands, in double quotes, in the texts of the case, until it is known where the model is. `source` is Python
    that makes `jit_model`.
    """

    file: str
    source: str


@dataclasses.dataclass(frozen=True)
class CompileParts:
    """A compiled case taken apart, to measure what compiling costs, and what a call costs besides its work.

    `setup` makes the inputs and `model`; `call` is the forward call of `compiled_model` alone.
    """

    setup: str
    call: str
    mode: CompileMode


@dataclasses.dataclass(frozen=True)
class Check:
    """How to find out what a case computes, for comparing it with the other variants of its group.

    `setup` is the one of the case without warming up. `stmt` is run once after it, and hands over its results by name:
    `torchmark_give(name, value)` in Python, `torchmark::give(name, value)` in C++.
    """

    stmt: str
    setup: str


@dataclasses.dataclass(frozen=True, repr=False)
class Case:
    """One benchmark as it is measured. `check` is None where its results are not to be compared with others'."""

    label: Label
    autolabels: AutoLabels
    args: TimerArgs
    tags: tuple[str, ...] = ()
    artefact: Artefact | None = None
    parts: CompileParts | None = None
    check: Check | None = None
    suite: str = ""
    """The suite's name, or the path of the file that defines it."""

    def __repr__(self) -> str:
        return format_fields(self)

    @property
    def key(self) -> str:
        """The identity of a case within its suite.

        >>> Case(("add",), AutoLabels(RuntimeMode.EAGER, AutogradMode.FORWARD, Language.CPP), TimerArgs("x + 1;")).key
        '{"label": ["add"], "autolabels": {"runtime": "Eager", "autograd": "Forward", "language": "C++"}, \
"num_threads": 1}'
        """
        fields = {
            "label": list(self.label),
            "autolabels": self.autolabels.as_dict,
            "num_threads": self.args.num_threads,
        }
        return json.dumps(fields)


@dataclasses.dataclass(frozen=True)
class Fault:
    """Something wrong with a definition: where, what, and what to try."""

    file: str
    label: Label
    message: str
    advice: str | None = None
    line: int | None = None


@dataclasses.dataclass(frozen=True)
class Node:
    """One machine by the name that its cluster has for it, and what its times depend on."""

    name: str
    cpu_model: str | None = None
    """None where the machine does not tell."""


@dataclasses.dataclass(frozen=True)
class NodeKind:
    """Nodes whose results may be taken together, and what tells them from the others of a run."""

    traits: tuple[tuple[str, str | None], ...]
    """Such as `("capability", "AVX2")`; the words are those of `OtherPlaces`."""
    nodes: tuple[Node, ...]


# How many memory layouts the cases of a suite are counted in unless somebody says otherwise. Enough for a median and a
# spread, and fewer than for a single statement: each adds more than half of what the first takes.
SUITE_LAYOUTS = 3


class Metric(enum.Enum):
    """What is measured of a case."""

    WALL = "wall"
    """Seconds by the clock."""
    COUNT = "count"
    """Instructions."""


@dataclasses.dataclass(frozen=True)
class Target:
    """An interpreter with its torch, under the name that results are told apart by. None is the program's own."""

    name: str = ""
    python: str | None = None


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How each case is measured, the same for all of a run."""

    metrics: tuple[Metric, ...] = (Metric.WALL, Metric.COUNT)
    min_run_time_s: float = 0.2
    layouts: tuple[int, ...] = DEFAULT_LAYOUTS
    """Seeds of the memory layouts that counts are taken in."""
    repeat: int = 1
    """How often all of it is done."""
    timeout_s: float = 600.0
    """For each process that is started."""
    number: int | None = None
    """How many runs make a block, and how many blocks are timed, where that is fixed; `min_run_time_s` is then not
    heeded. Both are there, or neither."""
    blocks: int | None = None


@dataclasses.dataclass(frozen=True)
class Order:
    """One result that is wanted. `round` numbers the repetitions from 0."""

    case: Case
    target: Target
    metric: Metric
    round: int = 0


@dataclasses.dataclass(frozen=True)
class Plan:
    """All that is wanted."""

    cases: tuple[Case, ...]
    targets: tuple[Target, ...] = (Target(),)
    sampling: Sampling = Sampling()

    @property
    def orders(self) -> tuple[Order, ...]:
        """Round by round, case by case, so that targets are compared under the same conditions."""
        return tuple(
            Order(case, target, metric, number)
            for number in range(self.sampling.repeat)
            for case in self.cases
            for metric in self.sampling.metrics
            for target in self.targets
        )
