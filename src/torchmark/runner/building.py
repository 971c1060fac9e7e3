"""Compiles snippets for a torch, with the compiler, the cache and the cores that this process has."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from torchmark.errors import SetupError, UsageError
from torchmark.model.outcome import Failure
from torchmark.model.sdk import Sdk
from torchmark.model.snippet import Compiled, Snippet
from torchmark.native.build import build, precompile
from torchmark.native.cache import DEFAULT_LIMIT_BYTES, Cache, parse_size
from torchmark.native.toolchain import find_compiler, make_toolchain
from torchmark.runner.artefacts import Models
from torchmark.runner.folders import SHIPPING, SNIPPETS, cache_folder, clear_tools, locate_cache
from torchmark.runner.machine import read_available_memory

# What the compiler takes for torch's headers, with some to spare.
MEMORY_PER_UNIT_BYTES = 2 * 1024**3


def build_snippets(
    snippets: Iterable[Snippet],
    sdk: Sdk,
    environ: Mapping[str, str],
    stop: threading.Event | None = None,
    jobs: int | None = None,
) -> dict[Snippet, Compiled | Failure]:
    """Compile them, or take them from the cache. SetupError if there is no compiler or torch has no headers.

    At most `jobs` compilers run at a time, where it is given, and never more than memory is for.
    """
    try:
        folder = os.getcwd()
    except OSError:
        folder = "/"
    toolchain = make_toolchain(sdk, environ, folder)
    return build(snippets, toolchain, open_cache(environ, create=True), environ, count_jobs(jobs), stop)


def has_compiler(environ: Mapping[str, str]) -> bool:
    """Whether there is one, whatever it is good for."""
    try:
        find_compiler(environ)
    except (SetupError, UsageError):
        return False
    return True


@dataclasses.dataclass(frozen=True)
class CacheState:
    """What is in the cache, and how much may be."""

    folder: str
    snippets: int
    libraries: int
    preludes: int
    size_bytes: int
    limit_bytes: int


def inspect_cache(environ: Mapping[str, str]) -> CacheState:
    """Look at the cache without changing it."""
    cache = open_cache(environ)
    usage = cache.measure()
    return CacheState(str(cache.folder.parent), *usage, limit_bytes=cache.limit_bytes)


def clear_cache(environ: Mapping[str, str]) -> CacheState:
    """Empty it: all that torchmark has compiled there goes, and nothing else. Gives what there was."""
    state = inspect_cache(environ)
    folder = Path(state.folder)
    for name in (SNIPPETS, SHIPPING):
        Cache(folder / name).clear()
    Models(environ).clear()
    clear_tools(folder)
    return state


def warm_cache(sdk: Sdk, environ: Mapping[str, str]) -> None:
    """Compile torch's headers ahead."""
    precompile(make_toolchain(sdk, environ, "/"), open_cache(environ, create=True), environ)


def open_cache(environ: Mapping[str, str], *, create: bool = False) -> Cache:
    """The cache of compiled snippets; `TORCHMARK_CACHE_SIZE` bounds it."""
    limit = environ.get("TORCHMARK_CACHE_SIZE")
    folder = cache_folder(environ) if create else locate_cache(environ)
    return Cache(folder / SNIPPETS, parse_size(limit) if limit else DEFAULT_LIMIT_BYTES)


def count_jobs(wanted: int | None = None) -> int:
    """How many compilers may run at the same time: one a core, as far as memory goes."""
    cores = wanted or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = read_available_memory()
    return max(1, cores if memory is None else min(cores, memory // MEMORY_PER_UNIT_BYTES))
