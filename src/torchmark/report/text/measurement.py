"""A measurement as text, and a table of statements that were timed together."""

from __future__ import annotations

import ast
import math
import shlex
from collections.abc import Collection, Sequence

from torchmark.analysis.grid import name_row
from torchmark.analysis.summarise import (
    SMALLEST_DIFFERENCE,
    UNRELIABLE_IQR,
    Standings,
    StatementGroup,
    TimedStatement,
    find_caveats,
    is_suspect,
)
from torchmark.model.caveats import Variation
from torchmark.model.task import Summary, TaskSpec
from torchmark.report.caveats import describe_advice, describe_fact
from torchmark.report.text.table import INDENT, TextColumn, TextRow, TextTable
from torchmark.report.text.terminal import count, cut_middle, one_line, wrap
from torchmark.report.text.units import choose_scale, format_edges, format_range, format_ratio, format_time
from torchmark.stats.intervals import PairedRatio


def describe_measurement(spec: TaskSpec, summary: Summary | None, number_per_run: int) -> str:
    """Task, statistics, sample counts and the warning, one below the other.

    `summary` is None for a measurement without samples.
    """
    samples = summary.samples if summary else 0
    runs = count(number_per_run, "run") if samples == 1 else f"{number_per_run} runs per measurement"
    lines = [spec.summarize(), *(_statistics(summary) if summary else [])]
    lines.append(f"  {count(samples, 'measurement')}, {runs}, {count(spec.num_threads, 'thread')}")
    if summary and is_suspect(summary):
        is_usable = summary.iqr_share < UNRELIABLE_IQR
        meaning = "could indicate system fluctuation" if is_usable else "suggests significant environmental influence"
        lines.append(f"  WARNING: Interquartile range is {summary.iqr_share:.1%} of the median measurement.")
        lines.append(f"           This {meaning}.")
    return "\n".join(lines)


def _statistics(summary: Summary) -> list[str]:
    scale = choose_scale(summary.median)
    unit, show = scale.unit, scale.show
    name = "Median: " if summary.samples > 1 else ""
    lines = [f"  {name}{show(summary.median)} {unit}"]
    if summary.samples >= 4:
        lines.append(f"  IQR:    {show(summary.iqr)} {unit} ({show(summary.p25)} to {show(summary.p75)})")
    return lines


LEAST_NAME = 16
# In a sentence, longer names make it hard to read.
LONGEST_NAME = 32
TITLES = {"median": "median", "interval": "95 % interval", "ratio": "ratio", "bounds": "95 % interval"}


def render_standings(
    heading: str, names: Sequence[str], results: Sequence[TimedStatement], standings: Standings, width: int
) -> list[str]:
    """The results below a heading, in the order they are given, with the ratio to the fastest."""
    columns = [
        TextColumn("name", heading, left=True, least=LEAST_NAME),
        *(TextColumn(key, head) for key, head in TITLES.items()),
    ]
    rows = [
        TextRow({"name": INDENT + name, **_fill(result, ratio)})
        for name, result, ratio in zip(names, results, standings.ratios, strict=True)
    ]
    return TextTable(columns, rows, width, name="name", gives_way=["interval"]).lines()


def name_rows(texts: Sequence[str]) -> list[str]:
    """Texts on one line each, numbered where two of them would look the same in a sentence.

    >>> name_rows(["x + y", "x"]), name_rows(["x\\ny", "x\\nz"])
    (['x + y', 'x'], ['[1] x ...', '[2] x ...'])
    """
    names = list(map(one_line, texts))
    if len({shorten_name(name) for name in names}) == len(names):
        return names
    return [f"[{number}] {name}" for number, name in enumerate(names, 1)]


def shorten_name(name: str) -> str:
    """A name for a sentence; the numbers of those that are numbered stay."""
    return cut_middle(name, LONGEST_NAME)


def conclude(names: Sequence[str], standings: Standings) -> str:
    """One sentence: which is the fastest and by how much, or that these times cannot tell."""
    fastest, rivals, alone = standings.fastest, standings.rivals, len(names) == 2
    if rivals:
        among = [name for i, name in enumerate(names) if i == fastest or i in rivals]
        which = "which is faster" if alone else f"which of {', '.join(among[:-1])} and {among[-1]} is the fastest"
        reason = _describe_reason([standings.ratios[i] for i in rivals])
        return f"These measurements cannot tell {which}: {reason}."
    ratio = standings.ratios[standings.runner_up]
    low, high = _bounds(ratio)
    which = "faster" if alone else "the fastest"
    next_one = names[standings.runner_up] + ("" if alone else ", the next one,")
    much = format_ratio(math.exp(ratio.log_ratio))
    return f"{names[fastest]} is {which}: {next_one} takes {much} times as long (95 % interval {low} to {high})."


def _describe_reason(ratios: Sequence[PairedRatio]) -> str:
    if any(ratio.low is None for ratio in ratios):
        return "there are too few rounds in turns for an interval of the ratio"
    share = f"{SMALLEST_DIFFERENCE:.0%}".replace("%", " %")
    if len(ratios) > 1:
        return f"their ratios may be 1, or differ from it by less than {share}"
    low, high = _bounds(ratios[0])
    between = f"the ratio lies between {low} and {high}"
    excluded = ratios[0].low is not None and ratios[0].low > 0
    return f"{between}, and a difference below {share} can come from the layout of memory" if excluded else between


def _fill(result: TimedStatement, ratio: PairedRatio) -> dict[str, str]:
    interval = result.interval
    return {
        "median": format_time(result.summary.median),
        "interval": "" if interval is None else format_range(interval.low, interval.high),
        "ratio": format_ratio(math.exp(ratio.log_ratio)),
        "bounds": "" if ratio.low is None or not (ratio.low or ratio.high) else " to ".join(_bounds(ratio)),
    }


def _bounds(ratio: PairedRatio) -> tuple[str, str]:
    assert ratio.low is not None
    assert ratio.high is not None
    return format_ratio(math.exp(ratio.low)), format_ratio(math.exp(ratio.high))


def describe_groups(
    groups: Sequence[StatementGroup],
    width: int,
    *,
    used: Collection[str] = (),
    python: str | None = None,
    language: str = "python",
) -> str:
    """One result in full, several as tables with what follows from them; caveats below.

    `used` are the options that advice should not give again; `python` is another interpreter that was measured.
    """
    results = [result for group in groups for result in group.results]
    if len(results) == 1:
        (result,) = results
        lines = [describe_measurement(result.spec, result.summary, result.times.number_per_run)]
        if (interval := result.interval) is not None:
            low, high = format_edges(interval.low, interval.high)
            lines.append(f"  The median lies between {low} and {high} ({interval.confidence:.0%} confidence).")
    else:
        lines = [line for line in (results[0].spec.label, results[0].spec.setup_str()) if line]
        for group in groups:
            lines += _describe_group(group, width, python, language)
    for note in _list_notes(results, used):
        lines += wrap(f"  {note}", width, hanging=2)
    return "\n".join(lines)


def _describe_group(group: StatementGroup, width: int, python: str | None, language: str) -> list[str]:
    if not group.results:
        return []
    specs = [result.spec for result in group.results]
    by_threads = len({spec.num_threads for spec in specs}) > 1
    names = name_rows([count(spec.num_threads, "thread") if by_threads else name_row(spec) for spec in specs])
    heading = one_line(name_row(specs[0])) if by_threads else count(specs[0].num_threads, "thread")
    standings = group.standings
    lines = render_standings(heading, names, group.results, standings, width)
    if len(names) == 1:
        return lines
    lines += wrap(f"{_describe_method(group)} {conclude([*map(shorten_name, names)], standings)}", width)
    if standings.rivals:
        rivals = [specs[i] for i in range(len(specs)) if i == standings.fastest or i in standings.rivals]
        lines.append(_describe_choice(rivals, python, language))
    return lines


def _describe_method(group: StatementGroup) -> str:
    if group.rounds is None:
        return "Measured one after the other."
    how = f"Measured in turns, in {count(len(group.rounds[0]), 'round')}."
    if group.obstacle is None:
        return how
    return f"{how} Each had a process of its own, because together they fail: {group.obstacle.message}"


def _describe_choice(specs: Sequence[TaskSpec], python: str | None, language: str) -> str:
    """How to find out what these measurements cannot tell."""
    spec = specs[0]
    if python is not None or len({one.num_threads for one in specs}) > 1:
        # `ab` compares statements in its own interpreter, with one number of threads.
        return "Measure for longer, with a larger --min-run-time."
    options = [] if spec.setup in ("", "pass") else ["--setup", spec.setup]
    options += ["--global-setup", spec.global_setup] if spec.global_setup else []
    options += ["--language", language] if language != "python" else []
    options += ["--threads", str(spec.num_threads)] if spec.num_threads > 1 else []
    stmts = [one.stmt for one in specs]
    # Those with a dash in front would be taken for options.
    words = [*options, "--", *stmts] if any(stmt.startswith("-") for stmt in stmts) else [*stmts, *options]
    return f"To find out:\n  torchmark ab {shlex.join(words)}"


def _list_notes(results: Sequence[TimedStatement], used: Collection[str]) -> list[str]:
    # The full text of one result tells of variation already. Advice that fits several notes is given once.
    notes = [
        (result, caveat)
        for result in results
        for caveat in find_caveats(result.times)
        if len(results) > 1 or not isinstance(caveat, Variation)
    ]
    lines = [f"NOTE: {_describe_source(result, results)}{describe_fact(caveat)}" for result, caveat in notes]
    lines += dict.fromkeys(describe_advice(caveat, "shell", used) for _, caveat in notes)
    idle = "The statement does nothing: this is the empty loop's own cost."
    empty = (result for result in results if does_nothing(result.spec.stmt))
    return [*lines, *(f"NOTE: {_describe_source(result, results)}{idle}" for result in empty)]


def _describe_source(result: TimedStatement, results: Sequence[TimedStatement]) -> str:
    spec = result.spec
    return f"{one_line(name_row(spec))}, {count(spec.num_threads, 'thread')}: " if len(results) > 1 else ""


def does_nothing(stmt: str) -> bool:
    """Whether a statement is empty, or only `pass`.

    >>> does_nothing(""), does_nothing("pass  # nothing"), does_nothing("x")
    (True, True, False)
    """
    try:
        body = ast.parse(stmt).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(isinstance(node, ast.Pass) for node in body)
