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
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from torchmark.errors import UsageError, WorkerError
from torchmark.model.job import BlockPlan, GaugeJob, PairedCase, PairedSide, PairJob, RunTime, SideBlocks, Visit
from torchmark.model.judgement import Side, SideFailure
from torchmark.model.outcome import Failure, FailureKind, was_killed
from torchmark.model.plan import Target
from torchmark.processes import make_scratch
from torchmark.runner.machine import choose_idlest
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
from torchmark.runner.worker import ATTEMPTS, DEFAULT_TIMEOUT_S, Reply, Worker, retry_if_killed
from torchmark.worker.protocol import Gauged, PairTimed

# Of one length.
BASE, HEAD = "base", "head"
VENV_MARK = "pyvenv.cfg"


class Aliases:
    """A folder with another name for each environment; it goes with `close`, or with this process."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def give(self, pythons: Sequence[str]) -> list[str]:
        """The interpreters by other names, if both are of virtual environments: only these do not mind."""
        base, head = (Path(python).parent.parent for python in pythons)
        if not all((home / VENV_MARK).is_file() for home in (base, head)):
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
        """Remove the links."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def shadow(home: Path, into: Path, replaced: dict[Path, Path]) -> None:
    """Make a folder that looks like another one, but for some files, which are links to others.

    `replaced` has them by their place within. Whole folders are links where nothing in them is replaced.
    """
    into.mkdir()
    opened = {parent for place in replaced for parent in place.parents}
    for folder in sorted(opened, key=lambda one: len(one.parts)):
        (into / folder).mkdir(exist_ok=True)
        for entry in sorted((home / folder).iterdir()):
            place = folder / entry.name
            if place not in opened:
                (into / place).symlink_to(replaced.get(place, entry))
    if not opened:
        for entry in sorted(home.iterdir()):
            (into / entry.name).symlink_to(entry)


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
            with contextlib.suppress(OSError):
                if _are_copies(base / place, ours):
                    yield place, base / place


def _are_copies(base: Path, head: Path) -> bool:
    if base.is_symlink() or head.is_symlink() or not base.is_file() or os.path.samefile(base, head):
        return False
    return filecmp.cmp(base, head, shallow=False)


Failures = tuple[SideFailure, ...]


class WorkerSide(NamedTuple):
    """Where one side runs: an interpreter, None for the program's own."""

    python: str | None = None


class WorkerPair(NamedTuple):
    """The workers of one layout. Where both statements run in one process, they are the same."""

    base: Worker
    head: Worker


class PairedWorkers:
    """Starts pairs of workers, and has cases timed by them. For one thread."""

    def __init__(
        self,
        base: WorkerSide,
        head: WorkerSide,
        cores: Sequence[int],
        environ: Mapping[str, str] = os.environ,
        *,
        together: bool = False,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        seed: int = 0,
    ) -> None:
        """`together` is for two statements that run in one process; both sides are the same then."""
        assert not together or base == head
        self._sides = (base, head)
        self._cores = tuple(cores)
        self._environ = dict(environ)
        self._together = together
        self._timeout_s = timeout_s
        self._chance = random.Random(seed)
        self._pairs: dict[int, WorkerPair] = {}
        self._matches: dict[int, Match] = {}
        self._aliases = Aliases()

    @property
    def layouts(self) -> tuple[int, ...]:
        """Numbers of the layouts that there are pairs in."""
        return tuple(self._pairs)

    @property
    def match(self) -> Match:
        """Whether the two sides are laid out alike, in all layouts."""
        unlike = [match for match in self._matches.values() if not match.alike]
        return unlike[0] if unlike else Match(alike=True)

    def start(self, layouts: Iterable[int], note: Callable[[int], None] = lambda _: None) -> None:
        """Start pairs in these layouts, as many at a time as there are cores. `note` hears of each that is up.

        SetupError says what is missing; nothing is left of those that could not be started.
        """
        wanted = [number for number in layouts if number not in self._pairs]
        pairs = {number: self._make_pair(number) for number in wanted}
        workers = list(dict.fromkeys(worker for pair in pairs.values() for worker in pair))
        try:
            run_side_by_side([worker.start for worker in workers], len(self._cores), note)
        except BaseException:
            for worker in workers:
                worker.abandon()
            raise
        self._pairs |= pairs
        for number, pair in pairs.items():
            self._matches[number] = self._check(pair)

    def gauge(self, paired_case: PairedCase) -> RunTime | Failures:
        """How long a run takes on each side, in the first layout; or how the sides fail that fail."""
        pair = self._pairs[min(self._pairs)]
        cores = self._choose_cores(paired_case.base.threads)
        results = []
        for worker, part in ((pair.base, paired_case.base), (pair.head, paired_case.head)):
            job = GaugeJob(part.stmt, part.setup, part.place, part.threads, compiled=part.compiled, cores=cores)
            results.append(retry_if_killed(functools.partial(_run, worker, job, self._timeout_s)))
        failures = _list_failures(results)
        if failures:
            return failures
        base, head = (result.message for result in results if isinstance(result, Reply))
        assert isinstance(base, Gauged)
        assert isinstance(head, Gauged)
        return RunTime(base.run_s, head.run_s)

    def visit(self, layout: int, paired_case: PairedCase, pace: BlockPlan) -> Visit | Failures:
        """Have both sides run in turns in one layout; what was killed from outside is tried once more."""
        outcome: Visit | Failures = ()
        for _ in range(ATTEMPTS):
            outcome = self._visit(self._pairs[layout], paired_case, pace)
            if isinstance(outcome, Visit) or not all(was_killed(one.failure) for one in outcome):
                break
        return outcome

    def close(self) -> None:
        """End all workers, at once."""
        pairs, self._pairs = self._pairs, {}
        for worker in dict.fromkeys(worker for pair in pairs.values() for worker in pair):
            worker.abandon()
        self._aliases.close()

    # --- one visit -----------------------------------------------------------------------------------

    def _visit(self, pair: WorkerPair, paired_case: PairedCase, pace: BlockPlan) -> Visit | Failures:
        firsts = tuple(self._chance.randrange(2) for _ in range(pace.pairs))
        cores = self._choose_cores(paired_case.base.threads)
        if self._together:
            return self._visit_one(pair.base, paired_case, pace, firsts, cores)
        jobs = [
            _make_job(part, pace, firsts, side, cores, partner=None)
            for side, part in enumerate((paired_case.base, paired_case.head))
        ]
        results = self._run_both(pair, jobs)
        failures = _list_failures(results)
        if failures:
            return failures
        sides = [_read_blocks(result)[0] for result in results if isinstance(result, Reply)]
        return Visit(pace.number, *sides)

    def _visit_one(
        self, worker: Worker, paired_case: PairedCase, pace: BlockPlan, firsts: tuple[int, ...], cores: tuple[int, ...]
    ) -> Visit | Failures:
        job = _make_job(paired_case.base, pace, firsts, 0, cores, partner=paired_case.head.stmt)
        reply = _run(worker, job, self._timeout_s)
        if isinstance(reply, Failure):
            # Both run there, so it cannot be told by this whose fault it is.
            return tuple(SideFailure(side, reply) for side in Side)
        return Visit(pace.number, *_read_blocks(reply))

    def _run_both(self, pair: WorkerPair, jobs: Sequence[PairJob]) -> list[Reply | Failure]:
        """Both jobs at once, connected. When one of them has ended, the other must not wait for it."""
        ends = socket.socketpair()
        results: dict[int, Reply | Failure] = {}

        def run(side: int) -> None:
            try:
                results[side] = _run(pair[side], jobs[side], self._timeout_s, ends[side].fileno())
            finally:
                for end in ends:
                    with contextlib.suppress(OSError):
                        end.close()

        order = self._chance.sample((0, 1), 2)
        threads = [threading.Thread(target=run, args=(side,), daemon=True) for side in order]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lost = Failure(FailureKind.WORKER_DIED, "The process that ran it was lost.")
        return [results.get(side, lost) for side in (0, 1)]

    def _choose_cores(self, threads: int) -> tuple[int, ...]:
        return choose_idlest(self._cores, threads)

    # --- workers -------------------------------------------------------------------------------------

    def _make_pair(self, number: int) -> WorkerPair:
        specs = self._specs
        paddings = even_out(specs[0].python, specs[1].python)
        base, head = (
            Worker(_lay_out(spec, Layout(number, padding)), self._environ)
            for spec, padding in zip(specs, paddings, strict=True)
        )
        return WorkerPair(base, base if self._together else head)

    @functools.cached_property
    def _specs(self) -> list[WorkerSpec]:
        """What to start on each side, under names of one length where that can be."""
        specs = [self._specify(side) for side in self._sides]
        if all(side.python is not None for side in self._sides):
            pythons = self._aliases.give([spec.python for spec in specs])
            specs = [dataclasses.replace(spec, python=python) for spec, python in zip(specs, pythons, strict=True)]
        return specs

    def _specify(self, side: WorkerSide) -> WorkerSpec:
        if side.python is None:
            return own_worker(self._environ, counting=False)
        spec = other_worker(side.python, self._environ, {}, counting=False)
        return dataclasses.replace(spec, python=find_interpreter(spec.python, dict(spec.variables)))

    def _check(self, pair: WorkerPair) -> Match:
        return match_maps(read_map(pair.base.pid), read_map(pair.head.pid))


def _lay_out(spec: WorkerSpec, layout: Layout) -> WorkerSpec:
    variables = {**dict(spec.variables), **layout.variables}
    return dataclasses.replace(spec, variables=tuple(sorted(variables.items())), layout=layout)


def _make_job(
    part: PairedSide,
    pace: BlockPlan,
    firsts: tuple[int, ...],
    side: int,
    cores: tuple[int, ...],
    *,
    partner: str | None,
) -> PairJob:
    return PairJob(
        stmt=part.stmt,
        setup=part.setup,
        place=part.place,
        number=pace.number,
        warm=pace.warm,
        firsts=firsts,
        side=side,
        partner=partner,
        threads=part.threads,
        compiled=part.compiled,
        cores=cores,
    )


def _run(worker: Worker, job: PairJob | GaugeJob, timeout_s: float, partner: int | None = None) -> Reply | Failure:
    """A worker that cannot be had any more is a failure of the job, and so is a machine that lacks something."""
    try:
        return worker.run(job, timeout_s=timeout_s, partner=partner)
    except WorkerError as error:
        return Failure(FailureKind.WORKER_DIED, str(error))
    except (OSError, UsageError) as error:
        return Failure(FailureKind.MISSING, str(error))


def _read_blocks(reply: Reply) -> list[SideBlocks]:
    message = reply.message
    assert isinstance(message, PairTimed)
    return list(message.sides)


def _list_failures(results: Sequence[Reply | Failure]) -> Failures:
    """Those that failed; where one only waited for the other in vain, that one alone."""
    found = [
        SideFailure(side, result) for side, result in zip(Side, results, strict=True) if isinstance(result, Failure)
    ]
    telling = [one for one in found if one.failure.kind is not FailureKind.NO_RESULT]
    return tuple(telling or found)


def run_side_by_side(jobs: Sequence[Callable[[], None]], at_once: int, note: Callable[[int], None]) -> None:
    """Run all jobs in threads, so many at a time, and report how many are done. Raises the first error at the end."""
    waiting = list(jobs)
    errors: list[BaseException] = []
    lock = threading.Lock()
    done = 0

    def work() -> None:
        nonlocal done
        while True:
            with lock:
                if not waiting or errors:
                    return
                job = waiting.pop(0)
            try:
                job()
            except BaseException as error:
                with lock:
                    errors.append(error)
                return
            with lock:
                done += 1
                note(done)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(max(1, min(at_once, len(jobs))))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
