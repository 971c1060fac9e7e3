"""`torchmark time`: time statements given on the command line."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import click

from torchmark.analysis.arrange import ordered_unique
from torchmark.api.compare import Compare
from torchmark.api.measurement import Measurement
from torchmark.cli.parameters import Seconds, ThreadCounts, is_standard_output, json_option, output_aside, write_json
from torchmark.errors import SetupError, UsageError
from torchmark.measure.blocks import LARGEST_NUMBER
from torchmark.measure.source import has_user_frames, user_traceback
from torchmark.model.caveat import Variation
from torchmark.report.export import plain_caveat, plain_summary
from torchmark.report.text import count, describe_measurement, one_line
from torchmark.report.units import choose_scale
from torchmark.report.wording import give_advice, state_fact

if TYPE_CHECKING:
    from torchmark.api.timer import Timer

Method: TypeAlias = "Callable[[Timer], Measurement]"

SCHEMA = "torchmark.time"
SCHEMA_VERSION = 1

DEFAULT_RUN_TIME_S = 0.2
DEFAULT_ADAPTIVE_RUN_TIME_S = 0.01
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
@click.option("--threads", type=ThreadCounts(), default="1", help="torch threads, such as 1 or 1,2,4.")
@click.option("--label", metavar="TEXT", help="Title of the result.")
@click.option("--min-run-time", type=Seconds(), help="Seconds to measure for (0.2 by default).")
@click.option("--adaptive", is_flag=True, help="Measure until the result is steady, or for about 10 s.")
@click.option(
    "--number", type=click.IntRange(1, LARGEST_NUMBER), metavar="N", help="Runs per block, instead of choosing."
)
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
    timer_cls = _load_timer()
    # As `python -m` does, so that a setup can import what lies here; after torch, which does not lie here.
    sys.path.insert(0, os.getcwd())
    json_only = is_standard_output(json_file)
    with output_aside() if json_only else contextlib.nullcontext():
        timers = [partial(timer_cls, setup=setup, label=label, num_threads=n) for n in threads]
        results, tracebacks = time_all(stmts, timers, method)
    if json_file is not None:
        write_json(as_json(results, tracebacks), json_file)
    if results and not json_only:
        show(results, {name for name, used in (("adaptive", adaptive), ("number", number)) if used})
    show_failures(tracebacks, with_names=len(stmts) > 1)
    return STATEMENT_FAILED if tracebacks else 0


def choose_method(min_run_time: float | None, adaptive: bool, number: int | None) -> Method:
    """How to measure, given the options; options that contradict each other are refused."""
    if number is not None:
        if adaptive or min_run_time is not None:
            raise UsageError("--number fixes the work to do: leave out --adaptive and --min-run-time with it.")
        return lambda timer: timer.repeat(BLOCKS_OF_FIXED_SIZE, number)
    default = DEFAULT_ADAPTIVE_RUN_TIME_S if adaptive else DEFAULT_RUN_TIME_S
    run_time = default if min_run_time is None else min_run_time
    limit = max(run_time * LIMIT_FACTOR, SHORTEST_LIMIT_S)
    if adaptive:
        return lambda timer: timer.adaptive_autorange(min_run_time=run_time, max_run_time=limit)
    return lambda timer: timer.blocked_autorange(min_run_time=run_time, max_run_time=limit)


def time_all(
    stmts: Sequence[str], timers: Sequence[Callable[[str], Timer]], method: Method
) -> tuple[list[Measurement], dict[str, str]]:
    """Time every statement with every kind of timer; one that fails costs the others nothing.

    Gives the results, and the user's own traceback for each statement that failed.
    """
    results: list[Measurement] = []
    tracebacks: dict[str, str] = {}
    for make_timer in timers:
        for stmt in (stmt for stmt in stmts if stmt not in tracebacks):
            try:
                results.append(method(make_timer(stmt)))
            except (Exception, SystemExit) as error:
                if not has_user_frames(error) and not isinstance(error, SyntaxError):
                    raise
                tracebacks[stmt] = user_traceback(error)
    return results, tracebacks


def _load_timer() -> type[Timer]:
    try:
        from torchmark.api.timer import Timer
    except (ImportError, OSError) as error:
        # A shared library of torch's that cannot be loaded is an OSError.
        missing = isinstance(error, ModuleNotFoundError) and error.name == "torch"
        raise SetupError(
            f"{sys.executable} has no torch." if missing else f"torch of {sys.executable} does not load: {error}.",
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
    # The text above tells of variation already. Advice that fits several notes is given once.
    notes = [(result, caveat) for result in results for caveat in result.caveats if not isinstance(caveat, Variation)]
    for result, caveat in notes:
        whose = f"{one_line(result.as_row_name)}, {count(result.num_threads, 'thread')}: " if len(results) > 1 else ""
        click.echo(f"  NOTE: {whose}{state_fact(caveat)}")
    for advice in ordered_unique(give_advice(caveat, "shell", used) for _, caveat in notes):
        click.echo(f"  {advice}")


def show_failures(tracebacks: dict[str, str], *, with_names: bool) -> None:
    """Each traceback once: a broken setup fails every statement in the same way."""
    for text in dict.fromkeys(tracebacks.values()):
        whose = ", ".join(one_line(stmt) for stmt, own in tracebacks.items() if own == text)
        heading = f"Failed: {whose}\n" if with_names else ""
        click.echo(f"{heading}{text}", err=True, nl=False)


def _show_interval(result: Measurement) -> None:
    interval = result.median_interval()
    if interval is None:
        return
    scale = choose_scale(result.median)
    low, high = scale.show(interval.low), scale.show(interval.high)
    click.echo(f"  The median lies between {low} and {high} {scale.unit} ({interval.confidence:.0%} confidence).")
