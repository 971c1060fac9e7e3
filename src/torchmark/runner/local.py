"""The back end of this machine: counting and preparing share its cores, whatever is timed has it alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence

from torchmark.callgrind.command import find_valgrind
from torchmark.model.case import Case
from torchmark.model.outcome import Event
from torchmark.model.plan import Metric, Order, Plan, Target
from torchmark.runner.artefacts import Models
from torchmark.runner.backend import Stop
from torchmark.runner.lab import Lab
from torchmark.runner.scheduling import Execution
from torchmark.runner.sites import Site


class LocalBackend:
    """Carries out orders on these cores. Workers stay until it is closed."""

    def __init__(
        self,
        cores: Sequence[int],
        environ: Mapping[str, str] = os.environ,
        make_lab: Callable[[Target, Mapping[str, str]], Lab] = Lab,
    ) -> None:
        self._cores = tuple(cores)
        self._environ = environ
        self._make_lab = make_lab
        self._models = Models(environ)
        self._labs: dict[Target, Lab] = {}

    @property
    def slots(self) -> int:
        """One for each core."""
        return len(self._cores)

    def open(self, plan: Plan) -> None:
        """Start a worker in each target, and see that Valgrind is there if it is needed."""
        if Metric.COUNT in plan.sampling.metrics:
            find_valgrind(self._environ.get("PATH", os.defpath))
        for target in plan.targets:
            if target not in self._labs:
                self._labs[target] = self._make_lab(target, self._environ)
            self._labs[target].start()

    def execute(self, plan: Plan, orders: Sequence[Order], stop: Stop) -> Generator[Event, None, None]:
        """Carry out orders; see `Backend`."""
        sites = []
        for target in plan.targets:
            own = [order for order in orders if order.target == target]
            if own:
                cases = list_cases_with_witnesses(plan, own)
                sites.append(Site(self._labs[target], plan.sampling, own, cases, self._models, self._environ))
        execution = Execution(sites, orders, plan.sampling, self._cores, stop)
        try:
            yield from execution.run()
        finally:
            execution.give_up()

    def close(self) -> None:
        """End all workers, at once."""
        labs, self._labs = self._labs, {}
        for lab in labs.values():
            lab.abandon()
        self._models.close()


def list_cases_with_witnesses(plan: Plan, orders: Sequence[Order]) -> list[Case]:
    """The cases of these orders, and those that others of their group are held to, in the order of the plan."""
    wanted = {order.case for order in orders}
    groups = {(case.suite, case.label, case.autolabels.autograd) for case in wanted if case.check is not None}
    needed: list[Case] = []
    for case in plan.cases:
        group = (case.suite, case.label, case.autolabels.autograd)
        is_witness = group in groups and case.check is not None
        if is_witness:
            groups.discard(group)
        if case in wanted or is_witness:
            needed.append(case)
    return needed
