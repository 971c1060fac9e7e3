"""What `torchmark overrides` measures or compares, from its options.

Apart from the command, which stays short enough to be read at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import click

from torchmark.analysis.overrides import add_plain
from torchmark.api.override_comparison import SUITE, OverrideComparison, define_type
from torchmark.api.runs import RunRequest, plan_targets
from torchmark.cli.cases import Loaded, load_cases
from torchmark.cli.options import WholeNumber, give_together, python_option
from torchmark.cli.output import STANDARD_OUTPUT, check_output
from torchmark.define.selection import CaseOptions, select
from torchmark.errors import UsageError
from torchmark.measure.steps import LARGEST_NUMBER
from torchmark.model.plan import Case, Metric
from torchmark.runner.worker import DEFAULT_TIMEOUT_S

DEFAULT_OUTPUT = "overrides.zip"
DEFAULT_CALLS = 1000
# With as many blocks as calls, a million calls of each case, timing takes six minutes. A hundred blocks take half of
# one, and tell the median to half a per cent where the machine is quiet.
DEFAULT_BLOCKS = 100
# What only one of the two uses of this command knows.
_OF_ONE = ("nreps", "nrepreps", "python")
_OF_TWO = ("output", "all_cases", "fail_on", "limits", "ledger", "summary")


@dataclasses.dataclass(frozen=True)
class OverridesOptions:
    """What is to be measured or compared, as it was asked for."""

    nreps: int
    nrepreps: int
    types: tuple[str, ...]
    k: str | None
    python: str | None
    base: str | None
    head: str | None
    output: str | None

    @property
    def compares(self) -> bool:
        return self.base is not None or self.head is not None

    def check(self) -> None:
        """Refuse what would have no effect, and a bundle that cannot be written."""
        if self.compares and self.python is not None:
            raise UsageError("Say either --python, or which two to compare: --base and --head.")
        context = click.get_current_context()
        given = {
            parameter.name: parameter.opts[-1]
            for parameter in context.command.params
            if context.get_parameter_source(parameter.name or "") is click.core.ParameterSource.COMMANDLINE
        }
        for name in _OF_ONE if self.compares else _OF_TWO:
            if name in given:
                reason = "Blocks are as long as a comparison needs" if self.compares else "Nothing is compared"
                raise UsageError(f"{reason}: leave out {given[name]}{'' if self.compares else ', or say --base'}.")
        if self.output == STANDARD_OUTPUT:
            raise UsageError(f"Standard output has the verdicts. Name a file for the ZIP, such as {DEFAULT_OUTPUT}.")
        if self.compares:
            check_output(self.output or DEFAULT_OUTPUT, DEFAULT_OUTPUT)

    @property
    def _chosen(self) -> CaseOptions:
        return CaseOptions(k=() if self.k is None else (self.k,))

    def load(self) -> Loaded:
        """The cases that are meant, also of the user's types, with the plain Tensors they are held against."""
        loaded = load_cases((SUITE,), self._chosen.select())
        everything = (*loaded.found, *(case for name in dict.fromkeys(self.types) for case in define_type(name)))
        meant = select(everything, loaded.selection)
        return dataclasses.replace(loaded, cases=add_plain(meant, everything), found=everything)

    def make_request(self) -> RunRequest:
        """The run: of both metrics in one interpreter, or of the counts of two."""
        compares = self.compares
        return RunRequest(
            names=(SUITE,),
            chosen=self._chosen,
            metrics=(Metric.COUNT,) if compares else (Metric.WALL, Metric.COUNT),
            targets=self.make_question(()).targets if compares else plan_targets(self.python, ()),
            number=None if compares else self.nreps,
            blocks=None if compares else self.nrepreps,
            types=self.types,
        )

    def make_question(self, cases: Sequence[Case]) -> OverrideComparison:
        words = [word for name in self.types for word in ("--type", name)]
        words += ["-k", self.k] if self.k is not None else []
        return OverrideComparison(
            cases=tuple(cases), base=self.base, head=self.head, arguments=tuple(words), timeout_s=DEFAULT_TIMEOUT_S
        )


overrides_options = give_together(
    "asked",
    OverridesOptions,
    click.option(
        "-n",
        "--nreps",
        type=WholeNumber(1, LARGEST_NUMBER),
        default=DEFAULT_CALLS,
        metavar="N",
        help=f"Calls in a block, which is timed as a whole ({DEFAULT_CALLS}).",
    ),
    click.option(
        "-m",
        "--nrepreps",
        type=WholeNumber(1, 1_000_000),
        default=DEFAULT_BLOCKS,
        metavar="N",
        help=f"Blocks of each case ({DEFAULT_BLOCKS}, with which all of it takes about three minutes).",
    ),
    click.option(
        "--type",
        "types",
        metavar="MODULE:CLASS",
        multiple=True,
        help="A type of yours, to be measured in all calls; operands are CLASS([1.0]) and so on.",
    ),
    click.option("-k", metavar="EXPR", help="Only cases with these words in their labels."),
    python_option(),
    click.option("--base", metavar="PYTHON", help="Compare: the interpreter of the point that a branch diverges from."),
    click.option("--head", metavar="PYTHON", help="The interpreter of the branch; this program's own if not given."),
    click.option("-o", "--output", metavar="FILE", help=f"Where a comparison puts its ZIP ({DEFAULT_OUTPUT})."),
)
