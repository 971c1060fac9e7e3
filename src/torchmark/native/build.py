"""From snippets to libraries: what is in the cache is taken, the rest is compiled in as few files as possible.

A snippet that does not compile costs the others one more run of the compiler, however many such snippets there are.
"""

from __future__ import annotations

import concurrent.futures
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from torchmark.errors import SetupError
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.snippet import Compiled, Snippet
from torchmark.native import compiler
from torchmark.native.cache import Cache
from torchmark.native.compiler import Compiler, Run
from torchmark.native.messages import (
    MOST_ERRORS,
    NAMES,
    Complaint,
    for_the_user,
    read_complaints,
    read_undefined,
)
from torchmark.native.render import (
    FULL_HEADERS,
    LIGHT_HEADERS,
    SCRIPT_HEADERS,
    Entry,
    Unit,
    choose_headers,
    render,
    render_prelude,
)
from torchmark.native.scan import Problem, scan
from torchmark.native.toolchain import Toolchain, digest

# Headers take some fifteen seconds a file, a snippet a tenth of one: so many of them double the time, and are worth
# another file on another core.
SNIPPETS_PER_UNIT = 150

Result: TypeAlias = Compiled | Failure
# In the words of g++ and of clang++, for whom a namespace may have more members yet.
_FINAL = re.compile(r": error: (?:expected |.*has no member named|no member named '[^']*' in '[^']*'$)")
_WORDS = {"stmt": "statement", "setup": "setup", "global": "global setup", "glue": "snippet"}


def build(
    snippets: Iterable[Snippet],
    toolchain: Toolchain,
    cache: Cache,
    environ: Mapping[str, str],
    jobs: int = 1,
    stop: threading.Event | None = None,
) -> dict[Snippet, Result]:
    """Compile whatever is not in the cache yet, at most `jobs` files at a time. What fails is a value.

    Another thread may end this by setting `stop`; it then raises Stopped.
    """
    entries = {snippet: Entry(snippet, toolchain.key(snippet)) for snippet in snippets}
    results: dict[Snippet, Result] = {}
    missing: list[Entry] = []
    for snippet, entry in entries.items():
        found = cache.find(entry.key)
        problem = None if found else find_problem(snippet)
        if found:
            results[snippet] = Compiled(str(found), entry.key)
        elif problem:
            results[snippet] = problem
        else:
            missing.append(entry)
    works = _Works(Compiler(toolchain, environ, stop or threading.Event()), cache)
    for part in works.build_all(plan(missing), jobs):
        results.update(part)
    return {snippet: results[snippet] for snippet in entries}


def precompile(
    toolchain: Toolchain, cache: Cache, environ: Mapping[str, str], headers: Sequence[str] = LIGHT_HEADERS
) -> None:
    """Compile the headers of most snippets, unless that has been done: a new snippet then takes a third of the time."""
    name = name_prelude(toolchain, headers)
    with cache.turn(name):
        if cache.find_prelude(name) is not None:
            return
        with cache.workshop() as folder:
            works = Compiler(toolchain, environ, threading.Event())
            run, states = works.precompile(cache.begin_prelude(name, render_prelude(headers)), folder)
            if run.code != 0:
                raise SetupError(
                    f"torch's headers cannot be compiled: {for_the_user(run.output).strip()}.",
                    missing="compiler",
                    advice="Try another compiler: name it in CXX.",
                )
            cache.publish_prelude(name, folder / "prelude.gch", states)


def name_prelude(toolchain: Toolchain, headers: Sequence[str]) -> str:
    """What a prelude is found by."""
    return digest(toolchain.identity, *headers)


def find_problem(snippet: Snippet) -> Failure | None:
    """What is certainly wrong, and would keep the compiler from seeing where this snippet ends and the next begins."""
    parts = {"global": snippet.global_setup, "setup": snippet.setup, "stmt": snippet.stmt}
    scans = {part: scan(text) for part, text in parts.items()}
    # Macros and conditional lines may close what is open.
    certain = not any(one.directives for one in scans.values())
    for part, one in scans.items():
        problem = one.endless or (one.unbalanced if certain else None)
        if problem:
            return _describe_problem(part, parts[part], problem)
        if "\0" in parts[part]:
            return Failure(FailureKind.NOT_COMPILED, f"The {_WORDS[part]} contains a null character.")
    return None


def _describe_problem(part: str, text: str, problem: Problem) -> Failure:
    line = text.split("\n")[problem.line - 1]
    excerpt = f"{problem.line:>5} | {line}\n      | {' ' * (problem.column - 1)}^"
    told = f"{NAMES[part]}:{problem.line}:{problem.column}: error: {problem.text}\n{excerpt}"
    return Failure(FailureKind.NOT_COMPILED, _sentence(part, problem.line, problem.column, problem.text), told)


def _sentence(part: str, line: int, column: int | None, text: str) -> str:
    place = f"line {line}" if column is None else f"line {line}, column {column}"
    return f"The {_WORDS[part]} does not compile, {place}: {text}."


def plan(entries: Sequence[Entry]) -> list[Unit]:
    """Which snippets go into one file: those with the same global setup, or with one that only includes headers."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(_group_name(entry), []).append(entry)
    units: list[Unit] = []
    for group in groups.values():
        headers = choose_headers([entry.snippet for entry in group])
        count = -(-len(group) // SNIPPETS_PER_UNIT)
        units += [Unit(tuple(group[i::count]), headers) for i in range(count)]
    return units


def _group_name(entry: Entry) -> str:
    snippet = entry.snippet
    if any(scan(text).unbalanced for text in (snippet.global_setup, snippet.setup, snippet.stmt)):
        # Perhaps a macro makes it right. If not, nobody else shall suffer.
        return entry.key
    one = scan(snippet.global_setup)
    only_includes = not one.has_code and len(one.includes) == one.directives
    return "" if only_includes and all(name.startswith("<") for name in one.includes) else snippet.global_setup


class _Attempt(NamedTuple):
    """What compiling a unit came to: a library, or whose fault it is by number, or nobody's. Or there is no hope."""

    library: Path | None
    guilty: dict[int, Failure]
    problem: str
    hopeless: bool = False


class _Works:
    """Compiles units."""

    def __init__(self, works: Compiler, cache: Cache) -> None:
        self._compiler = works
        self._cache = cache

    def build_all(self, units: Sequence[Unit], jobs: int) -> Iterator[dict[Snippet, Result]]:
        """Several at a time; one that is alone needs no threads."""
        if len(units) <= 1 or jobs <= 1:
            yield from (self.build(unit) for unit in units)
            return
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(self.build, unit) for unit in units]
            try:
                yield from (future.result() for future in concurrent.futures.as_completed(futures))
            except BaseException:
                self._compiler.stop()
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def build(self, unit: Unit) -> dict[Snippet, Result]:
        """Compile one unit; if another process is doing the same, wait for it and take what it made."""
        with self._cache.turn(digest(*(entry.key for entry in unit.entries))):
            results: dict[Snippet, Result] = {}
            for snippet, key in unit.entries:
                if found := self._cache.find(key):
                    results[snippet] = Compiled(str(found), key)
            rest = tuple(entry for entry in unit.entries if entry.snippet not in results)
            if rest:
                results.update(self._build_new(Unit(rest, unit.headers)))
            return results

    def _build_new(self, unit: Unit) -> dict[Snippet, Result]:
        if not unit.entries:
            return {}
        attempt = self._try(unit)
        if attempt.hopeless:
            return {snippet: Failure(FailureKind.NOT_COMPILED, attempt.problem) for snippet, _ in unit.entries}
        if attempt.library is not None:
            return {snippet: Compiled(str(self._cache.path(key)), key) for snippet, key in unit.entries}
        is_light = unit.headers == LIGHT_HEADERS
        rest = tuple(entry for number, entry in enumerate(unit.entries) if number not in attempt.guilty)
        if attempt.guilty:
            results = self._build_new(Unit(rest, unit.headers))
            doubtful: list[Entry] = []
            for number, failure in attempt.guilty.items():
                # Perhaps it is the headers that are to blame.
                if is_light and not _is_final(failure):
                    doubtful.append(unit.entries[number])
                else:
                    results[unit.entries[number].snippet] = failure
            return {**results, **self._build_new(_with_all_headers(tuple(doubtful)))}
        if is_light:
            return self._build_new(_with_all_headers(rest))
        if len(rest) == 1:
            return {rest[0].snippet: Failure(FailureKind.NOT_COMPILED, "It does not compile.", attempt.problem)}
        half = len(rest) // 2
        halves = (Unit(rest[:half], unit.headers), Unit(rest[half:], unit.headers))
        return {snippet: result for one in halves for snippet, result in self._build_new(one).items()}

    def _try(self, unit: Unit) -> _Attempt:
        with self._cache.workshop() as folder:
            rendered = render(unit)
            prelude = self._cache.find_prelude(name_prelude(self._compiler.toolchain, unit.headers))
            run, headers = self._compiler.compile(rendered, folder, prelude)
            if run.code != 0:
                return _blame_compiling(unit, run)
            run = self._compiler.link(folder, complete=True)
            if run.code != 0 and "undefined" in run.output and not read_undefined(run.output):
                run = self._compiler.link(folder, complete=False)
            if run.code != 0:
                return _blame_linking(unit, run)
            library = folder / "unit.so"
            self._cache.publish(library, headers, [entry.key for entry in unit.entries])
            return _Attempt(library, {}, "")


def _is_final(failure: Failure) -> bool:
    """Whether no header could help: the syntax is wrong, or a class has no such member."""
    return any(_FINAL.search(line) for line in (failure.traceback or "").splitlines())


def _with_all_headers(entries: tuple[Entry, ...]) -> Unit:
    return Unit(entries, FULL_HEADERS + SCRIPT_HEADERS)


def _blame_compiling(unit: Unit, run: Run) -> _Attempt:
    if run.timed_out:
        problem = f"The compiler did not end within {compiler.TIMEOUT_S:g} s."
        return _Attempt(None, {}, problem, hopeless=len(unit.entries) == 1)
    if run.code < 0 or "Killed signal" in run.output or "cannot allocate memory" in run.output.lower():
        # Another try would end the same way.
        problem = "The compiler was ended, most likely for want of memory: a file takes about 2 GB."
        return _Attempt(None, {}, problem, hopeless=True)
    by_number: dict[int, list[Complaint]] = {}
    for complaint in read_complaints(run.output):
        if complaint.snippet is not None and complaint.snippet < len(unit.entries):
            by_number.setdefault(complaint.snippet, []).append(complaint)
    guilty: dict[int, Failure] = {}
    for number, found in by_number.items():
        # What is wrong with our own lines is so because of the user's, where there is anything wrong with those.
        complaints = [one for one in found if one.place is None or one.place.part != "glue"] or found
        failure = _describe(complaints)
        at_file_scope = complaints[0].place is not None and complaints[0].place.part == "global"
        for other, entry in enumerate(unit.entries):
            same = entry.snippet.global_setup == unit.entries[number].snippet.global_setup
            if other == number or (at_file_scope and same):
                guilty.setdefault(other, failure)
    return _Attempt(None, guilty, for_the_user(run.output))


def _describe(complaints: Sequence[Complaint]) -> Failure:
    first = complaints[0]
    text = for_the_user("\n".join(one.text for one in complaints[:MOST_ERRORS]))
    message = f"It does not compile: {first.summary}."
    if first.place is not None:
        message = _sentence(first.place.part, first.place.line, first.place.column, first.summary)
    return Failure(FailureKind.NOT_COMPILED, message, text)


def _blame_linking(unit: Unit, run: Run) -> _Attempt:
    missing = read_undefined(run.output)
    if not missing:
        return _Attempt(None, {}, run.output)
    guilty: dict[int, Failure] = {}
    for number, entry in enumerate(unit.entries):
        # What functions at file scope miss, everyone misses.
        names = dict.fromkeys(one.symbol for one in missing if one.key in (None, entry.key))
        if names:
            text = f"It does not link: nothing defines {', '.join(names)}."
            guilty[number] = Failure(FailureKind.NOT_COMPILED, text)
    return _Attempt(None, guilty, run.output)
