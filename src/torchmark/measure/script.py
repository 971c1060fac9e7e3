"""A statement as a program of its own, which runs it over and over: for whatever looks at a process from outside."""

from __future__ import annotations

import ast

from torchmark.measure.parsing import parse_text
from torchmark.measure.snippet import Fill
from torchmark.measure.source import STMT_NAME

# Blocks grow until one takes ten milliseconds, so that reading the clock does not show. The setup runs before
# `_torchmark_measure`, and is known by that.
_SCRIPT = """
import sys
import time

import torch


def _torchmark_loop(_torchmark_clock, _torchmark_seconds):
    _SETUP_GOES_HERE_
    yield
    _torchmark_number = 1
    _torchmark_end = _torchmark_clock() + _torchmark_seconds
    while True:
        _torchmark_start = _torchmark_clock()
        if _torchmark_start > _torchmark_end:
            break
        for _torchmark_run in range(_torchmark_number):
            _STMT_GOES_HERE_
        if _torchmark_clock() - _torchmark_start < 0.01:
            _torchmark_number *= 2


def _torchmark_measure(loop):
    next(loop, None)


sys.path[0] = sys.argv[1]
torch.set_num_threads(int(sys.argv[2]))
prepared = _torchmark_loop(time.perf_counter, float(sys.argv[3]))
next(prepared)
_torchmark_measure(prepared)
"""


def write_script(stmt: str, setup: str) -> str:
    """The program. Its arguments are the working folder, the number of threads, and for how many seconds to run.

    The texts are joined as syntax trees, so strings stay whole.

    >>> print(*write_script("x + 1", "x = 'a'").splitlines()[4:7], sep="\\n")
    def _torchmark_loop(_torchmark_clock, _torchmark_seconds):
        x = 'a'
        yield
    """
    parts = {"_SETUP_GOES_HERE_": parse_text(setup, "<setup>"), "_STMT_GOES_HERE_": parse_text(stmt, STMT_NAME)}
    return ast.unparse(ast.fix_missing_locations(Fill(parts).visit(ast.parse(_SCRIPT))))
