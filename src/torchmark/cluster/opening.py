"""From a plan to a Ray cluster that can carry it out. Ray is loaded here and nowhere else, and only when it is used."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable, Mapping

from torchmark import __version__
from torchmark.cluster.fleet import Fleet
from torchmark.cluster.parcels import Outset
from torchmark.errors import SetupError
from torchmark.model.plan import Plan
from torchmark.runner.spec import visible_path
from torchmark.runner.variables import travels

Open = Callable[[Plan], tuple[Fleet, Outset]]


def open_ray(address: str | None, environ: Mapping[str, str] = os.environ, *, aligned: bool = False) -> Open:
    """How to connect, for a back end. SetupError if Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise SetupError("Ray is not installed:", missing="ray", advice="pip install 'torchmark[ray]'.")

    def connect(plan: Plan) -> tuple[Fleet, Outset]:
        # Before Ray is loaded: it adds to the path that modules are found by, whose length is counted.
        outset = make_outset(plan, environ, aligned=aligned)
        module = importlib.import_module("torchmark.cluster.ray_fleet")
        module.connect(address)
        return module.RayFleet(outset), outset

    return connect


def make_outset(plan: Plan, environ: Mapping[str, str], *, aligned: bool = False) -> Outset:
    """What nodes have to know to measure as this process would."""
    variables = tuple(sorted((name, value) for name, value in environ.items() if travels(name)))
    return Outset(
        __version__, plan.targets, plan.sampling, os.getcwd(), tuple(visible_path()), variables, aligned=aligned
    )
