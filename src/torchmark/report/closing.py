"""How a report on a run ends: how far it came, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from torchmark.model.plan import Plan
from torchmark.model.run import RunInfo
from torchmark.model.shard import name_shard
from torchmark.model.summary import CaseSummary
from torchmark.report.cells import wrap
from torchmark.report.printable import count, printable
from torchmark.report.variants import name_case

LAST_RUN = "@"
# Of the thirty-two digits of an identity, so many are told: enough to mean one run.
SHORT_ID = 12


def close(
    summaries: Sequence[CaseSummary], plan: Plan, width: int, run: RunInfo | None = None, store: str = ""
) -> list[str]:
    """A sentence that adds up, and a command to go on with."""
    failed = sum(bool(summary.failures) for summary in summaries)
    missing = sum(bool(summary.missing) and not summary.failures for summary in summaries)
    measured = len(summaries) - failed - missing
    noun = "case" if len(plan.targets) == 1 else "result"
    if not summaries:
        return ["Nothing was measured."]
    if measured == len(summaries):
        parts = [f"All of {count(measured, noun)} measured" if measured > 1 else f"1 {noun} measured"]
    else:
        parts = [f"{measured} of {count(len(summaries), noun)} measured"]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{missing} not measured yet"] if missing else []
    return wrap(_name_part(run) + ", ".join(parts) + ".", width) + _advise(
        summaries, run, width, f" --store {shlex.quote(store)}" if store else ""
    )


def _name_part(run: RunInfo | None) -> str:
    shard = None if run is None else name_shard(run)
    return "" if shard is None else f"Shard {printable(shard)}: "


def name_run(run: RunInfo | None) -> str:
    """How a run is referred to on the command line."""
    return LAST_RUN if run is None else shlex.quote(run.name or run.id[:SHORT_ID])


def _advise(summaries: Sequence[CaseSummary], run: RunInfo | None, width: int, where: str) -> list[str]:
    """The most urgent thing first; commands are on lines of their own, to be copied."""
    steps = []
    if any(summary.missing for summary in summaries):
        which = "" if run is None else f" --name {name_run(run)}"
        steps.append(("Go on with", f"torchmark run --resume{which}{where}"))
    if any(summary.failures for summary in summaries):
        steps.append(("See why with", f"torchmark show {name_run(run)} --failures{where}"))
    if run is not None and name_shard(run) is not None:
        steps.append(("Put all shards together with", "torchmark merge STORE... -o STORE"))
    counted = [summary.case for summary in summaries if summary.count]
    if not steps and counted:
        shortest = shlex.quote(min(map(name_case, counted), key=len))
        which = f"{name_run(run)} --functions {shortest}{where}"
        steps.append(("See where instructions go with", f"torchmark show {which}"))
    if not steps and summaries:
        steps.append(("See this again with", f"torchmark show {name_run(run)}{where}"))
    lines: list[str] = []
    for text, command in steps:
        line, alone = f"{text}:  {command}", f"  {command}"
        if len(line) <= width:
            lines.append(line)
        elif len(alone) <= width:
            lines += [f"{text}:", alone]
        else:
            lines += wrap(line, width, 2)
    return lines
