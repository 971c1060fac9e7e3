"""The options and setups of groups, and the faults that are found in definitions."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import re
import symtable
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType
from typing import NoReturn, ParamSpec, TypeAlias, TypeVar, cast

from torchmark.errors import DefinitionError
from torchmark.model.plan import CompileMode
from torchmark.model.task import format_fields


@dataclasses.dataclass(frozen=True)
class Gathered:
    """What is wrong with a suite: faults that stand in no group's place, with their labels, and the lines of others.

    Some of those others may have got lost, if the suite does not use the group or text that they stand for.
    """

    file: str
    faults: list[tuple[tuple[str, ...], DefinitionError]] = dataclasses.field(default_factory=list)
    lines: dict[DefinitionError, int | None] = dataclasses.field(default_factory=dict)


_gathering: contextvars.ContextVar[Gathered | None] = contextvars.ContextVar("torchmark_gathering", default=None)


@dataclasses.dataclass(frozen=True)
class Broken:
    """Stands where a group would, had it been well defined."""

    error: DefinitionError

    def keys(self) -> tuple[tuple[()]]:
        """So that a suite can spread it like the dictionary of a good one: `{**GroupedVariants(...)}`."""
        return ((),)

    def __getitem__(self, key: tuple[()]) -> Broken:
        return self

    def __getattr__(self, name: str) -> NoReturn:
        # A suite that goes on to work with the group is told what is wrong with it.
        raise AttributeError(name) if name.startswith("__") else self.error


class BrokenText(str):
    """Stands for a text that could not be made; a group made of it is broken."""

    error: DefinitionError

    def __new__(cls, error: DefinitionError) -> BrokenText:
        self = super().__new__(cls, "")
        self.error = error
        return self


@contextlib.contextmanager
def gather(file: str) -> Iterator[Gathered]:
    """Within this, faults do not raise: they are in what it gives."""
    gathered = Gathered(file)
    token = _gathering.set(gathered)
    try:
        yield gathered
    finally:
        _gathering.reset(token)


def report(label: tuple[str, ...], error: DefinitionError) -> None:
    """A fault that stands in no group's place: noted where faults are gathered, and else raised."""
    gathered = _gathering.get()
    if gathered is None:
        raise error
    gathered.faults.append((label, error))


P = ParamSpec("P")
R = TypeVar("R")


def breakable(make: Callable[P, R]) -> Callable[P, R]:
    """For what makes groups: a fault, also in how it is called, breaks what it makes and nothing else."""

    @functools.wraps(make)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return make(*args, **kwargs)
        except DefinitionError as error:
            return cast(R, break_off(error))
        except TypeError as error:
            # Raised by the call itself, and not somewhere within.
            if _gathering.get() is None or error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            return cast(R, break_off(DefinitionError(str(error))))

    return wrapper


def break_off(error: DefinitionError) -> Broken:
    """What to put in a group's place; raises the error unless faults are gathered."""
    gathered = _gathering.get()
    if gathered is None:
        raise error
    gathered.lines[error] = _line_of_definition(gathered.file)
    return Broken(error)


def _line_of_definition(file: str) -> int | None:
    """The line of the suite that asked for the group, if only by way of a function in another file."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    return frame.f_lineno if frame is not None else None


Threads: TypeAlias = "int | tuple[int, ...]"
Compile: TypeAlias = "bool | str | CompileMode | Sequence[str | CompileMode]"

# Names of back ends and modes stand in code, in double quotes, and in labels, with commas between.
_PLAIN_NAME = re.compile(r"[\w.+-]+")


def dedent(text: str, name: str) -> str:
    if isinstance(text, BrokenText):
        raise text.error
    if not isinstance(text, str):
        raise DefinitionError(f"`{name}` is a text, not {type(text)}.")
    return textwrap.dedent(text)


def dedent_stmt(text: str | None, name: str) -> str | None:
    """The same for one that need not be there; but if it is, it says something."""
    if text is None:
        return None
    text = dedent(text, name)
    if not text.strip():
        raise DefinitionError(f"`{name}` is empty.", advice="Leave it out if the language has no such benchmark.")
    return text


def check_python(name: str, code: str | None) -> None:
    """Raise a DefinitionError that points at what is not Python."""
    try:
        with warnings.catch_warnings():
            # They are given when the code is run.
            warnings.simplefilter("ignore")
            # Compiled, not only parsed: `return` and `break` belong into a function and into a loop.
            compile(code or "", "<definition>", "exec", dont_inherit=True)
    except (RecursionError, MemoryError):
        raise DefinitionError(f"`{name}` is nested too deeply for Python to read.") from None
    except (SyntaxError, ValueError) as error:
        problem = f"`{name}` is not Python: {getattr(error, 'msg', error)}."
        line, column = getattr(error, "lineno", None) or 1, getattr(error, "offset", None) or 1
        position = sum(len(earlier) + 1 for earlier in (code or "").split("\n")[: line - 1]) + column - 1
        position = max(0, min(position, len(code or "")))
        raise DefinitionError(problem, text=code, position=position) from None


# Code that has one of these may assign names that it does not spell.
_MAY_ASSIGN = re.compile(r"\b(exec|eval|globals|locals|vars|setattr)\b|import\s*\*")


def find_unassigned(names: Sequence[str], *codes: str) -> tuple[str, ...]:
    """Those names that certainly nothing in these pieces of Python assigns.

    >>> find_unassigned(("y", "z"), "y = x * 2")
    ('z',)
    """
    if any(map(_MAY_ASSIGN.search, codes)):
        return ()
    assigned = {name for code in codes for name in _list_assigned(symtable.symtable(code, "<definition>", "exec"))}
    return tuple(name for name in names if name not in assigned)


def _list_assigned(table: symtable.SymbolTable) -> Iterator[str]:
    """Names that are assigned or imported in any scope: a function may assign a global."""
    yield from (one.get_name() for one in table.get_symbols() if one.is_assigned() or one.is_imported())
    for child in table.get_children():
        yield from _list_assigned(child)


def check_line(code: str | None) -> None:
    """The same for a line of a block of variants, in which people may mean to go on in the next."""
    try:
        check_python("py_block", code)
    except DefinitionError as error:
        advice = "Each line is a benchmark. One that goes on in the next has an open bracket, or ends with a backslash."
        raise DefinitionError(error.problem, text=error.text, position=error.position, advice=advice) from None


def check_flag(name: str, flag: object, *known: object) -> None:
    """Raise a DefinitionError unless it is True or False, or what else is known; a text is true, even "no"."""
    if not any(flag is one for one in (True, False, *known)):
        raise DefinitionError(f"`{name}` is True or False, not {flag!r}.")


def check_threads(threads: Threads) -> tuple[int, ...]:
    """One number or several, as several.

    >>> check_threads(2)
    (2,)
    """
    numbers = tuple(threads) if isinstance(threads, Iterable) else (threads,)
    if not numbers or not all(type(number) is int and number > 0 for number in numbers):
        raise DefinitionError(f"`num_threads` is a whole number from 1 on, or several of them, not {threads!r}.")
    if len(set(numbers)) < len(numbers):
        raise DefinitionError(f"`num_threads` has a number twice: {threads!r}.")
    return numbers


def check_tags(tags: object) -> tuple[str, ...]:
    chosen: tuple[object, ...] = tuple(tags) if isinstance(tags, Iterable) and not isinstance(tags, str) else (tags,)
    texts = tuple(tag for tag in chosen if isinstance(tag, str) and tag.strip())
    if len(texts) < len(chosen):
        raise DefinitionError(f"`tags` are texts, not {tags!r}.")
    return texts


def choose_modes(compile: Compile) -> tuple[CompileMode, ...]:
    """The ways of compiling that are asked for: back ends, with their mode behind a colon.

    >>> choose_modes(("aot_eager", "inductor:max-autotune"))
    (CompileMode(backend='aot_eager', mode=None), CompileMode(backend='inductor', mode='max-autotune'))
    """
    if isinstance(compile, bool):
        return (CompileMode(),) if compile else ()
    chosen = tuple(compile) if isinstance(compile, (tuple, list)) else (compile,)
    modes = []
    for one in chosen:
        if isinstance(one, str) and one.strip():
            backend, _, mode = one.partition(":")
            one = CompileMode(backend.strip() or CompileMode.backend, mode.strip() or None)
        if not isinstance(one, CompileMode) or not (
            _is_plain(one.backend) and (one.mode is None or _is_plain(one.mode))
        ):
            raise DefinitionError(
                f'`compile` is True, or back ends such as ("inductor", "aot_eager"), not {compile!r}.'
            )
        modes.append(one)
    if len(set(modes)) < len(modes):
        raise DefinitionError(f"`compile` names a back end twice: {compile!r}.")
    return tuple(modes)


def _is_plain(name: object) -> bool:
    return isinstance(name, str) and _PLAIN_NAME.fullmatch(name) is not None


@dataclasses.dataclass(frozen=True, repr=False)
class GroupedSetup:
    """What runs before the statements, by language; `global_setup` stands at file scope in C++.

    >>> GroupedSetup(py_setup="    x = torch.ones(4)").py_setup
    'x = torch.ones(4)'
    """

    py_setup: str = ""
    cpp_setup: str = ""
    global_setup: str = ""

    def __repr__(self) -> str:
        return format_fields(self)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            try:
                text = dedent(getattr(self, field.name), field.name)
            except DefinitionError as error:
                # A group that has this setup is broken, and knows under which label.
                text = BrokenText(break_off(error).error)
            object.__setattr__(self, field.name, text)


def check_setup(setup: GroupedSetup) -> GroupedSetup:
    if not isinstance(setup, GroupedSetup):
        raise DefinitionError(f"`setup` is a GroupedSetup, not {type(setup)}.")
    for text in (setup.py_setup, setup.cpp_setup, setup.global_setup):
        if isinstance(text, BrokenText):
            raise text.error
    return setup
