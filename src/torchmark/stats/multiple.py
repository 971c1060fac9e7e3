"""Many tests at once: which of them to believe."""

from __future__ import annotations

from collections.abc import Sequence


def benjamini_hochberg(p_values: Sequence[float], rate: float) -> tuple[bool, ...]:
    """Which are accepted, so that on average no more than `rate` of those accepted are false.

    The k-th smallest of m is held to k/m of the rate. The largest that passes is accepted, and so are all below it.

    >>> benjamini_hochberg([0.5, 0.01, 0.03], rate=0.05)
    (False, True, True)
    """
    ordered = sorted(p_values)
    passing = (p for rank, p in enumerate(ordered, start=1) if p <= rank * rate / len(ordered))
    limit = max(passing, default=None)
    return tuple(limit is not None and p <= limit for p in p_values)
