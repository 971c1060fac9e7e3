"""The back end of this machine: counting and preparing share its cores, timing has it alone."""

from __future__ import annotations

import functools
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

from torchmark.callgrind.command import find_valgrind
from torchmark.files import MachineLock
from torchmark.model.outcome import Activity, ActivityKind, Begun, Event, Failure, Outcome
from torchmark.model.plan import Case, Metric, Order, Plan, Sampling, Target
from torchmark.native.toolchain import Stopped
from torchmark.processes import StopRequest
from torchmark.runner.lab import Lab, Prepared, carry_out, find_group, find_references
from torchmark.runner.machine import read_available_memory
from torchmark.runner.prepare import Made, Models, Preparation, Stage
from torchmark.runner.worker import Worker, retry_if_killed


class Site:
    """One target."""

    def __init__(
        self,
        lab: Lab,
        sampling: Sampling,
        orders: Sequence[Order],
        cases: Sequence[Case],
        models: Models,
        environ: Mapping[str, str],
    ) -> None:
        self.lab = lab
        self.target: Target = lab.target
        self.stop = threading.Event()
        self.stages = deque(Preparation(lab, models, environ, sampling.timeout_s, self.stop).stages(cases))
        self.is_preparing = False
        self.ready: dict[Case, Prepared] = {}
        self.waiting = {order: None for order in orders if order.metric is Metric.COUNT}
        """Counts whose case is not ready, in their order."""
        self.countable: deque[Order] = deque()
        self.compiled: deque[Order] = deque()
        """The same for `torch.compile`, which has workers of its own."""
        self.is_counting_compiled = False
        self.idle: list[Worker] = []
        self.counters = 0
        """How many there are, or will be."""
        self.is_full = False
        """Whether another one could not be started."""
        self.no_counter: Failure | None = None
        """Why there is nobody to count, now or later."""

    @property
    def has_more(self) -> bool:
        return bool(self.stages or self.waiting or self.countable or self.compiled)


# What starting a worker that counts takes. Another one is started only where that is a tenth of what it takes over, or
# less: the time of processors is worth something, too. (`analysis/estimate.py` counts on it.)
START_S = 20.0
WORTH_STARTING_S = 10 * START_S
# What counting a case takes until some have been counted.
EXPECTED_COUNT_S = 1.0
# What a worker that counts takes of memory, with what its children copy.
COUNTER_BYTES = 3 * 1024**3 // 2
# Those who wait for a worker that was killed are gone in no time.
PARTING_S = 10.0
# A request to stop ends the wait for what is no result within this. Nothing is timed meanwhile.
NOTICE_S = 0.25


class Execution:
    """One pass over some orders."""

    def __init__(
        self,
        sites: Sequence[Site],
        orders: Sequence[Order],
        sampling: Sampling,
        cores: Sequence[int],
        stop: StopRequest,
        *,
        gives_way: bool = False,
    ) -> None:
        self._sites = {site.target: site for site in sites}
        self._orders = orders
        self._to_time = deque(order for order in orders if order.metric is Metric.WALL)
        self._sampling = sampling
        self._cores = tuple(cores)
        self._free = list(cores)
        self._stop = stop
        self._done: queue.SimpleQueue[tuple[threading.Thread, Callable[[], Iterator[Event]]]] = queue.SimpleQueue()
        self._flights: dict[threading.Thread, tuple[bool, tuple[int, ...]]] = {}
        """What runs in a thread: whether it is an order, and its cores."""
        self._counted = 0
        self._counted_s = 0.0
        self._turns = MachineLock()
        self._turns_lock = threading.Lock()
        self._sharing = 0
        """How much is under way that shares the machine."""
        self._gives_way = gives_way
        self._waits_since: float | None = None

    def run(self) -> Iterator[Event]:
        """Until all orders have outcomes; once stopping was requested, until those that have begun do."""
        while True:
            has_more = any(site.has_more for site in self._sites.values())
            is_to_share = has_more and not self._stop.requested and not self._is_time_to_time()
            if is_to_share and self._begin_sharing():
                yield from self._stop_waiting()
                yield from self._launch()
                self._end_sharing()
                is_to_share = False
            if not self._flights:
                if self._is_time_to_time():
                    yield from self._time_in_turn()
                    continue
                if is_to_share:
                    yield from self._wait()
                    continue
            if not any(is_order or not self._stop.requested for is_order, _ in self._flights.values()):
                return
            # Now and then, to notice that stopping was requested.
            try:
                thread, finish = self._done.get(timeout=NOTICE_S)
            except queue.Empty:
                continue
            _, cores = self._flights.pop(thread)
            self._free = sorted({*self._free, *cores})
            yield from finish()

    def give_up(self) -> None:
        """End whatever still runs; for what was interrupted, since else nothing does."""
        for site in self._sites.values():
            site.stop.set()
            if self._flights:
                site.lab.abandon()
        for thread in self._flights:
            thread.join(PARTING_S)
        with self._turns_lock:
            self._turns.close()

    # --- other runs ----------------------------------------------------------------------------------

    def _begin_sharing(self) -> bool:
        with self._turns_lock:
            shares = self._turns.share()
            self._sharing += shares
        return shares

    def _end_sharing(self) -> None:
        """Let others have their turn when nothing is under way. The caller of this run may be busy meanwhile."""
        with self._turns_lock:
            self._sharing -= 1
            if not self._sharing:
                self._turns.leave()

    def _wait(self) -> Iterator[Event]:
        """Another run is timing, or waits for its turn to; or shares the machine while this one wants it alone."""
        if self._waits_since is None:
            self._waits_since = time.time()
            yield Begun(ActivityKind.WAIT, next(iter(self._sites)))
        time.sleep(NOTICE_S)

    def _stop_waiting(self) -> Iterator[Event]:
        if self._waits_since is not None:
            yield Activity(ActivityKind.WAIT, next(iter(self._sites)), self._waits_since, time.time())
            self._waits_since = None

    # --- what shares the machine ---------------------------------------------------------------------

    def _launch(self) -> Iterator[Event]:
        """Start whatever can be: preparing first, which others wait for."""
        for site in self._sites.values():
            if self._free and site.stages and not site.is_preparing:
                yield self._start_stage(site, site.stages.popleft())
        for site in self._sites.values():
            while self._free:
                if site.countable and site.idle:
                    yield self._start_count(site, site.countable.popleft(), site.idle.pop())
                elif self._needs_counter(site):
                    yield self._start_counter(site)
                else:
                    break
            if self._free and site.compiled and not site.is_counting_compiled:
                site.is_counting_compiled = True
                yield self._start_count(site, site.compiled.popleft(), None)

    def _start_stage(self, site: Site, stage: Stage) -> Event:
        site.is_preparing = True
        # Compiling takes all that nobody else is going to take soon.
        most = len(self._free) - self._needs_counter(site) if stage.kind is ActivityKind.COMPILE else 1
        cores = self._take(max(1, most))
        began = time.time()

        def work() -> Callable[[], Iterator[Event]]:
            try:
                made = stage.run(len(cores))
            except Stopped:
                made = {}
            activity = Activity(stage.kind, site.target, began, time.time(), size=stage.size)
            return lambda: self._finish_stage(site, activity, made)

        self._fly(work, cores, is_order=False)
        return Begun(stage.kind, site.target)

    def _finish_stage(self, site: Site, activity: Activity, made: Made) -> Iterator[Event]:
        site.is_preparing = False
        yield activity
        if failures := {case: outcome for case, outcome in made.items() if isinstance(outcome, Failure)}:
            yield from self._fail(failures, site, activity)
        site.ready |= {case: outcome for case, outcome in made.items() if not isinstance(outcome, Failure)}
        for order in [order for order in site.waiting if order.case in site.ready]:
            del site.waiting[order]
            (site.countable if order.case.parts is None else site.compiled).append(order)
        yield from self._refuse_counts(site, activity)

    def _fail(self, failures: Mapping[Case, Failure], site: Site, activity: Activity) -> Iterator[Event]:
        failed = dict.fromkeys(one for one in self._orders if one.target == site.target and one.case in failures)
        self._to_time = deque(order for order in self._to_time if order not in failed)
        for order in failed:
            site.waiting.pop(order, None)
            yield Outcome(order, failures[order.case], activity.began, activity.ended)

    def _needs_counter(self, site: Site) -> bool:
        """The first is started early, since it takes long; others if those that are there have long to go."""
        is_wanted = site.countable or any(order.case.parts is None for order in site.waiting)
        if not is_wanted or site.idle or site.no_counter is not None:
            return False
        if site.counters == 0:
            return True
        if not site.countable or site.is_full:
            return False
        mean_s = self._counted_s / self._counted if self._counted else EXPECTED_COUNT_S
        memory = read_available_memory()
        return (
            len(site.countable) * mean_s / site.counters > WORTH_STARTING_S
            and site.counters < len(self._cores)
            and (memory is None or memory > COUNTER_BYTES)
        )

    def _start_counter(self, site: Site) -> Event:
        site.counters += 1
        counter = site.lab.make_counter()
        began = time.time()

        def work() -> Callable[[], Iterator[Event]]:
            problem = retry_if_killed(counter.start)
            activity = Activity(ActivityKind.START, site.target, began, time.time())
            return lambda: self._finish_counter(site, counter, problem, activity)

        self._fly(work, self._take(1), is_order=False)
        return Begun(ActivityKind.START, site.target)

    def _finish_counter(
        self, site: Site, counter: Worker, problem: Failure | None, activity: Activity
    ) -> Iterator[Event]:
        yield activity
        if problem is None:
            site.idle.append(counter)
            return
        site.counters -= 1
        if site.counters:
            site.is_full = True
            return
        site.no_counter = problem
        yield from self._refuse_counts(site, activity)

    def _refuse_counts(self, site: Site, activity: Activity) -> Iterator[Event]:
        """Cases that are ready to be counted, and are not. Those that never get ready are told why not."""
        while site.no_counter is not None and site.countable:
            yield Outcome(site.countable.popleft(), site.no_counter, activity.began, activity.ended)

    def _start_count(self, site: Site, order: Order, counter: Worker | None) -> Event:
        prepared = site.ready[order.case]
        cores = self._take(1)

        def work() -> Callable[[], Iterator[Event]]:
            outcome = carry_out(site.lab, order, prepared, self._sampling, cores, counter)
            return lambda: self._finish_count(site, counter, outcome)

        self._fly(work, cores, is_order=True)
        return Begun(order, site.target)

    def _finish_count(self, site: Site, counter: Worker | None, outcome: Outcome) -> Iterator[Event]:
        if counter is None:
            site.is_counting_compiled = False
        else:
            site.idle.append(counter)
            self._counted += 1
            self._counted_s += outcome.ended - outcome.began
        yield outcome

    def _take(self, number: int) -> tuple[int, ...]:
        taken, self._free = self._free[:number], self._free[number:]
        return tuple(taken)

    def _fly(
        self, work: Callable[[], Callable[[], Iterator[Event]]], cores: tuple[int, ...], *, is_order: bool
    ) -> None:
        def run() -> None:
            try:
                finish = work()
            except BaseException as error:
                finish = functools.partial(_raise, error)
            self._end_sharing()
            self._done.put((thread, finish))

        with self._turns_lock:
            self._sharing += 1
        thread = threading.Thread(target=run, daemon=True)
        self._flights[thread] = is_order, cores
        thread.start()

    # --- what needs the machine for itself -----------------------------------------------------------

    def _is_time_to_time(self) -> bool:
        """As soon as everything that is to be timed is ready: people want times first."""
        is_preparing = any(site.stages or site.is_preparing for site in self._sites.values())
        return bool(self._to_time) and not is_preparing and not self._stop.requested

    def _time_in_turn(self) -> Iterator[Event]:
        """All that is to be timed, as soon as no other run is at work; the next alone, for one that gives way.

        One after the other, in this thread: whoever consumes events cannot be at work meanwhile.
        """
        if not self._turns.claim():
            yield from self._wait()
            return
        yield from self._stop_waiting()
        while self._to_time and not self._stop.requested:
            order = self._to_time.popleft()
            yield Begun(order, order.target)
            site = self._sites[order.target]
            outcome = carry_out(site.lab, order, site.ready[order.case], self._sampling, self._cores)
            if self._gives_way:
                self._turns.leave()
                yield outcome
                return
            yield outcome
        self._turns.leave()


def _raise(error: BaseException) -> Iterator[Event]:
    raise error


class LocalBackend:
    """Carries out orders on these cores. Workers stay until it is closed."""

    def __init__(
        self,
        cores: Sequence[int],
        environ: Mapping[str, str] = os.environ,
        make_lab: Callable[[Target, Mapping[str, str]], Lab] = Lab,
        *,
        for_program: bool = False,
    ) -> None:
        """`for_program`: whoever takes events may keep one for long, so other runs may have their turn after each time.

        Nobody is there to install what is missing either: without Valgrind, counting fails case by case.
        """
        self._for_program = for_program
        self._cores = tuple(cores)
        self._environ = environ
        self._make_lab = make_lab
        self._models = Models(environ)
        self._labs: dict[Target, Lab] = {}

    @property
    def slots(self) -> int:
        return len(self._cores)

    def open(self, plan: Plan) -> None:
        """Start a worker in each target, and see that Valgrind is there if it is needed."""
        if Metric.COUNT in plan.sampling.metrics and not self._for_program:
            find_valgrind(self._environ.get("PATH", os.defpath))
        for target in plan.targets:
            if target not in self._labs:
                self._labs[target] = self._make_lab(target, self._environ)
            self._labs[target].start()

    def execute(self, plan: Plan, orders: Sequence[Order], stop: StopRequest) -> Generator[Event, None, None]:
        sites = []
        for target in plan.targets:
            if own := [order for order in orders if order.target == target]:
                cases = list_cases_with_variants(plan, own)
                sites.append(Site(self._labs[target], plan.sampling, own, cases, self._models, self._environ))
        execution = Execution(sites, orders, plan.sampling, self._cores, stop, gives_way=self._for_program)
        try:
            yield from execution.run()
        finally:
            execution.give_up()

    def close(self) -> None:
        labs, self._labs = self._labs, {}
        for lab in labs.values():
            lab.abandon()
        self._models.close()


def list_cases_with_variants(plan: Plan, orders: Sequence[Order]) -> list[Case]:
    """The cases of these orders, and those that others of their group are held to, in the order of the plan."""
    wanted, references = {order.case for order in orders}, find_references(plan.cases)
    needed = {references.get(find_group(case)) for case in wanted if case.check is not None}
    return [case for case in plan.cases if case in wanted or case in needed]
