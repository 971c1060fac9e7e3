"""`torchmark time`: time statements given on the command line."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import click

from torchmark.api.compare import Compare
from torchmark.api.measurement import Measurement
from torchmark.cli.parameters import PositiveIntegers, is_standard_output, json_option
from torchmark.errors import SetupError, UsageError
from torchmark.measure.source import has_user_frames, user_traceback
from torchmark.model.caveat import Variation
from torchmark.report.export import plain_caveat, plain_summary
from torchmark.report.text import count, describe_measurement
from torchmark.report.units import decimals_for, select_unit
from torchmark.report.wording import word_caveat

if TYPE_CHECKING:
    from torchmark.api.timer import Timer

Method: TypeAlias = "Callable[[Timer], Measurement]"

SCHEMA = "torchmark.time"
SCHEMA_VERSION = 1

DEFAULT_RUN_TIME_S = 0.2
# The setup runs before every block and may take far longer than what is timed: stop after this many times the
# run time asked for, and at ten seconds at the earliest.
LIMIT_FACTOR = 10
SHORTEST_LIMIT_S = 10.0
# With a fixed number of runs, as many blocks as make an interval of the median possible.
BLOCKS_OF_FIXED_SIZE = 7

STATEMENT_FAILED = 1


@click.command("time")
@click.argument("stmts", metavar="STMT...", nargs=-1, required=True)
@click.option("--setup", default="pass", metavar="CODE", help="Runs before each block of the statement.")
@click.option("--threads", type=PositiveIntegers(), default="1", help="torch threads, such as 1 or 1,2,4.")
@click.option("--label", metavar="TEXT", help="Title of the result.")
@click.option(
    "--min-run-time", type=click.FloatRange(min=0), metavar="S", help="Seconds to measure for (0.2 by default)."
)
@click.option("--adaptive", is_flag=True, help="Measure until the result is steady (10 s at the most).")
@click.option("--number", type=click.IntRange(min=1), metavar="N", help="Runs per block, instead of choosing.")
@json_option
def command(
    stmts: tuple[str, ...],
    setup: str,
    threads: tuple[int, ...],
    label: str | None,
    min_run_time: float | None,
    adaptive: bool,
    number: int | None,
    json_file: IO[str] | None,
) -> int:
    """Time one or more statements.

    Each STMT is Python; torch is imported already. Several statements, or several thread counts, give a table.

    \b
    torchmark time "x + 1" --setup "x = torch.ones(8)"
    torchmark time "x @ x" "x.mm(x)" --setup "x = torch.ones(9, 9)" --threads 1,2
    """
    method = choose_method(min_run_time, adaptive, number)
    # As `python -m` does, so that a setup can import what lies here.
    sys.path.insert(0, os.getcwd())
    json_only = is_standard_output(json_file)
    # What a statement prints must not end up inside the JSON.
    with contextlib.redirect_stdout(sys.stderr) if json_only else contextlib.nullcontext():
        results, tracebacks = time_all(stmts, setup, label, threads, method)
    if json_file is not None:
        json.dump(as_json(results, tracebacks), json_file, indent=2)
        json_file.write("\n")
    if results and not json_only:
        used = {name for name, is_used in (("adaptive", adaptive), ("number", number)) if is_used}
        show(results, used)
    for text, whose in _group_by_value(tracebacks).items():
        # A single statement's traceback needs no heading.
        heading = f"Failed: {', '.join(whose)}\n" if len(stmts) > 1 else ""
        click.echo(f"{heading}{text}", err=True, nl=False)
    return STATEMENT_FAILED if tracebacks else 0


def choose_method(min_run_time: float | None, adaptive: bool, number: int | None) -> Method:
    """How to measure, given the options; options that contradict each other are refused."""
    if number is not None and (adaptive or min_run_time is not None):
        raise UsageError("--number fixes the work to do: leave out --adaptive and --min-run-time with it.")
    if number is not None:
        return lambda timer: timer.repeat(BLOCKS_OF_FIXED_SIZE, number)
    if adaptive and min_run_time is not None:
        return lambda timer: timer.adaptive_autorange(min_run_time=min_run_time)
    if adaptive:
        return lambda timer: timer.adaptive_autorange()
    run_time = DEFAULT_RUN_TIME_S if min_run_time is None else min_run_time
    limit = max(run_time * LIMIT_FACTOR, SHORTEST_LIMIT_S)
    return lambda timer: timer.blocked_autorange(min_run_time=run_time, max_run_time=limit)


def time_all(
    stmts: Sequence[str], setup: str, label: str | None, threads: Sequence[int], method: Method
) -> tuple[list[Measurement], dict[str, str]]:
    """Time every statement with every thread count; one that fails costs the others nothing.

    Gives the results, and the user's own traceback for each statement that failed.
    """
    timer_cls = _load_timer()
    results: list[Measurement] = []
    tracebacks: dict[str, str] = {}
    for n in threads:
        for stmt in (stmt for stmt in stmts if stmt not in tracebacks):
            try:
                results.append(method(timer_cls(stmt, setup, label=label, num_threads=n)))
            except (Exception, SystemExit) as error:
                if not has_user_frames(error) and not isinstance(error, SyntaxError):
                    raise
                tracebacks[stmt] = user_traceback(error)
    return results, tracebacks


def _group_by_value(texts: dict[str, str]) -> dict[str, list[str]]:
    """Which keys have each value: a broken setup fails every statement in the same way, and is told once."""
    groups: dict[str, list[str]] = {}
    for key, value in texts.items():
        groups.setdefault(value, []).append(key)
    return groups


def _load_timer() -> type[Timer]:
    try:
        from torchmark.api.timer import Timer
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise SetupError(
            f"{sys.executable} has no torch.",
            missing="torch",
            advice="Install it there, or run torchmark in the environment that has it.",
        ) from error
    return Timer


def as_json(results: Sequence[Measurement], tracebacks: dict[str, str]) -> dict[str, Any]:
    """Raw times with their statistics and caveats, and what failed."""
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "measurements": [
            {
                **result.to_dict(),
                "summary": plain_summary(result.summary),
                "caveats": [plain_caveat(caveat) for caveat in result.caveats],
            }
            for result in results
        ],
        "failures": [{"stmt": stmt, "traceback": text} for stmt, text in tracebacks.items()],
    }


def show(results: Sequence[Measurement], used: set[str]) -> None:
    """One result in full, several as a table; caveats below."""
    if len(results) == 1:
        (result,) = results
        click.echo(describe_measurement(result.task_spec, result.summary, result.number_per_run))
        _show_interval(result)
    else:
        table = Compare(list(results))
        table.colorize()
        table.highlight_warnings()
        table.print()
    for result in results:
        # The text above shows this one already.
        for caveat in (c for c in result.caveats if not isinstance(c, Variation)):
            where = f"{result.as_row_name}, {count(result.num_threads, 'thread')}: " if len(results) > 1 else ""
            click.echo(f"  NOTE: {where}{word_caveat(caveat, 'shell', used)}")


def _show_interval(result: Measurement) -> None:
    interval = result.median_interval()
    if interval is None:
        return
    unit, scale = select_unit(result.median)
    digits = decimals_for(result.median / scale)
    low, high = (f"{t / scale:.{digits}f}" for t in (interval.low, interval.high))
    click.echo(f"  The median lies between {low} and {high} {unit} ({interval.confidence:.0%} confidence).")
