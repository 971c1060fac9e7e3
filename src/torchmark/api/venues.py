"""Where the cases of a comparison are counted and timed: a venue makes bouts of them, and has a place to hold these in.

This machine is one; others follow the same protocol.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from torchmark.api.abreast import Note, be_silent
from torchmark.api.comparison import Comparison, Entry
from torchmark.api.contest import Timing
from torchmark.api.referee import Place
from torchmark.model.bout import Bout, Part
from torchmark.model.case import Case
from torchmark.model.comparison import NotTimed
from torchmark.model.judgement import Side, SideFailure
from torchmark.model.outcome import Failure
from torchmark.model.task import Language
from torchmark.runner.aliases import Aliases
from torchmark.runner.arena import Arena, Corner
from torchmark.runner.artefacts import Models
from torchmark.runner.backend import Backend, Stop
from torchmark.runner.lab import Lab
from torchmark.runner.local import LocalBackend
from torchmark.runner.parts import make_parts
from torchmark.runner.turns import Turns

WAITING_S = 0.25


class Venue(Protocol):
    """A machine that is to be had for timing. No two venues are on the same one, for they are used at once.

    All but `close` is asked for in one thread at a time, and raises PlaceLost once the machine is gone.
    """

    def prepare(self, entries: Sequence[Entry]) -> Mapping[Entry, Bout | Timing]:
        """A bout of each, or what is known of it where none can be held. Asked for again if more entries come."""

    @property
    def place(self) -> Place:
        """Where bouts are held, always the same. Asked for once there are some: then the machine is for them alone."""

    def close(self) -> None:
        """End all that was started, at once. Can be said more than once."""


class LocalVenue:
    """This machine."""

    def __init__(
        self,
        comparison: Comparison,
        cores: Sequence[int],
        environ: Mapping[str, str] = os.environ,
        *,
        stop: Stop | None = None,
        note: Note = be_silent,
    ) -> None:
        """`note` hears of waiting for other runs of torchmark, which ends once `stop` is requested."""
        self._comparison = comparison
        self._cores = cores
        self._environ = environ
        self._stop = stop or Stop()
        self._note = note
        self._stack = contextlib.ExitStack()

    def prepare(self, entries: Sequence[Entry]) -> dict[Entry, Bout | Timing]:
        """TorchScript is made and C++ compiled where that is needed, for both sides."""
        parts = [
            self._make_parts(side, [entry.base if side is Side.BASE else entry.head for entry in entries])
            for side in Side
        ]
        return {entry: _prepare(entry, *parts) for entry in entries}

    @functools.cached_property
    def place(self) -> Place:
        """Workers in several layouts of memory; none is started before that is asked for."""
        arena = self._open_arena()
        self._stack.callback(arena.close)
        claim_machine(self._stack, self._stop, self._note)
        return arena

    def close(self) -> None:
        """End all workers, and leave the machine to others."""
        self._stack.close()

    def _make_parts(self, side: Side, cases: Sequence[Case]) -> dict[Case, Part | Failure]:
        comparison = self._comparison
        lab = Lab(comparison.base if side is Side.BASE else comparison.head, self._environ)
        self._stack.callback(lab.abandon)
        plain = list(dict.fromkeys(case for case in cases if case.parts is None))
        return make_parts(plain, lab, self._models, self._environ, comparison.timeout_s)

    @functools.cached_property
    def _models(self) -> Models:
        return self._stack.enter_context(Models(self._environ))

    def _open_arena(self) -> Arena:
        comparison = self._comparison
        return Arena(
            Corner(comparison.base.python),
            Corner(comparison.head.python),
            self._cores,
            self._environ,
            together=runs_together(comparison),
            timeout_s=comparison.timeout_s,
        )


def count_here(comparison: Comparison, cores: Sequence[int], stack: contextlib.ExitStack) -> Backend:
    """This machine, to count with. The length of a path moves counts: both sides have names of one length."""
    aliases = stack.enter_context(contextlib.closing(Aliases()))
    names = aliases.give_targets(comparison.plan.targets, os.environ)
    backend = LocalBackend(cores, make_lab=lambda target, environ: Lab(target, environ, names.get(target)))
    stack.enter_context(contextlib.closing(backend))
    backend.open(comparison.plan)
    return backend


def runs_together(comparison: Comparison) -> bool:
    """Whether both sides run in one process: that takes half of the workers, and is a little sharper.

    Two statements of Python can do so.
    """
    here = comparison.base == comparison.head
    python = all(entry.head.args.language == Language.PYTHON for entry in comparison.entries)
    return here and python and all(entry.is_of_two for entry in comparison.entries)


def _prepare(entry: Entry, bases: Mapping[Case, Part | Failure], heads: Mapping[Case, Part | Failure]) -> Bout | Timing:
    if entry.base.parts is not None or entry.head.parts is not None:
        return Timing(None, (NotTimed("compiles"),))
    base, head = bases[entry.base], heads[entry.head]
    if isinstance(base, Part) and isinstance(head, Part):
        return Bout(base, head)
    sides = zip(Side, (base, head), strict=True)
    return Timing(None, failures=tuple(SideFailure(side, one) for side, one in sides if isinstance(one, Failure)))


def claim_machine(stack: contextlib.ExitStack, stop: Stop, note: Note) -> None:
    """Have the machine for this alone, as far as other runs of torchmark go, until the stack is left."""
    turns = Turns()
    stack.callback(turns.close)
    while not turns.claim() and not stop.requested:
        note("waiting", 0, 0)
        time.sleep(WAITING_S)
    stack.callback(turns.leave)
