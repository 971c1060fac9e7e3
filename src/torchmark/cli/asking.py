"""What `torchmark ab` is asked to compare: two statements here, or statements or a suite in two interpreters."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex

from torchmark.api.ab import compare_statements
from torchmark.api.comparison import Comparison, Entry
from torchmark.api.counter import choose_layouts
from torchmark.api.referee import Settings
from torchmark.cli.parameters import check_interpreters
from torchmark.cli.planning import Wish
from torchmark.cli.selecting import Loaded, Options, describe_statement, load_cases
from torchmark.cli.timing import make_case
from torchmark.define.discovery import list_suites
from torchmark.errors import UsageError
from torchmark.model.case import TimerArgs
from torchmark.model.plan import SUITE_LAYOUTS, Metric, Target

BASE, HEAD = "base", "head"
# Names of commits that are no statements: nothing defines such a variable where there is no setup.
_COMMIT = re.compile(r"(HEAD|FETCH_HEAD|ORIG_HEAD|main|master|develop|origin/.+|(?!\d+$)[0-9a-f]{7,40})([~^@].*)?")
# Whatever else is given for a suite or a file is more likely a statement.
_NAME = re.compile(r"[\w./~-]*")


@dataclasses.dataclass(frozen=True)
class Asked:
    """What is to be compared, as it was asked for."""

    texts: tuple[str, ...]
    base: str | None
    head: str | None
    stmts: tuple[str, ...]
    setup: str | None
    global_setup: str
    chosen: Options
    metrics: tuple[Metric, ...]
    settings: Settings
    timeout: float
    is_here: bool = True
    """Whether the interpreters are on this machine."""

    @property
    def targets(self) -> tuple[Target, Target]:
        """Both sides."""
        return Target(BASE, self.base), Target(HEAD, self.head)

    def compare(self) -> tuple[Comparison | None, Loaded | None]:
        """What that means; with cases of a suite also what was found there, of which there may be none to compare."""
        if self.base is None and self.head is None:
            return self._compare_statements(), None
        if not self.stmts:
            self._check_texts()
        if self.is_here:
            check_interpreters(self.base, self.head)
        if self.stmts:
            if self.texts:
                raise UsageError(f"Compare either statements or suites: leave out --stmt, or {self.texts[0]!r}.")
            return Comparison(
                self._list_entries(), *self.targets, self.metrics, self.settings, timeout_s=self.timeout
            ), None
        return self._compare_suite()

    def _compare_statements(self) -> Comparison:
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
        args = [self._describe(stmt) for stmt in stmts]
        return compare_statements(args, None, self.metrics, self.settings, self.timeout)

    def _list_entries(self) -> tuple[Entry, ...]:
        return tuple(Entry(case, case) for case in (make_case(self._describe(stmt)) for stmt in self.stmts))

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

    def _compare_suite(self) -> tuple[Comparison | None, Loaded]:
        loaded = load_cases(self.texts, self.chosen.select())
        if not loaded.cases:
            return None, loaded
        entries = tuple(Entry(case, case) for case in loaded.cases)
        layouts = choose_layouts(SUITE_LAYOUTS)
        return Comparison(entries, *self.targets, self.metrics, self.settings, layouts, self.timeout), loaded

    def wish(self) -> Wish:
        """The same, as the run that counts are kept in has it."""
        return Wish(self.texts, self.chosen, (Metric.COUNT,), self.targets, 1, 0.0, SUITE_LAYOUTS, self.timeout)
