"""What the examples share: how far a long loop is, an interrupt that keeps what was measured, and texts for tensors.

And a reader that has read enough, such as `head`, which is no reason for a traceback.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, NoReturn

import torchmark as benchmark

INTERRUPTED = 130


class UntilInterrupted:
    """A block that Ctrl-C ends; the program goes on behind it, with what there is.

    >>> with UntilInterrupted() as measuring:
    ...     raise KeyboardInterrupt
    >>> measuring.exit_code
    130
    """

    def __init__(self) -> None:
        self.exit_code = 0

    def __enter__(self) -> UntilInterrupted:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> bool:
        if not isinstance(error, KeyboardInterrupt):
            return False
        self.exit_code = INTERRUPTED
        print("\nInterrupted. This is what was measured until then.", file=sys.stderr)
        return True


def run(main: Callable[[], int]) -> NoReturn:
    """Run a program to its end, or until nobody reads what it prints."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would try once more to print the rest as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    raise SystemExit(code)


def show_progress(done: int, total: int, what: str = "") -> None:
    """Write over one line of the terminal; nothing where there is none."""
    if sys.stderr.isatty():
        line = f"{what} {done} / {total}".strip()
        print(f"\r{line:<60}", end="\n" if done == total else "", file=sys.stderr, flush=True)


def name_shape(shape: Iterable[int]) -> str:
    """Lengths, with powers of two recognisable from 16 on.

    >>> name_shape((1024, 8, 100))
    '2**10 x 8 x 100'
    """
    return " x ".join(f"2**{n.bit_length() - 1}" if n >= 16 and n & (n - 1) == 0 else str(n) for n in shape)


def name_order(order: Sequence[Any]) -> str:
    """In which order dimensions lie in memory; nothing where it is their own.

    >>> name_order((0, 1)), name_order((1, 0))
    ('', '1 0')
    """
    plain = [int(dim) for dim in order]
    return "" if plain == sorted(plain) else " ".join(map(str, plain))


def name_steps(steps: Sequence[int]) -> str:
    """Every how many elements are used of each dimension; nothing where it is all of them.

    >>> name_steps((1, 1)), name_steps((1, 4))
    ('', '1 4')
    """
    return " ".join(map(str, steps)) if any(step != 1 for step in steps) else ""


def name_time(seconds: float) -> str:
    """Three figures and a unit.

    >>> name_time(1.234e-5), name_time(0.9876)
    ('12.3 us', '988 ms')
    """
    unit, scale = benchmark.select_unit(seconds)
    value = seconds / scale
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"


def positive(text: str) -> int:
    """An option that counts something."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def duration(text: str) -> float:
    """An option that is a number of seconds."""
    seconds = float(text)
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds")
    return seconds


def percentage(text: str) -> float:
    """An option that is a share, as a number of percent."""
    percent = float(text)
    if not 0 <= percent < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no number of percent from 0")
    return percent


def seed(text: str) -> int:
    """An option that inputs follow from."""
    number = int(text)
    if not 0 <= number < 2**32:
        raise argparse.ArgumentTypeError(f"{number} is not from 0 to 2**32 - 1")
    return number
