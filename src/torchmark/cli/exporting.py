"""From what `torchmark export` is asked for to the text of a file: which format, which part of a run."""

from __future__ import annotations

from pathlib import Path

from torchmark.analysis.narrow import narrow_run
from torchmark.analysis.results import steady_times
from torchmark.define.selection import nearest
from torchmark.errors import UsageError
from torchmark.model.compiling import CompileCosts
from torchmark.model.costs import Tally
from torchmark.model.outcome import Outcome
from torchmark.model.plan import Metric, Target
from torchmark.model.run import Run
from torchmark.model.times import Times
from torchmark.report.formats.registry import FORMATS, Format
from torchmark.report.formats.texts import dump_json
from torchmark.report.printable import count
from torchmark.store.transfer import export_run

JSON = Format(
    "json",
    "all that is known, for torchmark import",
    ".json",
    lambda run: dump_json(export_run(run)),
    profiles=True,
    failures=True,
)
ALL_FORMATS = {JSON.name: JSON, **FORMATS}


def choose_format(name: str | None, output: str | None) -> Format:
    """The format of that name; without one, what the name of the file says, if it says anything, or else JSON."""
    if name is not None:
        return ALL_FORMATS[name]
    suffix = Path(output or "").suffix.lower()
    return next((kind for kind in ALL_FORMATS.values() if kind.suffix == suffix), JSON)


def choose_part(run: Run, metrics: tuple[Metric, ...] | None, env: str | None) -> Run:
    """The metrics and the target that are meant; what would leave nothing is refused."""
    there = run.plan.sampling.metrics
    if metrics and not set(metrics) & set(there):
        raise UsageError(f"In this run only {' and '.join(metric.value for metric in there)} was measured.")
    targets = None if env is None else _find_targets(run.plan.targets, env)
    return narrow_run(run, targets=targets, metrics=metrics)


def _find_targets(targets: tuple[Target, ...], name: str) -> list[Target]:
    found = [target for target in targets if target.name == name]
    if not found:
        names = [target.name for target in targets]
        known = nearest(name, names) or names
        raise UsageError(f"This run has no target {name!r}. There is {', '.join(map(repr, known))}.")
    return found


def tell_left_out(run: Run, kind: Format) -> str | None:
    """A line on the cases that a format has no place for; None where nothing is lost."""
    placed = {(outcome.order.case, outcome.order.target) for outcome in run.outcomes if _has_place(outcome, kind)}
    wanted = len(run.plan.cases) * len(run.plan.targets)
    if kind.failures or len(placed) == wanted:
        return None
    what = "times" if kind.needs == (Metric.WALL,) else "results"
    left_out = f"{wanted - len(placed)} of {count(wanted, 'case')}"
    return f"Left out for want of {what}: {left_out}. In csv, markdown and json they are told of."


def _has_place(outcome: Outcome, kind: Format) -> bool:
    result = outcome.result
    if isinstance(result, (Times, CompileCosts)):
        return Metric.WALL in kind.needs and bool(steady_times(result).raw_times)
    return isinstance(result, Tally) and Metric.COUNT in kind.needs
