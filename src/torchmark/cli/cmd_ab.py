"""`torchmark ab`: compare two builds of torch, or two statements, in turns; and a gate for what became slower."""

from __future__ import annotations

import dataclasses
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import IO, Any

import click

from torchmark.analysis.contrast import CaseId, CountedCase, identify
from torchmark.api.ab import MOST_LAYOUTS, compare_statements, make_case, make_settings
from torchmark.api.comparison import Comparison, Entry, Evidence
from torchmark.api.counter import choose_layouts
from torchmark.api.referee import LAYOUTS, Settings
from torchmark.callgrind.command import find_valgrind
from torchmark.cli.comparing import Found, carry_out
from torchmark.cli.gating import DEFAULT_LEDGER, REFUSED, GateOptions, append_summary, apply_gate, gate_options
from torchmark.cli.parameters import (
    Metrics,
    Seconds,
    Share,
    check_folder,
    check_language,
    global_setup_option,
    is_standard_output,
    json_option,
    use_colour,
    write_json,
)
from torchmark.cli.planning import Wish
from torchmark.cli.selecting import FAULTY, Loaded, Options, choice_options, load_cases, say_why_nothing, show_faults
from torchmark.cli.storing import spell_store, store_option
from torchmark.define.discovery import list_suites
from torchmark.define.selection import LANGUAGES
from torchmark.errors import SetupError, UsageError
from torchmark.model.case import TimerArgs
from torchmark.model.costs import Tally
from torchmark.model.gate import GateResult
from torchmark.model.judgement import Judgement, Verdict
from torchmark.model.plan import SUITE_LAYOUTS, Metric, Order, Target
from torchmark.report.comparing import explain_judgements
from torchmark.report.gate import list_sentences, plain_gate, tell_gate
from torchmark.report.judgement_plain import plain_judgement
from torchmark.report.judgement_rows import order_judgements
from torchmark.report.judgements import close, describe_judgement, render_judgements, tell_side_failures
from torchmark.report.step_summary import summarise_markdown
from torchmark.runner.cores import choose_cores
from torchmark.runner.worker import DEFAULT_TIMEOUT_S

SCHEMA = "torchmark.ab"
SCHEMA_VERSION = 1
DEFAULT_WIDTH = 80
NOTHING_COMPARED = 1
# So many changes are explained by function without being asked for.
MOST_EXPLAINED = 5

BASE, HEAD = "base", "head"


@click.command("ab")
@click.argument("texts", metavar="[SUITE|PATH|STMT]...", nargs=-1)
@click.option(
    "--base", metavar="PYTHON", help="The interpreter to compare with; this program's own if only --head is given."
)
@click.option(
    "--head", metavar="PYTHON", help="The interpreter in question; this program's own if only --base is given."
)
@click.option(
    "--stmt", "stmts", metavar="CODE", multiple=True, help="A statement to compare in both, instead of a suite."
)
@click.option("--setup", metavar="CODE", help="Runs once before a statement.")
@global_setup_option
@choice_options
@click.option("--metric", "metrics", type=Metrics(), default="wall,count", help="Which witnesses to hear (wall,count).")
@click.option("--alpha", type=Share(), default="5%", help="The error rate that a case is screened with (5%).")
@click.option("--equivalence", type=Share(), default="1%", help="A change smaller than this is the same (1%).")
@click.option(
    "--layouts",
    type=click.IntRange(2, MOST_LAYOUTS),
    default=LAYOUTS,
    metavar="N",
    help="Layouts of memory to take turns in (6).",
)
@click.option("--budget", type=Seconds(), help="Seconds to take turns for, all cases together (30, and 3 for each).")
@click.option("--timeout", type=Seconds(), default=DEFAULT_TIMEOUT_S, help="Seconds until a process is given up (600).")
@click.option("--cores", metavar="N|LIST", help="How many cores to use, or which, such as 0,2-3 (all).")
@gate_options
@click.option("--all", "all_cases", is_flag=True, help="A line for each case, however many are the same.")
@click.option("--no-explain", is_flag=True, help="Explain no change by function; else the five largest are.")
@click.option("-q", "--quiet", is_flag=True, help="No signs of life, only the results.")
@store_option
@json_option
def command(
    texts: tuple[str, ...],
    base: str | None,
    head: str | None,
    stmts: tuple[str, ...],
    setup: str | None,
    global_setup: str,
    chosen: Options,
    metrics: tuple[Metric, ...],
    alpha: float,
    equivalence: float,
    layouts: int,
    budget: float | None,
    timeout: float,
    cores: str | None,
    gate: GateOptions,
    all_cases: bool,
    no_explain: bool,
    quiet: bool,
    store_path: Path,
    json_file: IO[str] | None,
) -> int:
    """Compare two builds of torch, or two statements: slower, faster, the same, or undecided.

    With --base or --head, cases of a suite run in two interpreters; with --stmt, statements do. Without, each STMT is
    held against the first one, in this interpreter. Both sides are counted, and timed in turns on one core, in several
    layouts of memory. A change in time has been seen again on fresh layouts before it is called one.

    \b
    torchmark ab --base /path/to/python --head /other/python standard -k "linear and not cpp"
    torchmark ab --base /path/to/python --stmt "x + y" --setup "x, y = torch.ones(4), torch.ones(4)"
    torchmark ab "x + y" "torch.add(x, y)" --setup "x, y = torch.ones(4), torch.ones(4)"
    """
    check_folder()
    usable = choose_cores(cores)
    if not timeout:
        raise UsageError("--timeout 0 would give up every case before it has begun.")
    settings = make_settings(alpha, equivalence, layouts, budget)
    # As `python -m` does, so that a setup can import what lies here.
    sys.path.insert(0, os.getcwd())
    metrics = _leave_out_counts(metrics)
    asked = _Asked(texts, base, head, stmts, setup, global_setup, chosen, metrics, settings, timeout)
    comparison, loaded = asked.compare()
    if comparison is None:
        assert loaded is not None
        return say_why_nothing(loaded)
    try:
        found = carry_out(comparison, usable, asked.wish() if loaded else None, store_path, quiet=quiet)
    except SetupError as error:
        click.echo(f"torchmark: {error}", err=True)
        return REFUSED
    result = apply_gate(found.judgements, _list_counts(comparison, found.evidence), gate)
    report = _Report(comparison, found, result, gate, spell_store(store_path))
    if json_file is not None:
        write_json(report.as_json(), json_file)
    if not is_standard_output(json_file):
        click.echo(report.show(all_cases=all_cases, explaining=not no_explain))
    append_summary(report.summarise(), gate)
    show_faults(loaded.faults if loaded else ())
    return report.exit_code or (FAULTY if loaded and loaded.faults else 0)


@dataclasses.dataclass(frozen=True)
class _Asked:
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

    @property
    def targets(self) -> tuple[Target, Target]:
        return Target(BASE, self.base), Target(HEAD, self.head)

    def compare(self) -> tuple[Comparison | None, Loaded | None]:
        """What that means; with cases of a suite also what was found there, of which there may be none to compare."""
        if self.base is None and self.head is None:
            return self._compare_statements(), None
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
            if stmt in list_suites() or Path(stmt).exists():
                raise UsageError(
                    f"{stmt!r} is a suite or a file, and no statement: say in which interpreters its cases are to be "
                    "compared, with --base and --head."
                )
        if len(stmts) < 2:
            raise UsageError(
                "There is nothing to compare with. Give two statements, as in torchmark ab 'x + y' 'torch.add(x, y)', "
                "or two interpreters: torchmark ab --base PYTHON --head PYTHON."
            )
        args = [self._describe(stmt) for stmt in stmts]
        return compare_statements(args, None, self.metrics, self.settings, self.timeout)

    def _list_entries(self) -> tuple[Entry, ...]:
        return tuple(Entry(case, case) for case in (make_case(self._describe(stmt)) for stmt in self.stmts))

    def _describe(self, stmt: str) -> TimerArgs:
        """A statement with what belongs to it. Its language and threads are said as those of a suite's cases are."""
        chosen = self.chosen
        if chosen.k or chosen.runtime or chosen.autograd or chosen.tag:
            raise UsageError("Cases are selected of suites: a statement is what it is.")
        if len(chosen.language) > 1 or len(chosen.threads) > 1:
            raise UsageError("A statement has one --language and one number of --threads.")
        language = chosen.language[0] if chosen.language else "python"
        setup = check_language(language, self.setup, self.global_setup)
        threads = int(chosen.threads[0]) if chosen.threads else 1
        return TimerArgs(stmt, setup, self.global_setup, threads, LANGUAGES[language])

    def _compare_suite(self) -> tuple[Comparison | None, Loaded]:
        if self.setup is not None or self.global_setup:
            raise UsageError("A suite's cases have setups of their own: say with --stmt which statement is meant.")
        loaded = load_cases(self.texts, self.chosen.select())
        if not loaded.cases:
            return None, loaded
        entries = tuple(Entry(case, case) for case in loaded.cases)
        layouts = choose_layouts(SUITE_LAYOUTS)
        return Comparison(entries, *self.targets, self.metrics, self.settings, layouts, self.timeout), loaded

    def wish(self) -> Wish:
        """The same, as the run that counts are kept in has it."""
        return Wish(self.texts, self.chosen, (Metric.COUNT,), self.targets, 1, 0.0, SUITE_LAYOUTS, self.timeout)


def _leave_out_counts(metrics: tuple[Metric, ...]) -> tuple[Metric, ...]:
    """Without Valgrind there are no counts, which is no reason not to compare times, unless counts were asked for."""
    context = click.get_current_context()
    asked = context.get_parameter_source("metrics") is click.core.ParameterSource.COMMANDLINE
    if asked or Metric.COUNT not in metrics:
        return metrics
    try:
        find_valgrind(os.environ.get("PATH", os.defpath))
    except SetupError as error:
        click.echo(f"NOTE: Nothing is counted. {error}", err=True)
        return tuple(metric for metric in metrics if metric is not Metric.COUNT)
    return metrics


def _list_counts(comparison: Comparison, evidence: Evidence) -> dict[CaseId, CountedCase]:
    """Head's counts, for the gate."""
    counts = {}
    for entry in comparison.entries:
        order = Order(entry.head, comparison.head, Metric.COUNT)
        tally = evidence.counted.get(order)
        if isinstance(tally, Tally):
            counts[identify(entry.head)] = CountedCase(tally, evidence.environments.get(order))
    return counts


@dataclasses.dataclass(frozen=True)
class _Report:
    """All that is told in the end."""

    comparison: Comparison
    found: Found
    result: GateResult
    gate: GateOptions
    store: str

    @property
    def exit_code(self) -> int:
        """Being stopped weighs most, then the gate."""
        nothing = all(one.verdict is Verdict.FAILED for one in self.found.judgements)
        return self.found.exit_code or self.result.exit_code or (NOTHING_COMPARED if nothing else 0)

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
        texts += [tell_side_failures(judgements, width), "\n".join(tell_gate(self.result, accept))]
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
        title = "torchmark ab: head against base"
        return summarise_markdown(self.found.judgements, title=title, gate=list_sentences(self.result))

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
        found = (where for order, where in self.found.evidence.environments.items() if order.target == target)
        environment = next(found, None)
        return {
            "python": target.python,
            "environment": None if environment is None else dataclasses.asdict(environment),
        }
