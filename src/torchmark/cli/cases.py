"""The cases that a command is about: options that choose them, how they are loaded.

Nothing that measures is imported here: listing cases needs none of it.
"""

from __future__ import annotations

import dataclasses
import itertools
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from torchmark.analysis.estimate import deal
from torchmark.cli.options import (
    THREAD_COUNTS,
    check_language,
    give_together,
    output_aside,
    see_folder,
)
from torchmark.cli.output import echo
from torchmark.define.discovery import DEFAULT_SUITES, discover, list_suites
from torchmark.define.selection import (
    AUTOGRAD,
    LANGUAGES,
    RUNTIMES,
    CaseOptions,
    Selection,
    missing_words,
    nearby,
    parse,
    select,
)
from torchmark.errors import ExitCode, UsageError
from torchmark.model.plan import Case, Fault, Plan, TimerArgs
from torchmark.model.run import Shard
from torchmark.report.text.failures import describe_fault
from torchmark.report.text.names import name_case
from torchmark.report.text.terminal import count

if TYPE_CHECKING:
    from torchmark.api.runs import RunRequest

# As many candidates as a person reads.
MOST_CANDIDATES = 10


def complete_suite(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    suites = [CompletionItem(name) for name in list_suites() if name.startswith(incomplete)]
    return [CompletionItem(incomplete, type="file"), *suites]


cases_argument = click.argument("names", metavar="[SUITE|PATH]...", nargs=-1, shell_complete=complete_suite)


@dataclasses.dataclass(frozen=True)
class Loaded:
    """The cases that are meant, all that were found, and what is wrong with the definitions of others."""

    cases: tuple[Case, ...]
    found: tuple[Case, ...]
    faults: tuple[Fault, ...]
    selection: Selection

    @property
    def exit_code(self) -> int:
        """What a command ends with that has nothing else to complain of."""
        if self.faults:
            return ExitCode.INVALID
        return 0 if self.cases else ExitCode.FAILED


def load_cases(names: Sequence[str], selection: Selection) -> Loaded:
    """Find the cases of suites, files and folders, the standard suite where none is named, and select."""
    # Files of benchmarks are programs, which may print; standard output is for results.
    with output_aside():
        discovered = discover(names or DEFAULT_SUITES)
    return Loaded(select(discovered.cases, selection), discovered.cases, discovered.faults, selection)


def describe_statement(stmt: str, setup: str | None, global_setup: str, chosen: CaseOptions) -> TimerArgs:
    """A statement with what belongs to it. Its language and threads are said as those of a suite's cases are."""
    if chosen.k or chosen.runtime or chosen.autograd or chosen.tag:
        raise UsageError(f"{stmt!r} is no suite and no file, and cases are selected of these.")
    if len(chosen.language) > 1 or len(chosen.threads) > 1:
        raise UsageError("A statement has one --language and one number of --threads.")
    language = chosen.language[0] if chosen.language else "python"
    threads = int(chosen.threads[0]) if chosen.threads else 1
    return TimerArgs(
        stmt=stmt,
        setup=check_language(language, setup, global_setup),
        global_setup=global_setup,
        num_threads=threads,
        language=LANGUAGES[language],
    )


def _choice_option(name: str, choices: Iterable[str], text: str) -> Callable[..., Any]:
    return click.option(f"--{name}", type=click.Choice(list(choices), case_sensitive=False), multiple=True, help=text)


def _spell(_: click.Context, __: click.Parameter, given: tuple[tuple[int, ...], ...]) -> tuple[str, ...]:
    return tuple(str(n) for n in itertools.chain(*given))


# The options that select cases, as they were given, and what they mean.
choice_options = give_together(
    "chosen",
    CaseOptions,
    click.option("-k", metavar="EXPR", multiple=True, help="Only those with these words in their labels."),
    _choice_option("language", LANGUAGES, "Only this language."),
    _choice_option("runtime", RUNTIMES, "Only this runtime."),
    _choice_option("autograd", AUTOGRAD, "Only this autograd mode."),
    click.option("--threads", type=THREAD_COUNTS, multiple=True, callback=_spell, help="Only these thread counts."),
    click.option("--tag", metavar="TAG", multiple=True, help="Only those with this tag."),
)
selection_options = give_together("selection", lambda chosen: chosen.select(), choice_options)


def print_faults(faults: Sequence[Fault]) -> None:
    if faults:
        texts = [describe_fault(fault) for fault in faults]
        echo("\n\n".join([f"{count(len(faults), 'faulty definition')}:", *texts]), err=True)


def report_empty_selection(loaded: Loaded) -> int:
    """Tell why there is no case to work on, on standard error; the exit code."""
    if loaded.found or not loaded.faults:
        echo(f"torchmark: {explain_nothing(loaded)}", err=True)
    print_faults(loaded.faults)
    return loaded.exit_code


def report_nothing_selected(found: Sequence[Case], selection: Selection) -> int:
    """Tell that no case of stored results is selected, on standard error; the exit code."""
    return report_empty_selection(Loaded((), tuple(found), (), selection))


def explain_nothing(loaded: Loaded) -> str:
    if not loaded.found:
        return "There are no benchmarks here."
    selection, found = loaded.selection, loaded.found
    lines = [f"None of {count(len(found), 'case')} is selected by {' '.join(format_selection(selection))}."]
    for word in missing_words(selection.expression, found) if selection.expression else ():
        meant = nearby(word, found)
        lines.append(f"No case has {word!r}." + (f" There is {_list(meant)}." if meant else ""))
    tags = {tag for case in found for tag in case.tags}
    if not tags.issuperset(selection.tags):
        lines.append(f"The tags are {', '.join(sorted(tags))}." if tags else "There are no tags.")
    return "\n".join(lines)


def _list(texts: Sequence[str]) -> str:
    *others, last = map(repr, texts)
    return f"{', '.join(others)} and {last}" if others else last


def format_selection(selection: Selection) -> Iterator[str]:
    """The options that a selection was made by, for a shell."""
    if selection.expression is not None:
        yield f"-k {shlex.quote(str(selection.expression))}"
    for option, known, values in (
        ("language", LANGUAGES, selection.languages),
        ("runtime", RUNTIMES, selection.runtimes),
        ("autograd", AUTOGRAD, selection.autograd),
    ):
        yield from (f"--{option} {name}" for name, value in known.items() if value in values)
    if selection.threads:
        yield f"--threads {','.join(map(str, selection.threads))}"
    yield from (f"--tag {shlex.quote(tag)}" for tag in selection.tags)


def find_named(cases: Sequence[Case], name: str) -> tuple[Case, ...]:
    """The case of this full name, or all that the expression means."""
    named = tuple(case for case in cases if name_case(case) == name)
    selection = Selection(expression=None if named else parse(name))
    found = named or select(cases, selection)
    if not found:
        raise UsageError(explain_nothing(Loaded((), tuple(cases), (), selection)))
    return found


def list_candidates(cases: Sequence[Case]) -> list[str]:
    """A line for each case, of which one is to be named; the last line says how many more there are."""
    lines = [f"  {name_case(case)}" for case in cases[:MOST_CANDIDATES]]
    return [*lines, f"  and {len(cases) - len(lines)} more"] if len(cases) > len(lines) else lines


def describe_empty_selection(plan: Plan, shard: Shard) -> str:
    filled = max(deal(plan, shard.of).values())
    return (
        f"Shard {shard} is empty: what is compared with each other stays together, and these cases fill "
        f"{count(filled, 'shard')}. There is nothing to do, and nothing is wrong."
    )


def load_run(request: RunRequest, *, sees_folder: bool = True) -> Loaded:
    """The cases of a run. A setup may import what lies here, as `python -m` lets it."""
    if sees_folder:
        see_folder()
    return load_cases(request.names, request.chosen.select())


def list_given() -> frozenset[str]:
    context = click.get_current_context()
    by_user = click.core.ParameterSource.COMMANDLINE
    return frozenset(name for name in context.params if context.get_parameter_source(name) is by_user)
