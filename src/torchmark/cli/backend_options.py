"""Where commands measure: on this machine, or on a cluster.

Apart from the other options, because it loads what measures.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from torchmark.cli.options import give_together
from torchmark.cli.output import echo
from torchmark.errors import UsageError
from torchmark.runner.local import LocalBackend

if TYPE_CHECKING:
    from torchmark.runner.cluster.backend import ClusterBackend

LOCAL, RAY = "local", "ray"


@dataclasses.dataclass(frozen=True)
class BackendChoice:
    """What is to be used, as it was asked for."""

    backend: str = LOCAL
    address: str | None = None

    @property
    def is_ray(self) -> bool:
        return self.backend == RAY

    def check(self, cores: str | None) -> None:
        """Refuse what does not go together. SetupError if Ray is not installed."""
        if not self.is_ray and self.address is not None:
            raise UsageError("--address is of a Ray cluster: give --backend ray with it.")
        if self.is_ray:
            if cores is not None:
                raise UsageError("--cores is of this machine: nodes of a cluster say themselves what they offer.")
            from torchmark.runner.cluster.backend import open_ray

            open_ray(self.address)

    def make_cluster(self, *, aligned: bool = False, together: bool = False) -> ClusterBackend:
        """The cluster; it is not connected to yet."""
        from torchmark.runner.cluster.backend import ClusterBackend, open_ray

        return ClusterBackend(open_ray(self.address, aligned=aligned, notify=_tell), _tell, together=together)

    def make(self, cores: Sequence[int]) -> LocalBackend | ClusterBackend:
        """What carries out the orders of a run."""
        return self.make_cluster() if self.is_ray else LocalBackend(cores)


backend_options = give_together(
    "means",
    BackendChoice,
    click.option(
        "--backend",
        type=click.Choice([LOCAL, RAY]),
        default=LOCAL,
        help="Where to measure: on this machine, or on a Ray cluster (local).",
    ),
    click.option(
        "--address",
        metavar="HOST:PORT",
        help="Which Ray cluster (RAY_ADDRESS, or the one that runs here, or a new one for this command).",
    ),
)


def _tell(text: str) -> None:
    echo(f"NOTE: {text}", err=True)
