"""What `torchmark ab` compares, from its options; and its result as text, JSON, Markdown and an exit code."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import shutil
from typing import Any

from torchmark.analysis.verdict.stored import CaseId, CountedCase, identify
from torchmark.api.ab import compare_statements
from torchmark.api.runs import RunRequest
from torchmark.api.statements import make_case
from torchmark.cli.case_options import Loaded, describe_statement, load_cases
from torchmark.cli.gate_options import DEFAULT_LEDGER, GateOptions, decide_exit_code
from torchmark.cli.options import check_interpreters, use_colour
from torchmark.compare.comparison import ComparedPair, Comparison, Evidence
from torchmark.compare.experiment import Settings
from torchmark.compare.session import ComparisonResult
from torchmark.define.discovery import list_suites
from torchmark.define.selection import CaseOptions
from torchmark.errors import UsageError
from torchmark.model.case import TimerArgs
from torchmark.model.costs import Tally
from torchmark.model.gate import GateResult
from torchmark.model.judgement import CaseJudgement, Verdict
from torchmark.model.plan import SUITE_LAYOUTS, Metric, Order, Target
from torchmark.report.as_json import plain_judgement
from torchmark.report.text.failures import list_hints
from torchmark.report.text.gate import explain_judgements, list_sentences, plain_gate, summarise_markdown, tell_gate
from torchmark.report.text.judgements import (
    close,
    describe_judgement,
    order_judgements,
    render_judgements,
    tell_side_failures,
)
from torchmark.runner.spec import choose_layouts

BASE, HEAD = "base", "head"
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

    def _list_entries(self) -> tuple[ComparedPair, ...]:
        return tuple(ComparedPair(case, case) for case in (make_case(self._describe(stmt)) for stmt in self.stmts))

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
        entries = tuple(ComparedPair(case, case) for case in loaded.cases)
        layouts = choose_layouts(SUITE_LAYOUTS)
        base, head = self.targets
        comparison = Comparison(
            entries=entries,
            base=base,
            head=head,
            metrics=self.metrics,
            settings=self.settings,
            count_layouts=layouts,
            timeout_s=self.timeout,
        )
        return comparison, loaded

    def wish(self) -> RunRequest:
        """The same, as the run that counts are kept in has it."""
        return RunRequest(
            names=self.texts,
            chosen=self.chosen,
            metrics=(Metric.COUNT,),
            targets=self.targets,
            repeat=1,
            min_run_time=0.0,
            layouts=SUITE_LAYOUTS,
            timeout=self.timeout,
        )


TITLE = "torchmark ab: head against base"
SCHEMA = "torchmark.ab"
SCHEMA_VERSION = 1
DEFAULT_WIDTH = 80
# So many changes are explained by function without being asked for.
MOST_EXPLAINED = 5


def list_counts(comparison: Comparison, evidence: Evidence) -> dict[CaseId, CountedCase]:
    """Head's counts, for the gate."""
    counts = {}
    for entry in comparison.entries:
        order = Order(entry.head, comparison.head, Metric.COUNT)
        tally = evidence.counted.get(order)
        if isinstance(tally, Tally):
            counts[identify(entry.head)] = CountedCase(tally, evidence.environments.get(order))
    return counts


@dataclasses.dataclass(frozen=True)
class AbOutput:
    """All that is told in the end."""

    comparison: Comparison
    found: ComparisonResult
    result: GateResult
    gate: GateOptions
    store: str

    @property
    def exit_code(self) -> int:
        """That of all commands that compare; it is a failure if every case failed."""
        all_failed = all(one.verdict is Verdict.FAILED for one in self.found.judgements)
        return decide_exit_code(self.result, ended=self.found.exit_code, all_failed=all_failed)

    def show(self, *, all_cases: bool, explaining: bool) -> str:
        """For people."""
        width = shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns
        judgements = self.found.judgements
        texts = [describe_judgement(judgements[0], width)] if len(judgements) == 1 else []
        if not texts:
            texts.append(render_judgements(judgements, width, colour=use_colour(), all_cases=all_cases))
        if explaining:
            texts.append(explain_judgements(self._choose_explained(), width))
        # Only what is kept can be accepted.
        accept = self._spell_accept() if self.found.run is not None else None
        failures = (failed.failure for one in judgements if not one.case.suite for failed in one.failures)
        texts += [tell_side_failures(judgements, width), *list_hints(failures)]
        texts.append("\n".join(tell_gate(self.result, accept)))
        if self.found.run is not None and self.found.exit_code == 0:
            texts.append(f"Counts are kept: torchmark compare {self.found.run}{self._spell_store()}")
        return "\n\n".join(filter(None, texts))

    def _choose_explained(self) -> list[CaseJudgement]:
        stopped = {one.case for one in self.result.regressions}
        changed = [
            one
            for one in order_judgements(self.found.judgements)
            if one.explanation is not None and (one.case in stopped or one.verdict in (Verdict.SLOWER, Verdict.FASTER))
        ]
        return changed[:MOST_EXPLAINED]

    def _spell_accept(self) -> str:
        ledger = self.gate.ledger
        where = "" if ledger in (None, DEFAULT_LEDGER) else f" --ledger {shlex.quote(str(ledger))}"
        return f" --env {HEAD}{where}{self._spell_store()}"

    def _spell_store(self) -> str:
        return f" --store {shlex.quote(self.store)}" if self.store else ""

    def summarise(self) -> str:
        """As Markdown."""
        return summarise_markdown(self.found.judgements, title=TITLE, gate=list_sentences(self.result))

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "base": self._describe_side(self.comparison.base),
            "head": self._describe_side(self.comparison.head),
            "judgements": [plain_judgement(one) for one in order_judgements(self.found.judgements)],
            "summary": close(self.found.judgements),
            "gate": plain_gate(self.result),
            "exit_code": self.exit_code,
        }

    def _describe_side(self, target: Target) -> dict[str, Any]:
        environment = self.found.evidence.find_environment(target)
        return {
            "python": target.python,
            "environment": None if environment is None else dataclasses.asdict(environment),
        }
