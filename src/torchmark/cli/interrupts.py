"""What interrupts mean to a command that has begun something: the first asks it to stop, the next ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from torchmark.runner.backend import Stop

STOPPING = "\nStopping when what has begun is done. Interrupt again to stop at once.\n"


class Ended(KeyboardInterrupt):
    """The system or an administrator asked this program to end; `number` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextlib.contextmanager
def interrupts_stop(stop: Stop) -> Iterator[None]:
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
            raise Ended(number)

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
