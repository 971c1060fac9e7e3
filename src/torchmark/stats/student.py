"""Student's t distribution: quantiles and tails.

scipy is loaded when the first is asked for: that takes half a second, which nobody waits for to read of a mistake.
"""

from __future__ import annotations


def quantile(p: float, df: float) -> float:
    """The value that t with `df` degrees of freedom stays below with probability `p`.

    >>> round(quantile(0.975, 5), 3)
    2.571
    """
    from scipy.special import stdtrit  # type: ignore[import-untyped]

    return float(stdtrit(df, p))


def one_sided_p(t: float, df: float) -> float:
    """How probable a value of at least `t` is.

    >>> round(one_sided_p(1.0, 1), 3)
    0.25
    """
    from scipy.special import stdtr

    return float(stdtr(df, -t))


def two_sided_p(t: float, df: float) -> float:
    """How probable a value at least as far from zero as `t` is.

    >>> round(two_sided_p(-1.0, 1), 3)
    0.5
    """
    return 2 * one_sided_p(abs(t), df)
