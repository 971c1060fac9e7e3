"""Options that several commands share: values, the store, and the back end."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from torchmark.cli.output import STANDARD_INPUT, STANDARD_OUTPUT, check_output, echo, write_text
from torchmark.errors import StoreError, TorchmarkError, UsageError
from torchmark.model.plan import Metric
from torchmark.report.text.terminal import escape_json, printable
from torchmark.runner.local import LocalBackend
from torchmark.runner.spec import find_interpreter
from torchmark.store.runs import DEFAULT_STORE, Store, open_store

if TYPE_CHECKING:
    from torchmark.runner.cluster.backend import ClusterBackend

_Function = TypeVar("_Function", bound=Callable[..., Any])

# More threads than this no machine has; a slip of the finger should not start them.
MOST_THREADS = 4096


class OutputFile(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A file to write when there is something to write. One that cannot be written is told before that."""

    name = "FILE"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Its name as it was given."""
        try:
            check_output(value, "results.json")
        except UsageError as error:
            self.fail(f"{value}: {error}", param, ctx)
        return value


json_option = click.option("--json", "json_file", type=OutputFile(), help="Write JSON; - is standard output.")


language_option = click.option(
    "--language",
    type=click.Choice(["python", "cpp"]),
    default="python",
    help="What statements and setup are written in (python).",
)
global_setup_option = click.option(
    "--global-setup", default="", metavar="CODE", help="C++ at file scope, such as #include lines and functions."
)


class Code(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A text of a program, or @ and the name of the file that has it."""

    name = "CODE|@FILE"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text. A decorator is followed by another line, so it is not taken for a file."""
        if not value.startswith("@") or "\n" in value:
            return value
        try:
            return read_code(value[1:])
        except UsageError as error:
            self.fail(str(error), param, ctx)


def read_code(path: str) -> str:
    """The text of a file of the user's."""
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


def setup_option(text: str, default: str | None = None) -> Callable[[_Function], _Function]:
    """`--setup`, with this help."""
    return click.option("-s", "--setup", type=Code(), default=default, help=text)


def python_option(text: str) -> Callable[[_Function], _Function]:
    """`--python`, with this help."""
    return click.option("--python", metavar="PATH", help=text)


def check_interpreters(*pythons: str | None) -> None:
    """InterpreterError for the first that is not a Python of this machine; None is this program's own."""
    for python in pythons:
        if python is not None:
            find_interpreter(python, os.environ)


def _refuse(message: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def refuse(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value is not None:
            raise click.UsageError(message, ctx)

    return refuse


def habit_options(function: _Function) -> _Function:
    """Options of other programs that people try: each is refused with the way to do the same here."""
    for names, message in _HABITS:
        option = click.option(
            *names, expose_value=False, hidden=True, is_flag=False, flag_value="", callback=_refuse(message)
        )
        function = option(function)
    return function


_HABITS = (
    (
        ("-n", "--loops"),
        "There is no -n: the number of runs per block is chosen automatically. Use --min-run-time to measure for "
        "longer, or --number to fix it.",
    ),
    (("--warmup",), "There is no --warmup: statements are always warmed up before they are measured."),
    (("--setup-file",), "There is no --setup-file: use --setup @FILE."),
)


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


class ThreadCounts(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Thread counts separated by commas."""

    name = "N[,N...]"

    def convert(
        self, value: str | tuple[int, ...], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Parse, or say what was expected."""
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(int(part) for part in value.split(","))
        except ValueError:
            numbers = ()
        if not numbers or min(numbers) < 1 or max(numbers) > MOST_THREADS:
            self.fail(f"{value!r} is not a list of whole numbers from 1 to {MOST_THREADS}, such as 1,2,4.", param, ctx)
        return numbers


# Some thirty years.
MOST_SECONDS = 1e9


class WholeNumber(click.IntRange):
    """A whole number in a range, called so in messages."""

    name = "whole number"


class Seconds(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A length of time that ends."""

    name = "S"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse, or say what was expected."""
        try:
            seconds = float(value)
        except ValueError:
            seconds = math.nan
        if not 0 <= seconds <= MOST_SECONDS:
            self.fail(f"{value!r} is not a number of seconds, such as 0.5.", param, ctx)
        return seconds


class Share(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A part of something, as a number or in per cent."""

    name = "P%"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse, or say what was expected."""
        text = str(value).strip()
        try:
            share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            share = math.nan
        if not 0 < share < 0.5:
            self.fail(f"{value!r} is not a share below a half, such as 1% or 0.01.", param, ctx)
        return share


class Metrics(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """What to measure, separated by commas."""

    name = "wall,count"

    def convert(
        self, value: str | tuple[Metric, ...], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Metric, ...]:
        """Parse, or say what was expected. They come in their usual order, each once."""
        if isinstance(value, tuple):
            return value
        names = [name.strip().lower() for name in value.split(",")]
        known = {metric.value: metric for metric in Metric}
        if not set(names) <= set(known):
            self.fail(
                f"{value!r} is not one of {', '.join(known)}, or several of them separated by commas.", param, ctx
            )
        return tuple(metric for name, metric in known.items() if name in names)


class NamedInterpreter(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """An interpreter under a name of the user's."""

    name = "NAME=PYTHON"

    def convert(
        self, value: str | tuple[str, str], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Parse, or say what was expected."""
        if isinstance(value, tuple):
            return value
        name, separator, path = value.partition("=")
        if not separator or not name.strip() or not path.strip():
            self.fail(f"{value!r} is not a name and an interpreter, such as base=/path/to/python.", param, ctx)
        return name.strip(), path.strip()


class Variable(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """An environment variable with its value."""

    name = "NAME=VALUE"

    def convert(
        self, value: str | tuple[str, str], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Parse, or say what was expected."""
        if isinstance(value, tuple):
            return value
        name, separator, text = value.partition("=")
        if not separator or not name:
            self.fail(f"{value!r} is not a variable with its value, such as OMP_NUM_THREADS=2.", param, ctx)
        return name, text


def use_colour() -> bool:
    """Whether standard output is a terminal that shows colours, and nobody minds."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
    return wanted and sys.stdout is not None and sys.stdout.isatty()


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
        """Whether a cluster is meant."""
        return self.backend == RAY

    def check(self, cores: str | None) -> None:
        """Refuse what does not go together. SetupError if Ray is not installed."""
        if not self.is_ray and self.address is not None:
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
        """What carries out the orders of a run."""
        return self.make_cluster() if self.is_ray else LocalBackend(cores)


def backend_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--backend` and `--address`, and hand them to it as `means`."""

    @functools.wraps(function)
    def with_options(*args: Any, backend: str, address: str | None, **kwargs: Any) -> Any:
        return function(*args, means=BackendChoice(backend, address), **kwargs)

    click.option(
        "--address",
        metavar="HOST:PORT",
        help="Which Ray cluster (RAY_ADDRESS, or the one that runs here, or a new one for this command).",
    )(with_options)
    click.option(
        "--backend",
        type=click.Choice([LOCAL, RAY]),
        default=LOCAL,
        help="Where to measure: on this machine, or on a Ray cluster (local).",
    )(with_options)
    return with_options


def _tell(text: str) -> None:
    echo(f"NOTE: {text}", err=True)
