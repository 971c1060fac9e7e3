"""What `torchmark ab` tells in the end: to people, to programs, to a page of CI, and as an exit code."""

from __future__ import annotations

import dataclasses
import shlex
import shutil
from typing import Any

from torchmark.analysis.contrast import CaseId, CountedCase, identify
from torchmark.api.comparison import Comparison, Evidence
from torchmark.cli.asking import HEAD
from torchmark.cli.comparing import Found
from torchmark.cli.gating import DEFAULT_LEDGER, GateOptions, decide_exit_code
from torchmark.cli.parameters import use_colour
from torchmark.model.costs import Tally
from torchmark.model.gate import GateResult
from torchmark.model.judgement import Judgement, Verdict
from torchmark.model.plan import Metric, Order, Target
from torchmark.report.comparing import explain_judgements
from torchmark.report.failures import list_hints
from torchmark.report.gate import list_sentences, plain_gate, tell_gate
from torchmark.report.judgement_plain import plain_judgement
from torchmark.report.judgement_rows import order_judgements
from torchmark.report.judgements import close, describe_judgement, render_judgements, tell_side_failures
from torchmark.report.step_summary import summarise_markdown

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
class Report:
    """All that is told in the end."""

    comparison: Comparison
    found: Found
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

    def _choose_explained(self) -> list[Judgement]:
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
