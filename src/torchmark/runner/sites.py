"""Where a target stands while orders are carried out: what is to be made ready, what is ready, and who counts."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence

from torchmark.model.case import Case
from torchmark.model.plan import Metric, Order, Sampling, Target
from torchmark.runner.artefacts import Models
from torchmark.runner.comparing import Prepared
from torchmark.runner.lab import Lab
from torchmark.runner.preparing import Preparation
from torchmark.runner.worker import Worker


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
        preparation = Preparation(lab.bench(sampling.timeout_s), models, environ, self.stop)
        self.stages = deque(preparation.stages(cases))
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

    @property
    def has_plain_counts(self) -> bool:
        """Whether there is, or will be, something for a worker that counts."""
        return bool(self.countable) or any(order.case.parts is None for order in self.waiting)

    @property
    def has_more(self) -> bool:
        """Whether anything that shares the machine is still to begin."""
        return bool(self.stages or self.waiting or self.countable or self.compiled)

    @property
    def is_prepared(self) -> bool:
        """Whether all cases are ready, or never will be."""
        return not self.stages and not self.is_preparing
