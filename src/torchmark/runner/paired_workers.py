"""Pairs of workers, one for each side, in several layouts of memory, as alike as two environments can be made."""

from __future__ import annotations

import contextlib
import dataclasses
import filecmp
import functools
import os
import random
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from torchmark.errors import UsageError, WorkerError
from torchmark.model.job import BlockPlan, GaugeJob, PairedCase, PairedSide, PairJob, RunTime, Visit
from torchmark.model.judgement import Side, SideFailure
from torchmark.model.outcome import Failure, FailureKind, was_killed
from torchmark.model.plan import Case, Target
from torchmark.processes import make_scratch
from torchmark.runner.lab import Lab
from torchmark.runner.machine import choose_idlest
from torchmark.runner.prepare import Build, Models, make_parts
from torchmark.runner.spec import (
    Layout,
    Match,
    WorkerSpec,
    even_out,
    find_interpreter,
    match_maps,
    other_worker,
    own_worker,
    read_map,
)
from torchmark.runner.worker import DEFAULT_TIMEOUT_S, Reply, Worker, expect, retry, retry_if_killed
from torchmark.worker.protocol import Gauged, PairTimed

# Of one length.
BASE, HEAD = "base", "head"


class Aliases:
    """A folder with another name for each environment; it goes with `close`, or with this process."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def give(self, pythons: Sequence[str]) -> list[str]:
        """The interpreters by other names, if both are of virtual environments: only these do not mind."""
        base, head = (Path(python).parent.parent for python in pythons)
        if not all((home / "pyvenv.cfg").is_file() for home in (base, head)):
            return list(pythons)
        try:
            self._folder = self._folder or make_scratch()
            shared = dict(_find_equal_libraries(base, head))
            # Both, in the same order: Python also keeps what it finds in folders, in the order in which it finds it.
            for home, name in ((base, BASE), (head, HEAD)):
                shadow(home, self._folder / name, shared)
        except OSError:
            # Comparisons are a little less sharp without.
            return list(pythons)
        names = zip((BASE, HEAD), map(Path, pythons), strict=True)
        return [os.path.join(self._folder, name, python.parent.name, python.name) for name, python in names]

    def give_targets(self, targets: Sequence[Target], environ: Mapping[str, str]) -> dict[Target, str]:
        """The same for two targets that name their interpreters; nothing for others."""
        pythons = [target.python for target in targets]
        if len(targets) != 2 or None in pythons:
            return {}
        real = [find_interpreter(python, environ) for python in pythons if python is not None]
        return dict(zip(targets, self.give(real), strict=True))

    def close(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def shadow(home: Path, into: Path, replaced: dict[Path, Path]) -> None:
    """Make a folder that looks like another one, but for some files, which are links to others.

    `replaced` has them by their place within. Whole folders are links where nothing in them is replaced.
    """
    into.mkdir()
    opened = {Path(), *(parent for place in replaced for parent in place.parents)}
    for folder in sorted(opened, key=lambda one: len(one.parts)):
        (into / folder).mkdir(exist_ok=True)
        for entry in sorted((home / folder).iterdir()):
            place = folder / entry.name
            if place not in opened:
                (into / place).symlink_to(replaced.get(place, entry))


def _find_equal_libraries(base: Path, head: Path) -> Iterator[tuple[Path, Path]]:
    """Native libraries that both environments have, each in a file of its own: the place, and base's file."""
    for folder, names, files in os.walk(head):
        # Links lead out of the environment, or to what is walked through anyway.
        names[:] = [name for name in names if name != "__pycache__"]
        for name in files:
            if ".so" not in name:
                continue
            ours = Path(folder) / name
            place = ours.relative_to(head)
            theirs = base / place
            with contextlib.suppress(OSError):
                if theirs.is_symlink() or ours.is_symlink() or not theirs.is_file() or os.path.samefile(theirs, ours):
                    continue
                if filecmp.cmp(theirs, ours, shallow=False):
                    yield place, theirs


Failures = tuple[SideFailure, ...]

WorkerPair = tuple[Worker, Worker]
"""The workers of one layout. Where both statements run in one process, they are the same."""


class PairedWorkers:
    """Pairs of workers on this machine, and what they need to have cases timed. For one thread."""

    def __init__(
        self,
        base: Target,
        head: Target,
        cores: Sequence[int],
        environ: Mapping[str, str] = os.environ,
        *,
        together: bool = False,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        labs: Mapping[Target, Lab] | None = None,
    ) -> None:
        """`together` is for two statements that run in one process; both sides are the same then.

        `labs` has workers that C++ and TorchScript are made with, where there are some.
        """
        assert not together or base == head
        self._targets = (base, head)
        self._cores = tuple(cores)
        self._environ = dict(environ)
        self._together = together
        self._timeout_s = timeout_s
        self._labs = dict(labs or {})
        self._models = Models(self._environ)
        self._chance = random.Random(0)
        self._pairs: dict[int, WorkerPair] = {}
        self._matches: list[Match] = []
        self._aliases = Aliases()

    def prepare(
        self, pairs: Sequence[tuple[Case, Case]], builds: Sequence[Build | None] = (None, None)
    ) -> tuple[PairedCase | Failures, ...]:
        """What both sides of each pair run, TorchScript made and C++ compiled; or how the sides fail that fail.

        `builds` is what has the C++ of each side compiled, if that is not to happen here.
        """
        made = [
            make_parts(
                list(dict.fromkeys(pair[number] for pair in pairs)),
                self._labs.setdefault(target, Lab(target, self._environ)),
                self._models,
                self._environ,
                self._timeout_s,
                builds[number],
            )
            for number, target in enumerate(self._targets)
        ]
        return tuple(_pair_up(made[0][base], made[1][head]) for base, head in pairs)

    @property
    def layouts(self) -> tuple[int, ...]:
        return tuple(self._pairs)

    @property
    def match(self) -> Match:
        return next((match for match in self._matches if not match.alike), Match(alike=True))

    def start(self, layouts: Iterable[int], note: Callable[[int], None] = lambda _: None) -> None:
        """Start pairs in these layouts, as many at a time as there are cores. `note` hears of each that is up.

        SetupError says what is missing; nothing is left of those that could not be started.
        """
        pairs = {number: self._make_pair(number) for number in layouts if number not in self._pairs}
        workers = list(dict.fromkeys(worker for pair in pairs.values() for worker in pair))
        try:
            run_side_by_side([worker.start for worker in workers], len(self._cores), note)
        except BaseException:
            for worker in workers:
                worker.abandon()
            raise
        self._pairs |= pairs
        self._matches += [match_maps(*(read_map(worker.pid) for worker in pair)) for pair in pairs.values()]

    def gauge(self, paired_case: PairedCase) -> RunTime | Failures:
        """How long a run takes on each side, in the first layout; or how the sides fail that fail."""
        cores = choose_idlest(self._cores, paired_case.base.threads)
        results = []
        for worker, part in zip(self._pairs[min(self._pairs)], (paired_case.base, paired_case.head), strict=True):
            job = GaugeJob(**vars(part), cores=cores)
            results.append(expect(retry_if_killed(functools.partial(_run, worker, job, self._timeout_s)), Gauged))
        return _list_failures(results) or RunTime(*(one.run_s for one in results if isinstance(one, Gauged)))

    def visit(self, layout: int, paired_case: PairedCase, pace: BlockPlan) -> Visit | Failures:
        """Have both sides run in turns in one layout; what was killed from outside is tried once more."""
        return retry(
            lambda: self._visit(self._pairs[layout], paired_case, pace),
            lambda outcome: not isinstance(outcome, Visit) and all(was_killed(one.failure) for one in outcome),
        )

    def close(self) -> None:
        pairs, self._pairs = self._pairs, {}
        for worker in dict.fromkeys(worker for pair in pairs.values() for worker in pair):
            worker.abandon()
        for lab in self._labs.values():
            lab.abandon()
        self._models.close()
        self._aliases.close()

    def _visit(self, pair: WorkerPair, paired_case: PairedCase, pace: BlockPlan) -> Visit | Failures:
        firsts = tuple(self._chance.randrange(2) for _ in range(pace.pairs))
        cores = choose_idlest(self._cores, paired_case.base.threads)
        jobs = [
            PairJob(
                **vars(part),
                number=pace.number,
                warm=pace.warm,
                firsts=firsts,
                side=side,
                partner=paired_case.head.stmt if self._together else None,
                cores=cores,
            )
            for side, part in enumerate((paired_case.base, paired_case.head))
        ]
        replies = [_run(pair[0], jobs[0], self._timeout_s)] if self._together else self._run_both(pair, jobs)
        results = [expect(reply, PairTimed) for reply in replies]
        # Where both run in one process, it cannot be told whose fault a failure is.
        failures = _list_failures(results * 2 if self._together else results)
        if failures:
            return failures
        base, head = (blocks for timed in results if isinstance(timed, PairTimed) for blocks in timed.sides)
        return Visit(pace.number, base, head)

    def _run_both(self, pair: WorkerPair, jobs: Sequence[PairJob]) -> list[Reply | Failure]:
        """Both jobs at once, connected. When one of them has ended, the other must not wait for it."""
        ends = socket.socketpair()

        def run(side: int) -> Reply | Failure:
            try:
                return _run(pair[side], jobs[side], self._timeout_s, ends[side].fileno())
            finally:
                for end in ends:
                    with contextlib.suppress(OSError):
                        end.close()

        with ThreadPoolExecutor(len(jobs)) as executor:
            results = {side: executor.submit(run, side) for side in self._chance.sample((0, 1), 2)}
        return [results[side].result() for side in (0, 1)]

    def _make_pair(self, number: int) -> WorkerPair:
        base, head = (
            Worker(_lay_out(spec, Layout(number, padding)), self._environ)
            for spec, padding in zip(self._specs, even_out(*(spec.python for spec in self._specs)), strict=True)
        )
        return base, base if self._together else head

    @functools.cached_property
    def _specs(self) -> list[WorkerSpec]:
        """What to start on each side, under names of one length where that can be."""
        specs = [self._specify(target.python) for target in self._targets]
        if all(target.python is not None for target in self._targets):
            pythons = self._aliases.give([spec.python for spec in specs])
            specs = [dataclasses.replace(spec, python=python) for spec, python in zip(specs, pythons, strict=True)]
        return specs

    def _specify(self, python: str | None) -> WorkerSpec:
        if python is None:
            return own_worker(self._environ, counting=False)
        spec = other_worker(python, self._environ, {}, counting=False)
        return dataclasses.replace(spec, python=find_interpreter(spec.python, dict(spec.variables)))


def _pair_up(base: PairedSide | Failure, head: PairedSide | Failure) -> PairedCase | Failures:
    if isinstance(base, PairedSide) and isinstance(head, PairedSide):
        return PairedCase(base, head)
    return _find_failures((base, head))


def _find_failures(results: Sequence[object]) -> Failures:
    return tuple(SideFailure(side, one) for side, one in zip(Side, results, strict=True) if isinstance(one, Failure))


def _lay_out(spec: WorkerSpec, layout: Layout) -> WorkerSpec:
    variables = {**dict(spec.variables), **layout.variables}
    return dataclasses.replace(spec, variables=tuple(sorted(variables.items())), layout=layout)


def _run(worker: Worker, job: PairJob | GaugeJob, timeout_s: float, partner: int | None = None) -> Reply | Failure:
    """A worker that cannot be had any more is a failure of the job, and so is a machine that lacks something."""
    try:
        return worker.run(job, timeout_s=timeout_s, partner=partner)
    except WorkerError as error:
        return Failure(FailureKind.WORKER_DIED, str(error))
    except (OSError, UsageError) as error:
        return Failure(FailureKind.MISSING, str(error))


def _list_failures(results: Sequence[object]) -> Failures:
    """Those that failed; where one only waited for the other in vain, that one alone."""
    found = _find_failures(results)
    return tuple(one for one in found if one.failure.kind is not FailureKind.NO_RESULT) or found


def run_side_by_side(jobs: Sequence[Callable[[], None]], at_once: int, note: Callable[[int], None]) -> None:
    """Run all jobs in threads, so many at a time, and report how many are done. After an error, no more are begun."""
    executor = ThreadPoolExecutor(max(1, at_once))
    try:
        for done, future in enumerate(as_completed([executor.submit(job) for job in jobs]), start=1):
            future.result()
            note(done)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
