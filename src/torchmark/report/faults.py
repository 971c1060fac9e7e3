"""Faults of definitions as text."""

from __future__ import annotations

from torchmark.model.fault import Fault


def describe_fault(fault: Fault) -> str:
    """Where, what, and what to try.

    >>> print(describe_fault(Fault("bench_a.py", ("nn", "add"), "Expected a name\\n  f(1)\\n    ^", "Try x.", line=3)))
    bench_a.py:3: nn / add
      Expected a name
        f(1)
          ^
      Try x.
    """
    place = fault.file if fault.line is None else f"{fault.file}:{fault.line}"
    lines = [*fault.message.splitlines(), *(fault.advice or "").splitlines()]
    return "\n".join(
        [f"{place}: {' / '.join(fault.label)}" if fault.label else place, *(f"  {line}" for line in lines)]
    )
