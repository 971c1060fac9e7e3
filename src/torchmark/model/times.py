"""The raw result of timing: block times as they were read off the clock, in the order they were taken."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Times:
    """Block times in seconds; each block ran the statement `number_per_run` times.

    `overhead_s` is what a block that runs the statement no time at all takes, where it was measured. `optimised_away`
    tells of a compiled statement of which the compiler left nothing.

    >>> Times(10, (2.0, 3.0)).per_run
    (0.2, 0.3)
    """

    number_per_run: int
    raw_times: tuple[float, ...]
    overhead_s: float | None = None
    optimised_away: bool = False

    @property
    def per_run(self) -> tuple[float, ...]:
        """Seconds per execution of the statement, one value a block."""
        return tuple(t / self.number_per_run for t in self.raw_times)
