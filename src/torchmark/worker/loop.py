"""How a zygote that measures time waits for work: the same as `torchmark_serve` in C, where no compiler is needed.

A child gets the descriptors of its job: where to answer, standard output, standard error, the file with the job, its
working folder, and one to ring with when it is done.
"""

from __future__ import annotations

import os
import select
import socket
import time

from torchmark.wire import frames
from torchmark.wire.messages import Ended, Go, Message, Refused, Started, Stop, decode, encode
from torchmark.worker.process import count_threads, end_group, reap_others

# How late the end of a child that did not ring is noticed, at most.
LOOKING_INTERVAL_S = 0.02


class ParentGone(Exception):
    """Nobody is there to work for."""


def serve_in_python(control: socket.socket) -> tuple[int, ...] | None:
    """Fork for every job. Returns in each child, with its descriptors; None when the parent is gone."""
    try:
        while True:
            received = frames.receive(control)
            if received is None:
                return None
            plain, descriptors = received
            # A Stop that came too late, after its job had ended, is none to act upon.
            if isinstance(decode(plain), Go):
                rope = _carry_out(control)
                if rope is not None:
                    control.close()
                    return (*descriptors, rope)
            for descriptor in descriptors:
                os.close(descriptor)
    except ParentGone:
        return None


def _carry_out(control: socket.socket) -> int | None:
    """Fork, and wait for the child's end. In the child: the descriptor to ring with."""
    threads = count_threads()
    if threads != 1:
        _send(control, Refused("threads", f"has {threads} threads and cannot be forked"))
        return None
    bell, rope = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(bell)
        return rope
    os.close(rope)
    try:
        _send(control, Started(pid))
        _await_end(pid, control, bell)
    finally:
        # Before its status is taken, or its number would no longer stand for its group.
        end_group(pid)
        _, status = os.waitpid(pid, 0)
        reap_others()
        os.close(bell)
    _send(control, Ended(status))
    return None


def _await_end(pid: int, control: socket.socket, bell: int) -> None:
    """Until the child has rung the bell or ended, or the parent says stop.

    A child that just ends is found by looking: the other means that Linux has are unknown to Valgrind, or would be
    counted, and both kinds of zygote shall behave alike.
    """
    # Not select(), which knows no descriptors above a thousand.
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(bell, select.POLLIN)
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        ready = dict(poll.poll(LOOKING_INTERVAL_S * 1000))
        if control.fileno() in ready:
            received = frames.receive(control)
            if received is None:
                raise ParentGone
            if isinstance(decode(received[0]), Stop):
                return
        elif bell in ready:
            if os.read(bell, 1):
                return
            # Closed without a ring: the child is about to end, or has closed what is not its own.
            time.sleep(LOOKING_INTERVAL_S)


def _send(control: socket.socket, message: Message) -> None:
    try:
        frames.send(control, encode(message))
    except OSError as error:
        raise ParentGone from error
