"""Finding benchmarks: the suites that come along by name, users' own files by path.

One file that does not load, or one group that is not well defined, hides nothing else: faults are gathered.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import itertools
import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from torchmark.define.expand import Benchmark, expand, flatten
from torchmark.define.options import Broken, gather
from torchmark.define.selection import nearest
from torchmark.errors import DefinitionError, UsageError, point
from torchmark.model.plan import Case, Fault, Label

# Files below a folder that define benchmarks.
PATTERN = "bench_*.py"
# What a file defines them in, and whether results of variants are compared where a group does not say.
DEFINITIONS = "BENCHMARKS"
CHECK = "CHECK"

_SUITES = Path(__file__).parents[1] / "suites"
_numbers = itertools.count(1)


@dataclasses.dataclass(frozen=True)
class Discovered:
    """The cases that were found, and what is wrong with others."""

    cases: tuple[Case, ...]
    faults: tuple[Fault, ...]


def discover(names: Sequence[str], *, check: bool | None = None) -> Discovered:
    """Suites by name, files by path, folders by their bench_*.py below. UsageError for a name that is none of these.

    check: whether results of variants are compared where a group does not say; None leaves it to each file.
    """
    cases: list[Case] = []
    faults: list[Fault] = []
    for name, path, is_file in list(_find(names)):
        found = _load(name, path, check, is_file=is_file)
        cases += found.cases
        faults += found.faults
    return Discovered(tuple(cases), tuple(faults))


def list_suites() -> tuple[str, ...]:
    """The names of the suites that come along: modules, and packages."""
    places = (*_SUITES.glob("*.py"), *(path.parent for path in _SUITES.glob("*/__init__.py")))
    return tuple(sorted(path.stem for path in places if not path.stem.startswith("_")))


def _load(name: str, path: str, check: bool | None, *, is_file: bool) -> Discovered:
    flat: Mapping[Label, Benchmark] = {}
    faults: list[Fault] = []
    with gather(path) as gathered:
        try:
            module = import_file(path) if is_file else importlib.import_module(f"torchmark.suites.{name}")
            check = _read_check(module) if check is None else check
            definitions = getattr(module, DEFINITIONS, None)
            if isinstance(definitions, Mapping):
                flat = flatten(definitions)
            else:
                faults.append(_explain_absence(name, definitions))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            faults.append(_explain_failure(name, path, error))
            if isinstance(error, DefinitionError):
                # It is told now; no second time as one whose place is lost.
                gathered.lines.pop(error, None)
    cases, wrong = _expand_all(flat, name, bool(check))
    wrong = [*gathered.faults, *wrong]
    # A group that two dictionaries have under one label, or a text that was cut, does not get here by itself.
    wrong += [((), error) for error in gathered.lines if all(error is not other for _, other in wrong)]
    faults += [Fault(name, label, str(error), error.advice, line=gathered.lines.get(error)) for label, error in wrong]
    return Discovered(tuple(cases), tuple(faults))


def _expand_all(
    flat: Mapping[Label, Benchmark], suite: str, check: bool
) -> tuple[list[Case], list[tuple[Label, DefinitionError]]]:
    """The cases of all that is well defined, and what is wrong with others."""
    cases: list[Case] = []
    wrong: list[tuple[Label, DefinitionError]] = []
    for label, benchmark in flat.items():
        try:
            if isinstance(benchmark, Broken):
                raise benchmark.error
            cases += expand({label: benchmark}, suite=suite, check=check)
        except DefinitionError as error:
            wrong.append((label, error))
    return cases, wrong


def _read_check(module: ModuleType) -> bool:
    found = getattr(module, CHECK, False)
    if not isinstance(found, bool):
        raise DefinitionError(f"{CHECK} is True or False, not {found!r}.")
    return found


def _find(names: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """Suites to load: name, absolute path (another suite may change the working folder), and whether it is a file."""
    seen: set[Path] = set()
    for name in dict.fromkeys(names):
        if name in list_suites():
            module = _SUITES / f"{name}.py"
            yield name, str(module if module.exists() else _SUITES / name / "__init__.py"), False
            continue
        for path in _find_files(name):
            if path.resolve() not in seen:
                seen.add(path.resolve())
                yield str(path), os.path.abspath(path), True


def _find_files(name: str) -> list[Path]:
    if not name:
        # A variable that is not set, more often than the folder one is in.
        raise UsageError("An empty name is no suite, file or folder. The folder you are in is '.'.")
    path = Path(name)
    if path.is_file():
        return [path]
    if not path.is_dir():
        known = list_suites()
        meant = nearest(name, known)
        hint = f" Did you mean {meant[0]}?" if meant else ""
        raise UsageError(f"{name!r} is neither a suite nor a file or folder.{hint}\nThe suites are {', '.join(known)}.")
    files = sorted(
        file
        for file in path.rglob(PATTERN)
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    if not files:
        raise UsageError(f"There is no {PATTERN} in the folder {name!r} or below. Name a file, or rename yours.")
    return files


def import_file(path: str) -> ModuleType:
    """Run a file as a module of its own, which finds what lies beside it."""
    module = ModuleType(f"torchmark_suite_{next(_numbers)}")
    module.__file__ = path
    # Dataclasses look for their module by its name.
    sys.modules[module.__name__] = module
    folder, process = os.getcwd(), os.getpid()
    with _beside(os.path.dirname(path)):
        try:
            exec(compile(Path(path).read_bytes(), path, "exec", dont_inherit=True), module.__dict__)
        finally:
            if os.getpid() != process:
                # A child that it has forked and not ended; the parent goes on.
                os._exit(0)
            os.chdir(folder)
    return module


@contextlib.contextmanager
def _beside(folder: str) -> Iterator[None]:
    """Within this, modules of the folder can be imported; another folder may have others of the same names."""
    elsewhere, known = folder in sys.path, set(sys.modules)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        # The file may have changed the list itself.
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)
        new = () if elsewhere else set(sys.modules) - known
        for name in [name for name in new if _lies_in(folder, sys.modules.get(name.partition(".")[0]))]:
            del sys.modules[name]


def _lies_in(folder: str, module: ModuleType | None) -> bool:
    """Whether it is a module, or a package, of this very folder."""
    places: list[str] = [*getattr(module, "__path__", ()), getattr(module, "__file__", None) or ""]
    return os.path.dirname(places[0]) == folder


def _explain_absence(file: str, found: object) -> Fault:
    problem = "There is no" if found is None else f"{type(found)} is not a dictionary:"
    advice = f'Define {DEFINITIONS} = {{"label": GroupedStmts(...), ...}}.'
    return Fault(file, (), f"{problem} {DEFINITIONS}.", advice)


def _explain_failure(file: str, path: str, error: BaseException) -> Fault:
    """A file that does not even load: the error, and the line of the file where it came from."""
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    # A file that this one imports may have such an error, too.
    if isinstance(error, SyntaxError) and error.filename == path:
        where = point(error.text.rstrip("\n"), max((error.offset or 1) - 1, 0)) if error.text else ""
        problem = f"It is not Python: {error.msg}.\n{where}".rstrip()
        return Fault(file, (), problem, "Correct the line.", line=error.lineno)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    advice = "The file is run to find its benchmarks: see that `python` can run it."
    if isinstance(error, ModuleNotFoundError):
        advice = f"Install {error.name}, or run torchmark in the environment that has it."
    return Fault(file, (), f"It does not load: {text}", advice, line=lines[-1] if lines else None)


DEFAULT_SUITES = ("standard",)
