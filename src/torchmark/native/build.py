"""From snippets to libraries: what is in the cache is taken, the rest is compiled in as few files as possible.

Snippets that do not compile cost the others one more run of the compiler, however many they are, unless it cannot tell
whose fault it is. Then halves are tried.
"""

from __future__ import annotations

import concurrent.futures
import re
import shlex
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from torchmark.errors import SetupError
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.task import Compiled, Snippet
from torchmark.native.blame import (
    Attempt,
    Blame,
    blame_compiling,
    blame_linking,
    find_problem,
    for_the_user,
    read_undefined,
)
from torchmark.native.cache import Cache
from torchmark.native.render import (
    FULL_HEADERS,
    LIGHT_HEADERS,
    SCRIPT_HEADERS,
    CompileUnit,
    KeyedSnippet,
    choose_headers,
    render,
    render_prelude,
    scan,
)
from torchmark.native.toolchain import Compiler, Toolchain, digest

# Headers take some fifteen seconds a file, a snippet a tenth of one: so many of them double the time, and are worth
# another file on another core.
SNIPPETS_PER_UNIT = 150

# Somebody may remove the cache while something is compiled there. Once is bad luck.
ATTEMPTS = 2

Result: TypeAlias = Compiled | Failure


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
    entries = {snippet: KeyedSnippet(snippet, toolchain.key(snippet)) for snippet in snippets}
    results: dict[Snippet, Result] = {}
    missing: list[KeyedSnippet] = []
    for snippet, entry in entries.items():
        if found := cache.find(entry.key):
            results[snippet] = Compiled(str(found), entry.key)
        elif problem := find_problem(snippet):
            results[snippet] = problem
        else:
            missing.append(entry)
    if missing:
        works = _Works(Compiler(toolchain, environ, stop or threading.Event()), cache)
        # In an order of its own: whoever builds the same makes the same library.
        for part in works.build_all(plan(sorted(missing, key=lambda entry: entry.key)), jobs):
            results.update(part)
        cache.evict(spared=[Path(one.library) for one in results.values() if isinstance(one, Compiled)])
    return {snippet: results[snippet] for snippet in entries}


def precompile(toolchain: Toolchain, cache: Cache, environ: Mapping[str, str]) -> None:
    """Compile the headers of most snippets, unless that has been done: a new snippet then takes a third of the time."""
    name = name_prelude(toolchain, LIGHT_HEADERS)
    with cache.turn(name):
        if cache.find_prelude(name) is not None:
            return
        with cache.workshop() as folder:
            prelude = cache.begin_prelude(name, render_prelude(LIGHT_HEADERS))
            run, states = Compiler(toolchain, environ, threading.Event()).precompile(prelude, folder)
            if run.code != 0:
                raise SetupError(
                    f"torch's headers cannot be compiled: {for_the_user(run.output).strip()}.",
                    missing="compiler",
                    advice="Try another compiler: name it in CXX.",
                )
            cache.publish_prelude(name, folder / "prelude.gch", states)


def name_prelude(toolchain: Toolchain, headers: Sequence[str]) -> str:
    return digest(toolchain.identity, *headers)


def plan(entries: Sequence[KeyedSnippet]) -> list[CompileUnit]:
    """Which snippets go into one file: those with the same global setup, or with one that only includes headers."""
    groups: dict[str, list[KeyedSnippet]] = {}
    for entry in entries:
        groups.setdefault(_group_name(entry), []).append(entry)
    units: list[CompileUnit] = []
    for group in groups.values():
        headers = choose_headers([entry.snippet for entry in group])
        count = -(-len(group) // SNIPPETS_PER_UNIT)
        units += [CompileUnit(tuple(group[i::count]), headers) for i in range(count)]
    return units


def _group_name(entry: KeyedSnippet) -> str:
    snippet = entry.snippet
    around, setup, stmt = scan(snippet.global_setup), scan(snippet.setup), scan(snippet.stmt)
    # Perhaps a macro makes brackets right. If not, nobody else shall suffer; nor from what reaches further.
    if any(one.unbalanced for one in (around, setup, stmt)) or setup.far_reaching or stmt.far_reaching:
        return entry.key
    only_includes = not around.has_code and len(around.includes) == around.directives
    # All may see torch's own headers, and those of C++, which define hardly any macros.
    is_harmless = only_includes and all(re.match(r"<(torch/|ATen/|c10/|[^.]*$)", name) for name in around.includes)
    return "" if is_harmless else snippet.global_setup


class _Works:
    def __init__(self, compiler: Compiler, cache: Cache) -> None:
        self._compiler = compiler
        self._cache = cache

    def build_all(self, units: Sequence[CompileUnit], jobs: int) -> Iterator[dict[Snippet, Result]]:
        """Several at a time; one that is alone needs no threads."""
        if len(units) <= 1 or jobs <= 1:
            yield from (self.build(unit) for unit in units)
            return
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(self.build, unit) for unit in units]
            try:
                yield from (future.result() for future in concurrent.futures.as_completed(futures))
            except BaseException:
                self._compiler.stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def build(self, unit: CompileUnit) -> dict[Snippet, Result]:
        """Compile one unit; if another process is doing the same, wait for it and take what it made."""
        with self._cache.turn(digest(*(entry.key for entry in unit.entries)), self._compiler.stop.is_set):
            results: dict[Snippet, Result] = {
                snippet: Compiled(str(found), key) for snippet, key in unit.entries if (found := self._cache.find(key))
            }
            rest = tuple(entry for entry in unit.entries if entry.snippet not in results)
            return {**results, **self._build_new(CompileUnit(rest, unit.headers))}

    def _build_new(self, unit: CompileUnit) -> dict[Snippet, Result]:
        if not unit.entries:
            return {}
        attempt = self._try(unit)
        if attempt.killed:
            attempt = self._try(unit)
        if attempt.blame is Blame.NOBODY:
            return {snippet: Compiled(str(self._cache.path(key)), key) for snippet, key in unit.entries}
        if attempt.blame is Blame.OUR_MEANS:
            return {snippet: Failure(FailureKind.MISSING, attempt.problem) for snippet, _ in unit.entries}
        if attempt.blame is Blame.SOME:
            return self._build_without(unit, attempt)
        if unit.headers == LIGHT_HEADERS:
            return self._build_new(CompileUnit(unit.entries, FULL_HEADERS + SCRIPT_HEADERS))
        if len(unit.entries) == 1:
            failure = Failure(FailureKind.NOT_COMPILED, "It does not compile.", attempt.problem)
            return {unit.entries[0].snippet: failure}
        half = len(unit.entries) // 2
        first, second = (unit._replace(entries=part) for part in (unit.entries[:half], unit.entries[half:]))
        return {**self._build_new(first), **self._build_new(second)}

    def _build_without(self, unit: CompileUnit, attempt: Attempt) -> dict[Snippet, Result]:
        """Those that are not to blame, and those that may not be."""
        rest = tuple(entry for number, entry in enumerate(unit.entries) if number not in attempt.guilty)
        results = self._build_new(CompileUnit(rest, unit.headers))
        doubtful: list[KeyedSnippet] = []
        for number, verdict in attempt.guilty.items():
            # Perhaps it is the headers that are to blame.
            if unit.headers == LIGHT_HEADERS and not verdict.final:
                doubtful.append(unit.entries[number])
            else:
                results[unit.entries[number].snippet] = verdict.failure
        return {**results, **self._build_new(CompileUnit(tuple(doubtful), FULL_HEADERS + SCRIPT_HEADERS))}

    def _try(self, unit: CompileUnit) -> Attempt:
        for _ in range(ATTEMPTS):
            with self._cache.workshop() as folder:
                try:
                    attempt = self._make(unit, folder)
                    # If its files were removed meanwhile, what the compiler has said is not the snippets' fault.
                    if attempt.blame is Blame.NOBODY or _is_there(folder):
                        return attempt
                except OSError as error:
                    if isinstance(error, SetupError):
                        raise
                    if _is_there(folder):
                        raise SetupError(
                            f"Compiling in {self._cache.folder} fails: {error.strerror or error}.",
                            missing="cache",
                            advice="Is the disk full? TORCHMARK_CACHE names another folder.",
                        ) from error
        raise SetupError(
            f"{self._cache.folder} was removed while something was compiled there.",
            missing="cache",
            advice="Try again, or name another folder in TORCHMARK_CACHE.",
        )

    def _make(self, unit: CompileUnit, folder: Path) -> Attempt:
        toolchain = self._compiler.toolchain
        prelude = self._cache.find_prelude(name_prelude(toolchain, unit.headers))
        own_headers = any(toolchain.includes_own(entry.snippet) for entry in unit.entries)
        run, headers = self._compiler.compile(render(unit), folder, prelude, own_headers)
        if run.code != 0:
            return blame_compiling(unit, run)
        run = self._compiler.link(folder, complete=True)
        if run.code != 0 and "undefined" in run.output and not read_undefined(run.output):
            run = self._compiler.link(folder, complete=False)
        if run.code != 0:
            return blame_linking(unit, run)
        library = folder / "unit.so"
        content = library.read_bytes() if library.exists() else b""
        symbols = (f"torchmark_{kind}{key}\0".encode() for _, key in unit.entries for kind in ("", "empty_"))
        if not all(symbol in content for symbol in symbols):
            return Attempt(Blame.UNKNOWN, {}, f"{shlex.join(toolchain.compiler)} made a library without the snippet.")
        self._cache.publish(library, headers, [entry.key for entry in unit.entries])
        return Attempt(Blame.NOBODY)


def _is_there(workshop: Path) -> bool:
    return (workshop / "owner").exists() and (workshop / "unit.cpp").exists()
