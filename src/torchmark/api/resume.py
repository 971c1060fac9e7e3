"""Which run of a store goes on: the newest that fits what is asked for, and whether it may start what it names."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
from collections.abc import Collection, Hashable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from torchmark.analysis.estimate import Estimate, History, estimate
from torchmark.api.runs import (
    DICTIONARY,
    FOLDER,
    NAMES,
    PROGRAM,
    TYPES,
    RunRequest,
    identify_order,
    list_sealed,
    locate_folder,
    locate_programs,
    resolve_names,
)
from torchmark.define.discovery import list_suites
from torchmark.define.selection import CaseOptions
from torchmark.errors import UsageError
from torchmark.model.outcome import Failure, may_pass_later
from torchmark.model.plan import Case, Plan, Target
from torchmark.model.run import SHARD, RunInfo, read_shard
from torchmark.report.text.run_summary import SHORT_ID
from torchmark.report.text.terminal import printable
from torchmark.runner.machine import read_cpu_model
from torchmark.store.plain import content_hash
from torchmark.store.runs import DEFAULT_STORE, Store, is_sealed, open_store

_SELECTING = {field.name for field in dataclasses.fields(CaseOptions)}
# What stays as it was when a run goes on, and how it is spelt.
_FIXED_OPTIONS = {
    "metrics": "--metric",
    "repeat": "--repeat",
    "min_run_time": "--min-run-time",
    "layouts": "--layouts",
}


class ResumableRun(NamedTuple):
    """A run to go on with."""

    info: RunInfo
    request: RunRequest
    """What was asked for when it began."""
    sees_folder: bool
    """Whether its cases may import what lies in the working folder: the user began it here, or names its benchmarks."""


def find_resumable(
    store: Store, request: RunRequest, given: Collection[str], name: str | None, cases: Sequence[Case] = ()
) -> ResumableRun:
    """The newest run that fits the options on the command line, or the one that is named.

    What is measured and how stays what it was; only the time limit may be another. A run that this user did not begin
    here, as far as can be shown, starts and imports nothing but what stands on the command line. `cases` are those of
    a dictionary, which have to be the same.
    """
    candidates = store.list_runs() if name is None else _list_named(store, name, given)
    if not candidates:
        raise UsageError("There is no run to go on with.")
    problem = ""
    for info in candidates:
        earlier = _read_request(info, store.load(info.id, select=lambda _: False).plan)
        # Who names a run means it, wherever it began.
        differences = [*_began_elsewhere(info, earlier, store.path)] if name is None else []
        differences += _differ(request, earlier, given)
        if cases and DICTIONARY in earlier.program:
            # Of a dictionary there is no file.
            before = [content_hash(case) for case in store.load(info.id).plan.cases]
            differences += ["has other cases"] if before != [content_hash(case) for case in cases] else []
        if not differences:
            sealed = is_sealed(info.seal, list_sealed(info.id, earlier), os.environ)
            if not sealed:
                _refuse_unnamed(info, earlier, given, store.path)
            timeout = request.timeout if "timeout" in given else earlier.timeout
            return ResumableRun(info, dataclasses.replace(earlier, timeout=timeout), sealed or NAMES in given)
        problem = problem or f"{info.name} ({info.id[:8]}) {differences[0]}"
    raise UsageError(
        f"There is no run to go on with that fits: {problem}. A run goes on as it began, and where: leave "
        "other options out, say with --name which run you mean, or begin a new one without --resume."
    )


def _list_named(store: Store, name: str, given: Collection[str]) -> tuple[RunInfo, ...]:
    """The run that is meant. Shards of a run share its name: where one is asked for, all runs of that name."""
    found = store.find(name)
    if SHARD not in given or found.name != name:
        return (found,)
    return tuple(info for info in store.list_runs() if info.name == name)


def _read_request(info: RunInfo, plan: Plan) -> RunRequest:
    options, sampling = dict(info.options), plan.sampling
    chosen = CaseOptions(**{name: values for name, values in options.items() if name in _SELECTING})
    try:
        chosen.select()
    except (KeyError, ValueError) as error:
        # It may have been made by another version, or by anybody.
        raise UsageError(f"The run {info.id} cannot be resumed: its selection means nothing here.") from error
    return RunRequest(
        names=options.get(NAMES, ()),
        chosen=chosen,
        metrics=sampling.metrics,
        targets=plan.targets,
        repeat=sampling.repeat,
        min_run_time=sampling.min_run_time_s,
        layouts=len(sampling.layouts),
        timeout=sampling.timeout_s,
        number=sampling.number,
        blocks=sampling.blocks,
        types=options.get(TYPES, ()),
        shard=read_shard(info),
        program=options.get(PROGRAM, ()),
    )


def _began_elsewhere(info: RunInfo, earlier: RunRequest, store_path: Path) -> Iterator[str]:
    """Where a run began, if it was not here: files of the same names are others there, and so are the times."""
    if info.host.cpu_model != read_cpu_model(Path("/")):
        yield f"was begun on another machine ({info.host.cpu_model})"
    folder = next(iter(dict(info.options).get(FOLDER, ())), None)
    has_files = not set(earlier.names) <= set(list_suites())
    if folder is not None and has_files and folder != locate_folder(store_path):
        there = os.path.normpath(os.path.join(os.path.dirname(os.path.realpath(store_path)), folder))
        yield f"was begun in another folder ({there})"


def _list_files(names: Sequence[str]) -> list[str]:
    """The files and folders among these that are imported."""
    return [path for name, path in zip(names, resolve_names(names), strict=True) if name not in list_suites()]


def _refuse_unnamed(info: RunInfo, earlier: RunRequest, given: Collection[str], store_path: Path) -> None:
    """Start nothing, and import nothing, that only the store names: it may be a stranger's."""
    own = os.path.abspath(sys.executable)
    unnamed = [] if NAMES in given else [f"import {path}" for path in _list_files(earlier.names)]
    if not {"python", "envs"} & set(given):
        unnamed += [f"start {path}" for _, path in locate_programs(earlier.targets) if path != own]
    if unnamed:
        lines = "".join(f"\n  {printable(line)}" for line in dict.fromkeys(unnamed))
        raise UsageError(
            f"Nothing was started. The run {printable(info.name)} ({info.id[:SHORT_ID]}) would{lines}\n"
            "and nothing shows that you began it on this machine, in this folder. If you trust all of this, name it "
            f"again:\n  {format_resume(info, earlier.targets, store_path)}"
        )


def format_resume(info: RunInfo, targets: Sequence[Target], store_path: Path) -> str:
    """The command that goes on with a run wherever it began, with all that it starts and imports named."""
    names = dict(info.options).get(NAMES, ())
    words = ["torchmark", "run", *(names if _list_files(names) else ()), "--resume", "--name", info.id[:SHORT_ID]]
    programs = locate_programs(targets)
    if any(path != os.path.abspath(sys.executable) for _, path in programs):
        for target, (name, path) in zip(targets, programs, strict=True):
            # A lone interpreter without a name is the one of --python.
            words += ["--env", f"{name}={target.python or path}"] if name else []
            words += ["--python", target.python] if target.python and not name else []
    if os.path.abspath(store_path) != os.path.abspath(DEFAULT_STORE):
        words += ["--store", str(store_path)]
    return printable(shlex.join(words))


def _differ(request: RunRequest, earlier: RunRequest, given: Collection[str]) -> Iterator[str]:
    """What was asked for otherwise then, of all that is asked for now."""
    if NAMES in given and resolve_names(request.names) != resolve_names(earlier.names):
        yield f"has benchmarks {' '.join(earlier.names)}, not {' '.join(request.names)}"
    if earlier.types:
        yield f"has types that only 'torchmark overrides' knows ({', '.join(earlier.types)})"
    if request.program != earlier.program:
        yield (
            f"was begun by torchmark.run_benchmarks ({', '.join(earlier.program)})"
            if earlier.program
            else f"was begun without {', '.join(request.program)}"
        )
    if _SELECTING & set(given) and request.chosen != earlier.chosen:
        yield "has another selection of cases"
    for option, spelt in _FIXED_OPTIONS.items():
        if option in given and getattr(request, option) != getattr(earlier, option):
            yield f"has another {spelt}"
    if SHARD in given and request.shard != earlier.shard:
        yield f"is {f'shard {earlier.shard}' if earlier.shard else 'no shard'}, not shard {request.shard}"
    if {"python", "envs"} & set(given) and locate_programs(request.targets) != locate_programs(earlier.targets):
        yield "has other interpreters"


@dataclasses.dataclass(frozen=True)
class Forecast:
    """What a run would begin with: its request, and what the store knows of it."""

    request: RunRequest
    sees_folder: bool = True
    history: History = dataclasses.field(default_factory=dict)
    settled: frozenset[Hashable] = frozenset()
    """The orders of an earlier run whose outcomes stay."""

    def estimate(self, plan: Plan, cores: int) -> Estimate:
        orders = [order for order in plan.orders if identify_order(order) not in self.settled]
        return estimate(orders, plan.sampling, self.history, cores)


def look_ahead(request: RunRequest, store_path: Path, given: Collection[str] | None, name: str | None) -> Forecast:
    """What is known before a run begins; before one goes on, where the options of the command are `given`.

    This leaves no trace: where there is no store yet, there is none afterwards.
    """
    if given is None and not store_path.exists():
        return Forecast(request)
    with open_store(store_path, read_only=True) as store:
        if given is None:
            return Forecast(request, history=store.durations(request.make_plan(()).sampling))
        info, request, sees_folder = find_resumable(store, request, given, name)
        earlier = store.load(info.id)
        longer = request.timeout > earlier.plan.sampling.timeout_s
        settled = frozenset(
            identify_order(one.order)
            for one in earlier.outcomes
            if not (isinstance(one.result, Failure) and may_pass_later(one.result, longer=longer))
        )
        return Forecast(request, sees_folder, store.durations(request.make_plan(()).sampling), settled)
