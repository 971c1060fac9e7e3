"""The first of our modules that runs in a worker: shakes hands, and finds out whether torch can be had at all.

Apart from the zygote, which imports torch: this must run where there is none, and in an old Python.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import traceback

from torchmark.worker import protocol
from torchmark.worker.protocol import PROTOCOL, Hello, Refused, decode, encode


def main(control: socket.socket) -> None:
    """Greet the parent, then serve it for as long as it lives. Ends the process."""
    hello = None
    # A program may ignore the end of its children, which would be handed down to us.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        hello = _greet(control)
        if hello is not None:
            _work(control, hello)
    except BaseException:
        traceback.print_exc()
    finally:
        if hello is not None:
            remove_folder(hello.scratch)
        # An ordinary exit would make Callgrind write one more profile.
        os.kill(os.getpid(), signal.SIGKILL)


def _greet(control: socket.socket) -> Hello | None:
    received = protocol.receive(control)
    if received is None:
        return None
    hello = decode(received[0])
    if isinstance(hello, Hello) and hello.protocol == PROTOCOL:
        return hello
    message = f"This worker speaks protocol {PROTOCOL}, and was greeted with {hello!r:.60}."
    protocol.send(control, encode(Refused("protocol", message)))
    return None


def explain_unsupported(hello: Hello) -> str | None:
    """Why this interpreter cannot do what it is greeted for; None if it can.

    Counting calls functions of CPython's C API, and has only been seen to repeat to the instruction with the GIL.
    """
    if hello.library is None:
        return None
    if sys.implementation.name != "cpython":
        return f"It is {sys.implementation.name}, and instructions can only be counted in CPython."
    if "t" in sys.abiflags:
        return "It is a free-threaded build of Python, and instructions can only be counted in builds with the GIL."
    return None


def _work(control: socket.socket, hello: Hello) -> None:
    unsupported = explain_unsupported(hello)
    if unsupported is not None:
        protocol.send(control, encode(Refused("unsupported", unsupported)))
        return
    if hello.sys_path is not None:
        sys.path[:] = hello.sys_path
    try:
        import torch  # noqa: F401
    except BaseException as error:
        reason = "no_torch" if isinstance(error, ModuleNotFoundError) and error.name == "torch" else "broken_torch"
        text = "".join(traceback.format_exception_only(type(error), error)).strip()
        protocol.send(control, encode(Refused(reason, text, traceback.format_exc())))
        return
    # Needs torch, so not before.
    from torchmark.worker import zygote

    zygote.serve(control, hello)


def remove_folder(path: str) -> None:
    """With the files in it; another process may be doing the same."""
    with contextlib.suppress(OSError):
        for name in os.listdir(path):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(path, name))
        os.rmdir(path)
