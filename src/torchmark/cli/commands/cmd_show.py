"""`torchmark show`: the results of a run, what failed in it, and where instructions go."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from torchmark.analysis.results import choose_rounds, narrow_run, summarise_run
from torchmark.callgrind.profiles import standardise
from torchmark.cli.case_options import NOTHING_SELECTED, Loaded, explain_nothing, find_own_cases, selection_options
from torchmark.cli.options import (
    Metrics,
    complete_run,
    is_standard_output,
    json_option,
    spell_store,
    store_option,
    use_colour,
    write_json,
)
from torchmark.cli.output import echo
from torchmark.define.selection import Selection, parse, select
from torchmark.errors import UsageError
from torchmark.model.case import Case
from torchmark.model.costs import INSTRUCTIONS, Tally
from torchmark.model.plan import Metric, Target
from torchmark.model.run import Run, RunInfo
from torchmark.model.summary import CaseSummary
from torchmark.report.as_json import plain_case_summary, plain_run
from torchmark.report.text.counts import FunctionRow, render_functions
from torchmark.report.text.failures import tell_failures
from torchmark.report.text.names import name_case, name_target
from torchmark.report.text.run_summary import describe_run
from torchmark.report.text.run_table import LEAST_WIDTH, render_results
from torchmark.report.text.terminal import count
from torchmark.stats.order import middle
from torchmark.store.runs import Store, open_store

FUNCTIONS_HELP = "Where the instructions of one case go; EXPR as for -k."
# As many candidates as a person reads.
MOST_CANDIDATES = 10


@dataclasses.dataclass(frozen=True)
class FunctionTable:
    """What the functions of a case cost in one environment, per run."""

    case: Case
    target: Target
    title: str
    rows: tuple[FunctionRow, ...]


def break_down(store: Store, run: Run, expression: str) -> list[FunctionTable]:
    """The functions of the one case that is meant, in each environment it was counted in.

    Of several rounds it is the one in the middle, which is what the table shows.
    """
    case = choose_case(run, expression)
    loaded = store.load(run.info.id, profiles=True, select=lambda other: other == case)
    alike = {target: _list_counts(loaded, target) for target in run.plan.targets}
    tallies = {target: found[middle([one.total for one in found])] for target, found in alike.items() if found}
    several = len(run.plan.targets) > 1
    found = [
        FunctionTable(case, target, name_case(case) + (f" ({name_target(target)})" if several else ""), tuple(rows))
        for target, tally in tallies.items()
        if (rows := list(_list_functions(tally)))
    ]
    if not found:
        raise UsageError(f"{name_case(case)}: No costs by function were kept.")
    return found


def _list_counts(run: Run, target: Target) -> list[Tally]:
    there = (outcome for outcome in run.outcomes if outcome.order.target == target)
    results = (outcome.result for outcome in choose_rounds(there, run.info.host).outcomes)
    return [result for result in results if isinstance(result, Tally)]


def choose_case(run: Run, expression: str) -> Case:
    """The only counted case that fits, or the one whose full name it is."""
    counted = {outcome.order.case for outcome in run.outcomes if isinstance(outcome.result, Tally)}
    cases = tuple(case for case in run.plan.cases if case in counted)
    if not cases:
        raise UsageError("Nothing was counted that is selected here: there are no costs by function.")
    named = [case for case in cases if name_case(case) == expression]
    selection = Selection(expression=None if named else parse(expression))
    found = named or select(cases, selection)
    if not found:
        raise UsageError(explain_nothing(Loaded((), cases, (), selection)))
    if len(found) > 1:
        names = [f"  {name_case(case)}" for case in found[:MOST_CANDIDATES]]
        rest = [f"  and {len(found) - len(names)} more"] if len(found) > len(names) else []
        text = f"--functions is for one case, and {expression!r} means {count(len(found), 'case')}:"
        raise UsageError("\n".join([text, *names, *rest, "Say more of it, or give the whole name."]))
    return found[0]


def _list_functions(tally: Tally) -> Iterator[FunctionRow]:
    """Functions of the same name, wherever they were built, are one."""
    profile = tally.profile
    if profile is None:
        return
    column = profile.events.index(INSTRUCTIONS)
    costs: dict[str, tuple[int, int]] = {}
    noisy = {standardise(label) for label in tally.noisy or ()}
    nothing = (0,) * len(profile.events)
    for function in {**profile.exclusive, **profile.inclusive}:
        name = standardise(function.label)
        own, with_callees = costs.get(name, (0, 0))
        own += profile.exclusive.get(function, nothing)[column]
        costs[name] = own, with_callees + profile.inclusive.get(function, nothing)[column]
    for name, (own, with_callees) in costs.items():
        if own or with_callees:
            yield FunctionRow(name, own / tally.number, with_callees / tally.number, name in noisy)


SCHEMA = "torchmark.show"
SCHEMA_VERSION = 1
DEFAULT_WIDTH = 80
# Of so many failures, all that is known is told without being asked for.
FEW_FAILURES = 3


@click.command("show")
@click.argument("reference", metavar="[RUN]", default="@", shell_complete=complete_run)
@selection_options
@click.option("--metric", "metrics", type=Metrics(), help="Only times or only counts.")
@click.option("--failures", "with_failures", is_flag=True, help="All that is known of what failed.")
@click.option("--functions", metavar="EXPR", help=FUNCTIONS_HELP)
@click.option("--inclusive", is_flag=True, help="With --functions: order by what functions cost with their callees.")
@json_option
@store_option
def command(
    reference: str,
    selection: Selection,
    metrics: tuple[Metric, ...] | None,
    with_failures: bool,
    functions: str | None,
    inclusive: bool,
    json_file: str | None,
    store_path: Path,
) -> int:
    """Show the results of a run.

    RUN is a name, the beginning of an id, or @ for the newest, @1 for the one before it, and so on. Cases are selected
    as in 'torchmark list'.

    \b
    torchmark show
    torchmark show before -k "nn and not c++" --metric count
    torchmark show @1 --functions "Linear and eager and python"
    """
    if inclusive and functions is None:
        raise UsageError("--inclusive orders functions: say which case's with --functions.")
    with open_store(store_path, read_only=True) as store:
        info = store.find(reference)
        own = find_own_cases(store, info)
        select = selection.admits if own is None else lambda case: case in own and selection.admits(case)
        run = _choose_metrics(store.load(info.id, select=select), metrics)
        if not run.plan.cases and own != frozenset():
            found = tuple(case for case in store.load(info.id).plan.cases if own is None or case in own)
            echo(f"torchmark: {explain_nothing(Loaded((), found, (), selection))}", err=True)
            return NOTHING_SELECTED
        breakdowns = break_down(store, run, functions) if functions is not None else []
        shown = dataclasses.replace(run, info=make_unmistakable(store, info))
    summaries = summarise_run(run)
    if json_file is not None:
        write_json(as_json(run, summaries, breakdowns), json_file)
    if not is_standard_output(json_file):
        texts = [render_functions(one.title, one.rows, _width(), inclusive=inclusive) for one in breakdowns]
        if with_failures and not texts:
            texts = [describe_run(shown, _width()), tell_failures(summaries, run.plan) or "Nothing failed."]
        texts = texts or _texts(shown, summaries, spell_store(store_path), narrow=selection != Selection())
        echo("\n\n".join(texts), styled=use_colour())
    return 0


def _choose_metrics(run: Run, metrics: tuple[Metric, ...] | None) -> Run:
    """The run as if only these had been asked for."""
    there = run.plan.sampling.metrics
    if metrics is None:
        return run
    if not set(metrics) & set(there):
        raise UsageError(f"In this run only {' and '.join(metric.value for metric in there)} was measured.")
    # What is known of the whole run stays.
    return dataclasses.replace(narrow_run(run, metrics=metrics), info=run.info)


def make_unmistakable(store: Store, info: RunInfo) -> RunInfo:
    """Without its name if that means another run: commands that are proposed must mean this one."""
    named = [other for other in store.list_runs() if other.name == info.name]
    # What others have called a run may look like something else on a command line.
    clear = info.name[:1] not in ("@", "-", "") and named[0].id == info.id
    return info if clear else dataclasses.replace(info, name="")


def _width() -> int:
    return max(shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns, LEAST_WIDTH)


def _texts(run: Run, summaries: Sequence[CaseSummary], store: str, *, narrow: bool) -> list[str]:
    """Heading and table; where few cases were asked for, all that is known of few failures."""
    width = _width()
    table = render_results(summaries, run.plan, width, colour=use_colour(), run=run.info, store=store)
    texts = [describe_run(run, width), table]
    if narrow and 0 < sum(len(summary.failures) for summary in summaries) <= FEW_FAILURES:
        texts.append(tell_failures(summaries, run.plan))
    return texts


def as_json(run: Run, summaries: Sequence[CaseSummary], breakdowns: Sequence[FunctionTable]) -> dict[str, Any]:
    """The run, what is said of each case in each environment, and costs by function if they were asked for."""
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "run": plain_run(run.info),
        "cases": [plain_case_summary(summary) for summary in summaries],
        "functions": [
            {
                "key": one.case.key,
                "suite": one.case.suite,
                "target": one.target.name,
                "functions": [dataclasses.asdict(row) for row in one.rows],
            }
            for one in breakdowns
        ],
    }
