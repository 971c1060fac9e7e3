"""From the options of `torchmark run` to a plan; and back from a run that is known, to go on with it."""

from __future__ import annotations

import dataclasses
import os
import shlex
import shutil
import sys
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from torchmark import __version__
from torchmark.api.counter import choose_layouts
from torchmark.cli.sealing import is_sealed, seal
from torchmark.cli.selecting import Options
from torchmark.define.discovery import DEFAULT_SUITES, list_suites
from torchmark.errors import UsageError
from torchmark.model.case import Case
from torchmark.model.plan import Metric, Plan, Sampling, Target
from torchmark.model.run import RunInfo
from torchmark.model.shard import SHARD, Shard, read_shard
from torchmark.report.closing import SHORT_ID
from torchmark.report.printable import printable
from torchmark.runner.host import describe_host, describe_sources
from torchmark.runner.machine import read_cpu_model
from torchmark.runner.variables import FIXED
from torchmark.store.runs import DEFAULT_STORE, Store

NAMES = "names"
FOLDER = "folder"
TYPES = "types"
# What stays as it was when a run goes on, and how it is spelt.
_FIXED_OPTIONS = {
    "metrics": "--metric",
    "repeat": "--repeat",
    "min_run_time": "--min-run-time",
    "layouts": "--layouts",
}


@dataclasses.dataclass(frozen=True)
class Wish:
    """What a user asks for."""

    names: tuple[str, ...]
    chosen: Options
    metrics: tuple[Metric, ...]
    targets: tuple[Target, ...]
    repeat: int
    min_run_time: float
    layouts: int
    timeout: float
    number: int | None = None
    """Runs in a block, where that is fixed; and how many blocks."""
    blocks: int | None = None
    types: tuple[str, ...] = ()
    """Types of the user's, which `torchmark overrides` was given."""
    shard: Shard | None = None
    """The part of the plan that is to be carried out; None for all of it."""

    def make_plan(self, cases: Sequence[Case]) -> Plan:
        """What that means for these cases."""
        sampling = Sampling(
            self.metrics,
            self.min_run_time,
            choose_layouts(self.layouts),
            self.repeat,
            self.timeout,
            self.number,
            self.blocks,
        )
        return Plan(tuple(cases), self.targets, sampling)

    def options(self, store_path: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """How cases are chosen, and where their files are, in a form that can be kept."""
        chosen: Mapping[str, tuple[str, ...]] = dataclasses.asdict(self.chosen)
        named = (NAMES, self.names or DEFAULT_SUITES), (FOLDER, (locate_folder(store_path),))
        given = {**chosen, TYPES: self.types, SHARD: (str(self.shard),) if self.shard else ()}
        return (*named, *((name, values) for name, values in given.items() if values))


def plan_targets(python: str | None, envs: Sequence[tuple[str, str]]) -> tuple[Target, ...]:
    """The interpreters that are meant, each once."""
    if python is not None and envs:
        raise UsageError("--python and --env both say where to measure: give every interpreter with --env.")
    names = [name for name, _ in envs]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--env names {name!r} more than once.")
    return tuple(Target(name, path) for name, path in envs) or (Target(python=python),)


def locate_folder(store_path: Path) -> str:
    """The working folder as seen from the store: the same after both have moved."""
    return os.path.relpath(os.getcwd(), os.path.dirname(os.path.realpath(store_path)))


def check_name(name: str | None) -> None:
    """Refuse a name that a run could not be found by, or that could not be told or typed."""
    if name is not None and (not name.strip() or name[0] in "@-" or not name.isprintable()):
        raise UsageError(
            f"{name!r} cannot be the name of a run: begin with a letter or a digit, without control characters."
        )


def describe_run(wish: Wish, plan: Plan, name: str | None, store_path: Path) -> RunInfo:
    """A new run: what is known of it before it begins."""
    run_id = uuid.uuid4().hex
    return RunInfo(
        id=run_id,
        name=name or "+".join(Path(one).stem or one for one in wish.names or DEFAULT_SUITES),
        created=time.time(),
        finished=None,
        torchmark=__version__,
        host=describe_host(os.environ),
        sources=describe_sources(case.suite for case in plan.cases),
        seed=int(FIXED["PYTHONHASHSEED"]),
        options=wish.options(store_path),
        seal=seal(_list_sealed(run_id, dataclasses.replace(wish, targets=plan.targets)), os.environ),
    )


@dataclasses.dataclass(frozen=True)
class Known:
    """A run to go on with, and what was asked for then."""

    info: RunInfo
    wish: Wish
    sees_folder: bool
    """Whether its cases may import what lies in the working folder: the user began it here, or names its benchmarks."""


def recall(store: Store, wish: Wish, given: Collection[str], name: str | None) -> Known:
    """The newest run that fits the options on the command line, or the one that is named.

    What is measured and how stays what it was; only the time limit may be another. A run that this user did not begin
    here, as far as can be shown, starts and imports nothing but what stands on the command line.
    """
    candidates = store.list_runs() if name is None else _list_named(store, name, given)
    if not candidates:
        raise UsageError("There is no run to go on with.")
    problem = ""
    for info in candidates:
        known = _read_wish(info, store.load(info.id, select=lambda _: False).plan)
        # Who names a run means it, wherever it began.
        differences = [
            *(_began_elsewhere(info, known, store.path) if name is None else ()),
            *_differ(wish, known, given),
        ]
        if not differences:
            sealed = is_sealed(info.seal, _list_sealed(info.id, known), os.environ)
            if not sealed:
                _refuse_unnamed(info, known, given, store.path)
            timeout = wish.timeout if "timeout" in given else known.timeout
            return Known(info, dataclasses.replace(known, timeout=timeout), sealed or NAMES in given)
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


def _read_wish(info: RunInfo, plan: Plan) -> Wish:
    options = dict(info.options)
    fields = {field.name for field in dataclasses.fields(Options)}
    sampling = plan.sampling
    chosen = Options(**{name: values for name, values in options.items() if name in fields})
    try:
        chosen.select()
    except (KeyError, ValueError) as error:
        # It may have been made by another version, or by anybody.
        raise UsageError(f"The run {info.id} cannot be resumed: its selection means nothing here.") from error
    return Wish(
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
    )


def _began_elsewhere(info: RunInfo, known: Wish, store_path: Path) -> Iterator[str]:
    """Where a run began, if it was not here: files of the same names are others there, and so are the times."""
    if info.host.cpu_model != read_cpu_model(Path("/")):
        yield f"was begun on another machine ({info.host.cpu_model})"
    folder = next(iter(dict(info.options).get(FOLDER, ())), None)
    has_files = not set(known.names) <= set(list_suites())
    if folder is not None and has_files and folder != locate_folder(store_path):
        there = os.path.normpath(os.path.join(os.path.dirname(os.path.realpath(store_path)), folder))
        yield f"was begun in another folder ({there})"


def _resolve(names: Sequence[str]) -> list[str]:
    """Suites as they are called, files and folders however they are spelt."""
    return [name if name in list_suites() else os.path.realpath(name) for name in names]


def _list_files(names: Sequence[str]) -> list[str]:
    """The files and folders among these that are imported."""
    return [path for name, path in zip(names, _resolve(names), strict=True) if name not in list_suites()]


def _locate_programs(targets: Sequence[Target]) -> list[tuple[str, str]]:
    """The program that each target starts; this program's own interpreter by its own name."""
    path = os.environ.get("PATH", os.defpath)
    pythons = [target.python and (shutil.which(target.python, path=path) or target.python) for target in targets]
    return [
        (target.name, os.path.abspath(python or sys.executable))
        for target, python in zip(targets, pythons, strict=True)
    ]


def _list_sealed(run_id: str, wish: Wish) -> list[object]:
    """All that decides what a run starts and imports, as it is found from here."""
    return [
        run_id,
        os.getcwd(),
        _resolve(wish.names or DEFAULT_SUITES),
        _locate_programs(wish.targets),
        wish.types,
        dataclasses.asdict(wish.chosen),
    ]


def _refuse_unnamed(info: RunInfo, known: Wish, given: Collection[str], store_path: Path) -> None:
    """Start nothing, and import nothing, that only the store names: it may be a stranger's."""
    own = os.path.abspath(sys.executable)
    unnamed = [] if NAMES in given else [f"import {path}" for path in _list_files(known.names)]
    if not {"python", "envs"} & set(given):
        unnamed += [f"start {path}" for _, path in _locate_programs(known.targets) if path != own]
    if unnamed:
        lines = "".join(f"\n  {printable(line)}" for line in dict.fromkeys(unnamed))
        raise UsageError(
            f"Nothing was started. The run {printable(info.name)} ({info.id[:SHORT_ID]}) would{lines}\n"
            "and nothing shows that you began it on this machine, in this folder. If you trust all of this, name it "
            f"again:\n  {spell_resume(info, known.targets, store_path)}"
        )


def spell_resume(info: RunInfo, targets: Sequence[Target], store_path: Path) -> str:
    """The command that goes on with a run wherever it began, with all that it starts and imports named."""
    names = dict(info.options).get(NAMES, ())
    words = ["torchmark", "run", *(names if _list_files(names) else ()), "--resume", "--name", info.id[:SHORT_ID]]
    programs = _locate_programs(targets)
    if any(path != os.path.abspath(sys.executable) for _, path in programs):
        for target, (name, path) in zip(targets, programs, strict=True):
            # A lone interpreter without a name is the one of --python.
            words += ["--env", f"{name}={target.python or path}"] if name else []
            words += ["--python", target.python] if target.python and not name else []
    if os.path.abspath(store_path) != os.path.abspath(DEFAULT_STORE):
        words += ["--store", str(store_path)]
    return printable(shlex.join(words))


def _differ(wish: Wish, known: Wish, given: Collection[str]) -> Iterator[str]:
    """What was asked for otherwise then, of all that is asked for now."""
    if NAMES in given and _resolve(wish.names) != _resolve(known.names):
        yield f"has benchmarks {' '.join(known.names)}, not {' '.join(wish.names)}"
    if known.types:
        yield f"has types that only 'torchmark overrides' knows ({', '.join(known.types)})"
    if any(option.startswith("only_") for option in given) and wish.chosen != known.chosen:
        yield "has another selection of cases"
    for option, spelt in _FIXED_OPTIONS.items():
        if option in given and getattr(wish, option) != getattr(known, option):
            yield f"has another {spelt}"
    if SHARD in given and wish.shard != known.shard:
        yield f"is {f'shard {known.shard}' if known.shard else 'no shard'}, not shard {wish.shard}"
    if {"python", "envs"} & set(given) and _locate_programs(wish.targets) != _locate_programs(known.targets):
        yield "has other interpreters"
