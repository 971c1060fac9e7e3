"""Pairs of workers, one of each side, in several layouts of memory; they stay, and fork for every visit.

Both children of a visit run on one core and take turns, so that only one of them is ever busy.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import random
import socket
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from torchmark.errors import UsageError, WorkerError
from torchmark.model.bout import Blocks, Bout, Gauge, Pace, Part, Visit
from torchmark.model.job import DuelJob, GaugeJob
from torchmark.model.judgement import Side, SideFailure
from torchmark.model.outcome import Failure, FailureKind, was_killed
from torchmark.runner.aliases import Aliases
from torchmark.runner.cores import choose_idlest
from torchmark.runner.layouts import Layout, Match, even_out, match_maps, read_map
from torchmark.runner.persisting import ATTEMPTS, persist
from torchmark.runner.spec import WorkerSpec, find_interpreter, other_worker, own_worker
from torchmark.runner.worker import DEFAULT_TIMEOUT_S, Reply, Worker
from torchmark.wire.messages import Dueled, Gauged

Failures = tuple[SideFailure, ...]


class Corner(NamedTuple):
    """Where one side runs: an interpreter, None for the program's own."""

    python: str | None = None


class Pair(NamedTuple):
    """The workers of one layout. Where both statements run in one process, they are the same."""

    base: Worker
    head: Worker


class Arena:
    """Starts pairs of workers, and has bouts carried out by them. For one thread."""

    def __init__(
        self,
        base: Corner,
        head: Corner,
        cores: Sequence[int],
        environ: Mapping[str, str] = os.environ,
        *,
        together: bool = False,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        seed: int = 0,
    ) -> None:
        """`together` is for two statements that run in one process; both corners are the same then."""
        assert not together or base == head
        self._corners = (base, head)
        self._cores = tuple(cores)
        self._environ = dict(environ)
        self._together = together
        self._timeout_s = timeout_s
        self._chance = random.Random(seed)
        self._pairs: dict[int, Pair] = {}
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

    def gauge(self, bout: Bout) -> Gauge | Failures:
        """How long a run takes on each side, in the first layout; or how the sides fail that fail."""
        pair = self._pairs[min(self._pairs)]
        cores = self._choose_cores(bout.base.threads)
        results = []
        for worker, part in ((pair.base, bout.base), (pair.head, bout.head)):
            job = GaugeJob(part.stmt, part.setup, part.place, part.threads, compiled=part.compiled, cores=cores)
            results.append(persist(functools.partial(_run, worker, job, self._timeout_s)))
        failures = _list_failures(results)
        if failures:
            return failures
        base, head = (result.message for result in results if isinstance(result, Reply))
        assert isinstance(base, Gauged)
        assert isinstance(head, Gauged)
        return Gauge(base.run_s, head.run_s)

    def visit(self, layout: int, bout: Bout, pace: Pace) -> Visit | Failures:
        """Have both sides run in turns in one layout; what was killed from outside is tried once more."""
        outcome: Visit | Failures = ()
        for _ in range(ATTEMPTS):
            outcome = self._visit(self._pairs[layout], bout, pace)
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

    def _visit(self, pair: Pair, bout: Bout, pace: Pace) -> Visit | Failures:
        firsts = tuple(self._chance.randrange(2) for _ in range(pace.pairs))
        cores = self._choose_cores(bout.base.threads)
        if self._together:
            return self._visit_one(pair.base, bout, pace, firsts, cores)
        jobs = [
            _make_job(part, pace, firsts, side, cores, rival=None) for side, part in enumerate((bout.base, bout.head))
        ]
        results = self._run_both(pair, jobs)
        failures = _list_failures(results)
        if failures:
            return failures
        sides = [_read_blocks(result)[0] for result in results if isinstance(result, Reply)]
        return Visit(pace.number, *sides)

    def _visit_one(
        self, worker: Worker, bout: Bout, pace: Pace, firsts: tuple[int, ...], cores: tuple[int, ...]
    ) -> Visit | Failures:
        job = _make_job(bout.base, pace, firsts, 0, cores, rival=bout.head.stmt)
        reply = _run(worker, job, self._timeout_s)
        if isinstance(reply, Failure):
            # Both run there, so it cannot be told by this whose fault it is.
            return tuple(SideFailure(side, reply) for side in Side)
        return Visit(pace.number, *_read_blocks(reply))

    def _run_both(self, pair: Pair, jobs: Sequence[DuelJob]) -> list[Reply | Failure]:
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

    def _make_pair(self, number: int) -> Pair:
        specs = self._specs
        paddings = even_out(specs[0].python, specs[1].python)
        base, head = (
            Worker(_lay_out(spec, Layout(number, padding)), self._environ)
            for spec, padding in zip(specs, paddings, strict=True)
        )
        return Pair(base, base if self._together else head)

    @functools.cached_property
    def _specs(self) -> list[WorkerSpec]:
        """What to start on each side, under names of one length where that can be."""
        specs = [self._specify(corner) for corner in self._corners]
        if all(corner.python is not None for corner in self._corners):
            pythons = self._aliases.give([spec.python for spec in specs])
            specs = [dataclasses.replace(spec, python=python) for spec, python in zip(specs, pythons, strict=True)]
        return specs

    def _specify(self, corner: Corner) -> WorkerSpec:
        if corner.python is None:
            return own_worker(self._environ, counting=False)
        spec = other_worker(corner.python, self._environ, {}, counting=False)
        return dataclasses.replace(spec, python=find_interpreter(spec.python, dict(spec.variables)))

    def _check(self, pair: Pair) -> Match:
        return match_maps(read_map(pair.base.pid), read_map(pair.head.pid))


def _lay_out(spec: WorkerSpec, layout: Layout) -> WorkerSpec:
    variables = {**dict(spec.variables), **layout.variables}
    return dataclasses.replace(spec, variables=tuple(sorted(variables.items())), layout=layout)


def _make_job(
    part: Part, pace: Pace, firsts: tuple[int, ...], side: int, cores: tuple[int, ...], *, rival: str | None
) -> DuelJob:
    return DuelJob(
        part.stmt,
        part.setup,
        part.place,
        pace.number,
        pace.warm,
        firsts,
        side,
        rival,
        part.threads,
        compiled=part.compiled,
        cores=cores,
    )


def _run(worker: Worker, job: DuelJob | GaugeJob, timeout_s: float, rival: int | None = None) -> Reply | Failure:
    """A worker that cannot be had any more is a failure of the job, and so is a machine that lacks something."""
    try:
        return worker.run(job, timeout_s=timeout_s, rival=rival)
    except WorkerError as error:
        return Failure(FailureKind.WORKER_DIED, str(error))
    except (OSError, UsageError) as error:
        return Failure(FailureKind.MISSING, str(error))


def _read_blocks(reply: Reply) -> list[Blocks]:
    dueled = reply.message
    assert isinstance(dueled, Dueled)
    return [Blocks(*series) for series in zip(dueled.times, dueled.faults, dueled.switches, strict=True)]


def _list_failures(results: Sequence[Reply | Failure]) -> Failures:
    """Those that failed; where one only waited for the other in vain, that one alone."""
    found = [
        SideFailure(side, result) for side, result in zip(Side, results, strict=True) if isinstance(result, Failure)
    ]
    telling = [one for one in found if one.failure.kind is not FailureKind.NO_RESULT]
    return tuple(telling or found)


def run_side_by_side(jobs: Sequence[Callable[[], None]], at_once: int, note: Callable[[int], None]) -> None:
    """Run all jobs in threads, so many at a time, and tell how many are done. The first error is raised at the end."""
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
