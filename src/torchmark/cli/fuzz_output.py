"""A study of statements on inputs: what came out so far, as text and as JSON.

Apart from the command, which stays short enough to be read at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import shlex
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torchmark.analysis.input_comparisons import InputComparison, compare_on_inputs
from torchmark.api.statements import look_for_rules
from torchmark.cli.options import offer_json, terminal_width
from torchmark.cli.output import echo
from torchmark.model.environment import Environment
from torchmark.model.inputs import RuleSearch, gather_features
from torchmark.model.outcome import Failure
from torchmark.model.schemas import begin_document
from torchmark.model.task import Times
from torchmark.report.progress import make_progress
from torchmark.report.text.failures import describe_failure, describe_input_failures, is_hopeless
from torchmark.report.text.inputs import (
    InputAdvance,
    describe_search,
    list_statements,
    name_sides,
    name_statement,
    render_comparison_on_inputs,
)
from torchmark.report.text.terminal import count, one_line, wrap

if TYPE_CHECKING:
    from torchmark.api.inputs import FuzzedResult


@dataclasses.dataclass
class FuzzResults:
    """Statements, how many inputs there are to be, and what came of those that were tried."""

    stmts: tuple[str, ...]
    total: int
    about: Mapping[str, Any]
    """What the inputs are, in words of the command line."""
    results: list[FuzzedResult] = dataclasses.field(default_factory=list)

    @property
    def failures(self) -> list[tuple[int, Failure]]:
        return [(result.index, result.failure) for result in self.results if result.failure is not None]

    @property
    def environment(self) -> Environment | None:
        return next((result.environment for result in self.results if result.environment is not None), None)

    def comparisons(self) -> list[tuple[InputComparison, RuleSearch]]:
        measured = [
            (result.input, [Times(m.number_per_run, tuple(m.raw_times)) for m in result.measurements])
            for result in self.results
            if result.failure is None
        ]
        if not measured:
            return []
        found = []
        for comparison in compare_on_inputs(self.stmts, measured):
            # In the order of inputs again, which is also that in which features come up.
            entries = sorted(comparison.entries, key=lambda entry: entry.input.index)
            features = gather_features([entry.input for entry in entries])
            effects, noise = [entry.ratio.log_ratio for entry in entries], [entry.noise for entry in entries]
            neutral = None if comparison.base is None else 0.0
            found.append((comparison, look_for_rules(features, effects, noise, neutral)))
        return found


def follow(study: FuzzResults, results: Iterable[FuzzedResult], *, quiet: bool) -> None:
    with make_progress(sys.stderr, quiet, InputAdvance(study.total, time.monotonic)) as progress:
        for result in results:
            study.results.append(result)
            progress.take((result.input, result.failure))
            if is_hopeless([failure for _, failure in study.failures], len(study.results), study.total):
                break


def print_waiting() -> None:
    """Say why nothing happens, below the bar if there is one."""
    with contextlib.suppress(OSError):
        start = "\n" if sys.stderr and sys.stderr.isatty() else ""
        echo(f"{start}Waiting for another run of torchmark here.", err=True)


def report(study: FuzzResults, top: int, json_file: str | None, *, with_code: bool) -> None:
    """Write and show what there is; if nothing was tried, files stay as they are."""
    if not study.results:
        return
    comparisons = study.comparisons()
    if offer_json(lambda: to_json_fuzz(study, comparisons), json_file):
        width = terminal_width()
        for line in render(study, comparisons, width, top, chosen=with_code):
            echo(line)
        if with_code:
            for result in study.results:
                echo(f"\n# Input {result.index}: {result.describe()}\n{result.code}")
    for line in describe_input_failures(study.failures, len(study.results), study.total):
        echo(line, err=True)


def render(
    study: FuzzResults,
    comparisons: Sequence[tuple[InputComparison, RuleSearch]],
    width: int,
    top: int,
    *,
    chosen: bool = False,
) -> list[str]:
    """All that is to be read: which statements, the extremes, what explains them, how to go on.

    Of inputs that were `chosen` one by one nobody expects a rule.
    """
    if not any(comparison.entries for comparison, _ in comparisons):
        return ["No input has elements to compare the time with: give two statements."] if comparisons else []
    lines = [*list_statements(study.stmts, width), *wrap(_introduce(study), width), ""]
    for position, (comparison, search) in enumerate(comparisons, start=0 if len(study.stmts) == 1 else 1):
        letters = (name_statement(0), name_statement(position))
        lines += render_comparison_on_inputs(comparison, letters, width, top)
        base, stmt = name_sides(comparison, letters)
        words = [] if chosen and search.too_few else describe_search(search, stmt, base)
        lines += [*(text for line in words for text in wrap(line, width)), ""]
    if chosen:
        return lines[:-1]
    worst = comparisons[0][0].entries[-1].input.index
    return [*lines, "See how an input is made, and measure it again:", f"  {_format_again(study, worst)}"]


def _introduce(study: FuzzResults) -> str:
    measured = sum(result.failure is None for result in study.results)
    number = count(measured, "input") if measured == study.total else f"{measured} of {count(study.total, 'input')}"
    torch = "" if study.environment is None else f"; torch {study.environment.torch_version}"
    options = ", ".join(f"{name} {one_line(str(value))}" for name, value in study.about.items() if value is not None)
    return f"{number}: {options}{torch}"


def _format_again(study: FuzzResults, index: int) -> str:
    options = [f"--{name} {shlex.quote(str(value))}" for name, value in study.about.items() if value is not None]
    stmts = [shlex.quote(stmt) for stmt in study.stmts]
    options.append(f"--only {index}")
    # What begins with a dash would be taken for an option.
    words = [*options, "--", *stmts] if any(stmt.startswith("-") for stmt in study.stmts) else [*stmts, *options]
    return " ".join(["torchmark fuzz", *words])


def to_json_fuzz(study: FuzzResults, comparisons: Sequence[tuple[InputComparison, RuleSearch]]) -> dict[str, Any]:
    return {
        **begin_document("fuzz"),
        "stmts": list(study.stmts),
        "about": dict(study.about),
        "asked_for": study.total,
        "environment": None if study.environment is None else dataclasses.asdict(study.environment),
        "inputs": [_to_json_result(result) for result in study.results],
        "contests": [_to_json_comparison(*pair) for pair in comparisons],
    }


def _to_json_result(result: FuzzedResult) -> dict[str, Any]:
    return {
        "index": result.index,
        "features": dict(result.input.features),
        "code": result.code,
        "measurements": [
            {"stmt": m.stmt, "number_per_run": m.number_per_run, "raw_times": list(m.raw_times), "median": m.median}
            for m in result.measurements
        ],
        "failure": None
        if result.failure is None
        else {"kind": result.failure.kind.value, "text": describe_failure(result.failure)},
    }


def _to_json_comparison(comparison: InputComparison, search: RuleSearch) -> dict[str, Any]:
    faster, slower = comparison.count_notable()
    return {
        "stmt": comparison.stmt,
        "base": comparison.base,
        "median_ratio": comparison.quantile(0.5),
        "faster": faster,
        "slower": slower,
        "ratios": [
            {
                "index": entry.input.index,
                "ratio": math.exp(entry.ratio.log_ratio),
                "low": None if entry.ratio.low is None else math.exp(entry.ratio.low),
                "high": None if entry.ratio.high is None else math.exp(entry.ratio.high),
            }
            for entry in comparison.entries
        ],
        "searched": search.searched,
        "held_back": search.held_back,
        "rules": [
            {
                "conditions": [
                    {"feature": c.feature, "relation": c.relation.value, "value": c.value} for c in rule.conditions
                ],
                "ratio_inside": math.exp(rule.inside),
                "ratio_outside": math.exp(rule.outside),
                "inputs_inside": rule.inputs_inside,
                "inputs_outside": rule.inputs_outside,
                "p_value": rule.p_value,
            }
            for rule in search.rules
        ],
    }
