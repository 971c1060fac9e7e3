"""The interface of back ends, which turn orders into events; and how an interrupt stops one."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from types import FrameType
from typing import Protocol

from torchmark.model.outcome import Event
from torchmark.model.plan import Order, Plan


class StopRequest:
    """Whether what has not begun yet shall not begin any more. Can be said from anywhere, also from a signal."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def request(self) -> None:
        """Begin nothing more."""
        self._event.set()

    @property
    def requested(self) -> bool:
        """Whether that was said."""
        return self._event.is_set()


class Backend(Protocol):
    """Whoever carries out orders."""

    @property
    def slots(self) -> int:
        """How many cases may be counted at once, once it is open."""

    def open(self, plan: Plan) -> None:
        """Find out whether that can be done at all. SetupError says what is missing."""

    def execute(self, plan: Plan, orders: Sequence[Order], stop: StopRequest) -> Generator[Event, None, None]:
        """Carry out some orders of a plan. Each has exactly one outcome, unless `stop` is requested meanwhile.

        Nothing is measured by the clock while the caller has an event in hand.
        """

    def close(self) -> None:
        """End all that was started, at once."""


STOPPING = "\nStopping when what has begun is done. Interrupt again to stop at once.\n"


class Terminated(KeyboardInterrupt):
    """The system or an administrator asked this program to end; `number` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextlib.contextmanager
def interrupts_stop(stop: StopRequest) -> Iterator[None]:
    """Within this, an interrupt requests a stop, a second one is a KeyboardInterrupt, and so is an order to end."""
    if threading.current_thread() is not threading.main_thread():
        # Only there can signals be handled.
        yield
        return

    interrupted = ending = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        if interrupted:
            raise KeyboardInterrupt
        interrupted = True
        stop.request()
        with contextlib.suppress(OSError, AttributeError, ValueError):
            # Not by way of a stream that may be in the middle of writing.
            os.write(sys.stderr.fileno(), STOPPING.encode())

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal ending
        # A terminal that is closed says so more than once. Whoever is ending already is not to be kept from it.
        if not ending:
            ending = True
            raise Terminated(number)

    with contextlib.ExitStack() as stack:
        handlers: dict[int, Callable[[int, FrameType | None], None]] = {
            signal.SIGINT: interrupt,
            signal.SIGTERM: end,
            signal.SIGHUP: end,
        }
        for number, handler in handlers.items():
            # Who was started with an interrupt ignored, as by nohup, goes on ignoring it.
            if signal.getsignal(number) is not signal.SIG_IGN:
                stack.callback(signal.signal, number, signal.signal(number, handler))
        yield
