"""Who carries out what is asked for: this machine, or a Ray cluster."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import click

from torchmark.cli.output import echo
from torchmark.cluster.backend import ClusterBackend
from torchmark.cluster.opening import open_ray
from torchmark.errors import UsageError
from torchmark.runner.local import LocalBackend

LOCAL, RAY = "local", "ray"


@dataclasses.dataclass(frozen=True)
class Means:
    """What is to be used, as it was asked for."""

    backend: str = LOCAL
    address: str | None = None

    @property
    def is_ray(self) -> bool:
        """Whether a cluster is meant."""
        return self.backend == RAY

    def check(self, cores: str | None) -> None:
        """Refuse what does not go together. SetupError if Ray is not installed."""
        if not self.is_ray and self.address is not None:
            raise UsageError("--address is of a Ray cluster: give --backend ray with it.")
        if self.is_ray:
            if cores is not None:
                raise UsageError("--cores is of this machine: nodes of a cluster say themselves what they offer.")
            open_ray(self.address)

    def make_cluster(self, *, aligned: bool = False, together: bool = False) -> ClusterBackend:
        """The cluster; it is not connected to yet."""
        return ClusterBackend(open_ray(self.address, aligned=aligned, tell=_tell), _tell, together=together)

    def make(self, cores: Sequence[int]) -> LocalBackend | ClusterBackend:
        """What carries out the orders of a run."""
        return self.make_cluster() if self.is_ray else LocalBackend(cores)


def backend_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--backend` and `--address`, and hand them to it as `means`."""

    @functools.wraps(function)
    def with_options(*args: Any, backend: str, address: str | None, **kwargs: Any) -> Any:
        return function(*args, means=Means(backend, address), **kwargs)

    click.option(
        "--address",
        metavar="HOST:PORT",
        help="Which Ray cluster (RAY_ADDRESS, or the one that runs here, or a new one for this command).",
    )(with_options)
    click.option(
        "--backend",
        type=click.Choice([LOCAL, RAY]),
        default=LOCAL,
        help="Where to measure: on this machine, or on a Ray cluster (local).",
    )(with_options)
    return with_options


def _tell(text: str) -> None:
    echo(f"NOTE: {text}", err=True)
