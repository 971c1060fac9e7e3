"""Options that several commands have, each declared once; the types of their values; the store and the back end.

Commands that do not measure load nothing that does: back ends are imported when one is made.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from torchmark.cli.output import STANDARD_INPUT, STANDARD_OUTPUT, check_output, echo, write_text
from torchmark.errors import StoreError, TorchmarkError, UsageError
from torchmark.model.plan import Metric, Sampling
from torchmark.report.text.terminal import escape_json, printable
from torchmark.runner.spec import find_interpreter
from torchmark.store.runs import DEFAULT_STORE, Store, open_store

if TYPE_CHECKING:
    from torchmark.runner.cluster.backend import ClusterBackend
    from torchmark.runner.local import LocalBackend

_Function = TypeVar("_Function", bound=Callable[..., Any])

# More threads than this no machine has; a slip of the finger should not start them.
MOST_THREADS = 4096
# Some thirty years.
MOST_SECONDS = 1e9
MOST_LAYOUTS = 1000


class Parsed(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A value that a function makes of a text. A UsageError of the function is shown with the option."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse what was given; defaults may be values already."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except UsageError as error:
            self.fail(str(error), param, ctx)


class WholeNumber(click.IntRange):
    """A whole number in a range, called so in messages."""

    name = "whole number"


def _check_file(name: str) -> str:
    try:
        check_output(name, "results.json")
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error
    return name


def _read_code_option(text: str) -> str:
    """The text of a program, or of the file behind an @. A decorator is followed by another line: it is no file."""
    return read_code(text[1:]) if text.startswith("@") and "\n" not in text else text


def read_code(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"The file {path!r} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise UsageError(f"The file {path!r} is not text in UTF-8.") from error


def read_statement(text: str) -> tuple[str, str | None]:
    """A statement as it is given; or from a file or standard input, which its row is then named after."""
    # The line break at the end of a file is none of the statement.
    if text == STANDARD_INPUT:
        return (sys.stdin.read() if sys.stdin else "").rstrip("\n"), "standard input"
    if text.endswith(_CODE_ENDINGS) and os.path.isfile(text):
        return read_code(text).rstrip("\n"), text
    if _FILE_NAME.fullmatch(text):
        raise UsageError(f"There is no file {text!r} here. Name one that exists, or give a statement.")
    return text, None


# A file's name has one of these endings: without any, `x` might be a variable and a file.
_CODE_ENDINGS = (".py", ".cpp", ".cc", ".cxx")
# Nobody's statement is an attribute of that name.
_FILE_NAME = re.compile(r"[\w./-]*\w\.(py|cpp|cc|cxx)")


def parse_thread_counts(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1 or max(numbers) > MOST_THREADS:
        raise UsageError(f"{text!r} is not a list of whole numbers from 1 to {MOST_THREADS}, such as 1,2,4.")
    return numbers


def parse_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= MOST_SECONDS:
        raise UsageError(f"{text!r} is not a number of seconds, such as 0.5.")
    return seconds


def _parse_share(text: str) -> float:
    number = text.strip()
    try:
        share = float(number[:-1]) / 100 if number.endswith("%") else float(number)
    except ValueError:
        share = math.nan
    if not 0 < share < 0.5:
        raise UsageError(f"{text!r} is not a share below a half, such as 1% or 0.01.")
    return share


def _parse_metrics(text: str) -> tuple[Metric, ...]:
    """What to measure, separated by commas; in the usual order, each once."""
    names = [name.strip().lower() for name in text.split(",")]
    known = {metric.value: metric for metric in Metric}
    if not set(names) <= set(known):
        raise UsageError(f"{text!r} is not one of {', '.join(known)}, or several of them separated by commas.")
    return tuple(metric for name, metric in known.items() if name in names)


def _parse_interpreter(text: str) -> tuple[str, str]:
    name, _, path = (part.strip() for part in text.partition("="))
    if not name or not path:
        raise UsageError(f"{text!r} is not a name and an interpreter, such as base=/path/to/python.")
    return name, path


def _parse_variable(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise UsageError(f"{text!r} is not a variable with its value, such as OMP_NUM_THREADS=2.")
    return name, value


CODE = Parsed("CODE|@FILE", _read_code_option)
INTERPRETER = Parsed("NAME=PYTHON", _parse_interpreter)
METRICS = Parsed("wall,count", _parse_metrics)
SECONDS = Parsed("S", parse_seconds)
SHARE = Parsed("P%", _parse_share)
THREAD_COUNTS = Parsed("N[,N...]", parse_thread_counts)
VARIABLE = Parsed("NAME=VALUE", _parse_variable)


def give_together(
    name: str, make: Callable[..., Any], *options: Callable[..., Any]
) -> Callable[[_Function], Callable[..., Any]]:
    """Options, in the order of the help, of which a command gets one value, `name`: what `make` makes of all.

    `make` takes them by their names. An option may be such a group itself, whose value `make` then takes.
    """
    names = tuple(inspect.signature(make).parameters)

    def decorate(function: _Function) -> Callable[..., Any]:
        @functools.wraps(function)
        def with_options(*args: Any, **kwargs: Any) -> Any:
            given = {one: kwargs.pop(one) for one in names if one in kwargs}
            return function(*args, **{name: make(**given)}, **kwargs)

        return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), with_options)

    return decorate


# Options that several commands have. Those that are worded for each command are functions.


def all_option(cases: str = "case") -> Callable[[_Function], _Function]:
    return click.option("--all", "all_cases", is_flag=True, help=f"A line for each {cases}, however many are the same.")


cores_option = click.option("--cores", metavar="N|LIST", help="How many cores to use, or which, such as 0,2-3 (all).")
counted_runs_option = click.option(
    "--number", type=WholeNumber(1, 1_000_000), default=100, metavar="N", help="Runs to count (100)."
)
global_setup_option = click.option(
    "--global-setup", default="", metavar="CODE", help="C++ at file scope, such as #include lines and functions."
)
# A file that cannot be written is told before anything is measured.
json_option = click.option(
    "--json", "json_file", type=Parsed("FILE", _check_file), help="Write JSON; - is standard output."
)
language_option = click.option(
    "--language",
    type=click.Choice(["python", "cpp"]),
    default="python",
    help="What statements and setup are written in (python).",
)


def layouts_option(
    default: int, text: str, *, least: int = 1, most: int = MOST_LAYOUTS
) -> Callable[[_Function], _Function]:
    return click.option("--layouts", type=WholeNumber(least, most), default=default, metavar="N", help=text)


def metric_option(
    text: str = "Only times or only counts.", default: str | None = None
) -> Callable[[_Function], _Function]:
    """`--metric`; without a default it is None, for all that there are."""
    return click.option("--metric", "metrics", type=METRICS, default=default, help=text)


no_explain_option = click.option(
    "--no-explain", is_flag=True, help="Explain no change by function; else the five largest are."
)


def python_option(verb: str = "measure") -> Callable[[_Function], _Function]:
    return click.option("--python", metavar="PATH", help=f"The interpreter to {verb} in, with its own torch.")


def quiet_option(what: str = "results") -> Callable[[_Function], _Function]:
    return click.option("-q", "--quiet", is_flag=True, help=f"No signs of life, only the {what}.")


def setup_option(text: str, default: str | None = None) -> Callable[[_Function], _Function]:
    return click.option("-s", "--setup", type=CODE, default=default, help=text)


statements_argument = click.argument("stmts", metavar="STMT...", nargs=-1, required=True)
target_option = click.option("--env", metavar="NAME", help="Only the results of this target.")
threads_option = click.option("--threads", type=THREAD_COUNTS, default="1", help="torch threads, such as 1 or 1,2,4.")


def timeout_option(what: str) -> Callable[[_Function], _Function]:
    text = f"Seconds until {what} is given up ({Sampling.timeout_s:g})."
    return click.option("--timeout", type=SECONDS, default=Sampling.timeout_s, help=text)


def check_interpreters(*pythons: str | None) -> None:
    """InterpreterError for the first that is not a Python of this machine; None is this program's own."""
    for python in pythons:
        if python is not None:
            find_interpreter(python, os.environ)


_HABITS = {
    ("-n", "--loops"): "There is no -n: the number of runs per block is chosen automatically. Use --min-run-time to "
    "measure for longer, or --number to fix it.",
    ("--warmup",): "There is no --warmup: statements are always warmed up before they are measured.",
    ("--setup-file",): "There is no --setup-file: use --setup @FILE.",
}


def _refuse(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(_HABITS[tuple(param.opts)], ctx)


def habit_options(function: _Function) -> _Function:
    """Options of other programs that people try: each is refused with the way to do the same here."""
    for names in _HABITS:
        option = click.option(*names, expose_value=False, hidden=True, is_flag=False, flag_value="", callback=_refuse)
        function = option(function)
    return function


def check_folder() -> None:
    """Refuse to work in a folder that is gone: other processes could not start there."""
    try:
        os.getcwd()
    except OSError as error:
        raise UsageError(f"The working folder cannot be used: {error.strerror}.") from error


def check_language(language: str, setup: str | None, global_setup: str) -> str:
    """The setup as the language has it; options that do not fit the language are refused."""
    if language == "cpp":
        return setup or ""
    if global_setup:
        raise UsageError("--global-setup is for C++: say --language cpp, or move it to --setup.")
    return "pass" if setup is None else setup


def see_folder() -> None:
    """Let a setup, or a file of benchmarks, import what lies here, as `python -m` does."""
    sys.path.insert(0, os.getcwd())


def use_colour() -> bool:
    """Whether standard output is a terminal that shows colours, and nobody minds."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
    return wanted and sys.stdout is not None and sys.stdout.isatty()


def terminal_width() -> int:
    """How many characters a line of the terminal has; 80 where nobody knows."""
    return shutil.get_terminal_size((80, 0)).columns


def is_standard_output(output: str | None) -> bool:
    """Whether JSON goes where text for people would, which then has to stay away."""
    if output is None or output == STANDARD_OUTPUT:
        return output is not None
    try:
        return os.path.samestat(os.stat(output), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError, AttributeError):  # not there yet, or a stream that is not a file, or none
        return False


def write_json(data: dict[str, Any], output: str) -> None:
    """Write it all, now, or say that it could not be written; then a file that was there before stays as it was."""
    is_standard = is_standard_output(output)
    try:
        write_text(escape_json(json.dumps(data, indent=2)) + "\n", STANDARD_OUTPUT if is_standard else output)
    except BrokenPipeError:
        raise  # whoever read it has enough
    except OSError as error:
        raise StoreError(f"Cannot write JSON to standard output: {error.strerror}.") from error


def offer_json(make: Callable[[], dict[str, Any]], json_file: str | None) -> bool:
    """Write JSON if it is asked for; whether text is to be shown, because JSON does not go to standard output."""
    if json_file is not None:
        write_json(make(), json_file)
    return not is_standard_output(json_file)


@contextlib.contextmanager
def output_aside() -> Iterator[None]:
    """Send to standard error what the user's code writes to standard output, in whatever language it does so.

    Whatever that code does to `sys.stdout`, it is there again afterwards.
    """
    stream = sys.stdout
    # A program may be started without one.
    if stream is None or sys.stderr is None:
        yield
        return
    stream.flush()
    number = stream.fileno()
    saved = os.dup(number)
    os.dup2(sys.stderr.fileno(), number)
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()
        if not stream.closed:
            stream.flush()
        os.dup2(saved, number)
        os.close(saved)
        sys.stdout = open(number, "w", closefd=False) if stream.closed else stream  # noqa: SIM115  for the rest


def open_to_write(path: Path, *, create: bool = True) -> Store:
    """Open the store to add runs, and say so if an earlier store of that name had left files, which were renamed."""
    store = open_store(path, create=create)
    for one in store.left:
        text = f"{str(one)!r} is left of an earlier store of the same name. Remove it if you miss no results."
        echo(f"Note: {text}", err=True)
    return store


def format_store(path: Path) -> str:
    """What commands that are proposed to the user have to say of the store: nothing if they would find it anyway."""
    source = click.get_current_context().get_parameter_source("store_path")
    return str(path) if source is click.core.ParameterSource.COMMANDLINE else ""


def complete_run(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of runs of the store, where there is one; not those that could steer a terminal."""
    path = ctx.params.get("store_path") or os.environ.get("TORCHMARK_STORE") or DEFAULT_STORE
    try:
        with open_store(Path(path), read_only=True) as store:
            names = [entry.info.name for entry in store.list_entries()]
    except (TorchmarkError, OSError):
        return []
    known = dict.fromkeys(name for name in names if name and name == printable(name))
    return [CompletionItem(name) for name in known if name.startswith(incomplete)]


run_argument = click.argument("reference", metavar="[RUN]", default="@", shell_complete=complete_run)
store_option = click.option(
    "--store",
    "store_path",
    type=click.Path(path_type=Path),
    default=DEFAULT_STORE,
    envvar="TORCHMARK_STORE",
    metavar="PATH",
    help=f"The file that runs are kept in ($TORCHMARK_STORE, or {DEFAULT_STORE}).",
)

LOCAL, RAY = "local", "ray"


@dataclasses.dataclass(frozen=True)
class BackendChoice:
    """What is to be used, as it was asked for."""

    backend: str = LOCAL
    address: str | None = None

    @property
    def is_ray(self) -> bool:
        return self.backend == RAY

    def check(self, cores: str | None) -> None:
        """Refuse what does not go together. SetupError if Ray is not installed."""
        if self.address is not None and not self.is_ray:
            raise UsageError("--address is of a Ray cluster: give --backend ray with it.")
        if self.is_ray:
            if cores is not None:
                raise UsageError("--cores is of this machine: nodes of a cluster say themselves what they offer.")
            from torchmark.runner.cluster.backend import open_ray

            open_ray(self.address)

    def make_cluster(self, *, aligned: bool = False, together: bool = False) -> ClusterBackend:
        """The cluster; it is not connected to yet."""
        from torchmark.runner.cluster.backend import ClusterBackend, open_ray

        return ClusterBackend(open_ray(self.address, aligned=aligned, notify=_tell), _tell, together=together)

    def make(self, cores: Sequence[int]) -> LocalBackend | ClusterBackend:
        from torchmark.runner.local import LocalBackend

        return self.make_cluster() if self.is_ray else LocalBackend(cores)


backend_options = give_together(
    "means",
    BackendChoice,
    click.option(
        "--backend",
        type=click.Choice([LOCAL, RAY]),
        default=LOCAL,
        help="Where to measure: on this machine, or on a Ray cluster (local).",
    ),
    click.option(
        "--address",
        metavar="HOST:PORT",
        help="Which Ray cluster (RAY_ADDRESS, or the one that runs here, or a new one for this command).",
    ),
)


def _tell(text: str) -> None:
    echo(f"NOTE: {text}", err=True)
