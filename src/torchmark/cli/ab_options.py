"""What `torchmark ab` compares, and where, from its options.

Apart from the command, which stays short enough to be read at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shlex
from collections.abc import Iterator

import click

from torchmark.api.ab import BASE, HEAD, MOST_LAYOUTS, compare_statements, make_settings
from torchmark.api.runs import RunRequest
from torchmark.api.statements import make_case
from torchmark.callgrind.command import find_valgrind
from torchmark.cli.cases import Loaded, choice_options, describe_statement, load_cases
from torchmark.cli.options import (
    SECONDS,
    SHARE,
    BackendChoice,
    check_interpreters,
    give_together,
    global_setup_option,
    layouts_option,
    metric_option,
    setup_option,
    timeout_option,
)
from torchmark.cli.output import echo
from torchmark.compare.comparison import ComparedPair, Comparison
from torchmark.compare.experiment import LAYOUTS
from torchmark.compare.session import HERE, ComparisonPlace
from torchmark.define.discovery import list_suites
from torchmark.define.selection import CaseOptions
from torchmark.errors import SetupError, UsageError
from torchmark.model.job import DEFAULT_LAYOUTS
from torchmark.model.plan import SUITE_LAYOUTS, Metric, Target, TimerArgs
from torchmark.runner.spec import choose_layouts

# Names of commits that are no statements: nothing defines such a variable where there is no setup.
_COMMIT = re.compile(r"(HEAD|FETCH_HEAD|ORIG_HEAD|main|master|develop|origin/.+|(?!\d+$)[0-9a-f]{7,40})([~^@].*)?")
# Whatever else is given for a suite or a file is more likely a statement.
_NAME = re.compile(r"[\w./~-]*")


@dataclasses.dataclass(frozen=True)
class AbOptions:
    """What is to be compared, as it was asked for."""

    texts: tuple[str, ...]
    base: str | None
    head: str | None
    stmts: tuple[str, ...]
    setup: str | None
    global_setup: str
    chosen: CaseOptions
    metrics: tuple[Metric, ...]
    alpha: float
    equivalence: float
    layouts: int
    budget: float | None
    timeout: float

    @property
    def targets(self) -> tuple[Target, Target]:
        return Target(BASE, self.base), Target(HEAD, self.head)

    def compare(self, *, is_here: bool) -> tuple[Comparison | None, Loaded | None]:
        """What that means; with cases of a suite also what was found there, of which there may be none to compare.

        `is_here` says whether the interpreters are on this machine.
        """
        settings = make_settings(self.alpha, self.equivalence, self.layouts, self.budget)
        metrics = _leave_out_counts(self.metrics) if is_here else self.metrics
        if self.base is None and self.head is None:
            return compare_statements(self._list_statements(), None, metrics, settings, self.timeout), None
        if not self.stmts:
            self._check_texts()
        if is_here:
            check_interpreters(self.base, self.head)
        if self.stmts:
            if self.texts:
                raise UsageError(f"Compare either statements or suites: leave out --stmt, or {self.texts[0]!r}.")
            cases, loaded = [make_case(self._describe(stmt)) for stmt in self.stmts], None
        else:
            loaded = load_cases(self.texts, self.chosen.select())
            cases = list(loaded.cases)
            if not cases:
                return None, loaded
        comparison = Comparison(
            entries=tuple(ComparedPair(case, case) for case in cases),
            base=self.targets[0],
            head=self.targets[1],
            metrics=metrics,
            settings=settings,
            count_layouts=DEFAULT_LAYOUTS if loaded is None else choose_layouts(SUITE_LAYOUTS),
            timeout_s=self.timeout,
        )
        return comparison, loaded

    def _list_statements(self) -> list[TimerArgs]:
        """Two or more, which are compared in one interpreter."""
        stmts = (*self.texts, *self.stmts)
        for stmt in stmts:
            if stmt in list_suites() or os.path.exists(stmt):
                raise UsageError(
                    f"{stmt!r} is a suite or a file, and no statement: say in which interpreters its cases are to be "
                    "compared, with --base and --head."
                )
        if len(stmts) < 2:
            raise UsageError(
                "There is nothing to compare with. Give two statements, as in torchmark ab 'x + y' 'torch.add(x, y)', "
                "or two interpreters: torchmark ab --base PYTHON --head PYTHON."
            )
        if self.setup is None and any(map(_COMMIT.fullmatch, stmts)):
            raise UsageError(
                f"{' and '.join(map(repr, stmts))} look like git commits. ab compares two statements, or two "
                "interpreters, not commits. Build each commit in an environment of its own, and name both: "
                "torchmark ab --base PYTHON --head PYTHON."
            )
        return [self._describe(stmt) for stmt in stmts]

    def _describe(self, stmt: str) -> TimerArgs:
        return describe_statement(stmt, self.setup, self.global_setup, self.chosen)

    def _check_texts(self) -> None:
        if self.setup is not None or self.global_setup:
            raise UsageError("A suite's cases have setups of their own: say with --stmt which statement is meant.")
        for text in self.texts:
            if not _NAME.fullmatch(text) and text not in list_suites() and not os.path.exists(text):
                raise UsageError(
                    f"{text!r} is neither a suite nor a file or folder. To compare a statement in both interpreters, "
                    f"write --stmt {shlex.quote(text)}."
                )

    def make_request(self) -> RunRequest:
        return RunRequest(
            names=self.texts,
            chosen=self.chosen,
            metrics=(Metric.COUNT,),
            targets=self.targets,
            timeout=self.timeout,
        )


ab_options = give_together(
    "asked",
    AbOptions,
    click.argument("texts", metavar="[SUITE|PATH|STMT]...", nargs=-1),
    click.option(
        "--base", metavar="PYTHON", help="The interpreter to compare with; this program's own if only --head is given."
    ),
    click.option(
        "--head", metavar="PYTHON", help="The interpreter in question; this program's own if only --base is given."
    ),
    click.option(
        "--stmt", "stmts", metavar="CODE", multiple=True, help="A statement to compare in both, instead of a suite."
    ),
    setup_option("Runs once before a statement."),
    global_setup_option,
    choice_options,
    metric_option("Which witnesses to hear (wall,count).", "wall,count"),
    click.option("--alpha", type=SHARE, default="5%", help="The error rate that a case is screened with (5%)."),
    click.option("--equivalence", type=SHARE, default="1%", help="A change smaller than this is the same (1%)."),
    layouts_option(LAYOUTS, "Layouts of memory to take turns in (6).", least=2, most=MOST_LAYOUTS),
    click.option(
        "--budget",
        type=SECONDS,
        help="Limit in seconds for timing all cases, start-up included (30, plus 3 per case, plus start-up).",
    ),
    timeout_option("a process"),
)


@contextlib.contextmanager
def open_place(means: BackendChoice, comparison: Comparison) -> Iterator[ComparisonPlace]:
    """Where the comparison is carried out. What is for clusters is loaded for clusters alone."""
    if not means.is_ray:
        yield HERE
        return
    from torchmark.compare.joint_timing import ClusterComparison

    # Statements that are compared with each other are counted in one place; a case of a suite is with itself.
    together = any(entry.is_of_two for entry in comparison.entries)
    with contextlib.closing(ClusterComparison(means.make_cluster(aligned=True, together=together))) as cluster:
        yield cluster


def _leave_out_counts(metrics: tuple[Metric, ...]) -> tuple[Metric, ...]:
    """Without Valgrind there are no counts, which is no reason not to compare times, unless counts were asked for."""
    context = click.get_current_context()
    asked = context.get_parameter_source("metrics") is click.core.ParameterSource.COMMANDLINE
    if asked or Metric.COUNT not in metrics:
        return metrics
    try:
        find_valgrind(os.environ.get("PATH", os.defpath))
    except SetupError as error:
        echo(f"NOTE: Nothing is counted. {error}", err=True)
        return tuple(metric for metric in metrics if metric is not Metric.COUNT)
    return metrics
