from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import is_alive, wait_until
from torchmark.model.outcome import FailureKind
from torchmark.model.task import Times
from torchmark.runner.link import BOOTSTRAP, Ending, Link, LinkLost, _Talk, await_end, make_bundle
from torchmark.worker import protocol
from torchmark.worker.protocol import Counted, Ended, Failed, Message, Started, encode


def test_the_bundle_is_complete_and_has_nothing_else() -> None:
    sources = json.loads(make_bundle())
    assert {"torchmark", "torchmark.errors", "torchmark.worker.zygote", "torchmark.measure.snippet"} <= set(sources)
    assert not [name for name in sources if name.split(".")[1:2] in (["runner"], ["cli"], ["report"], ["api"])]
    # Ours re-exports names that are not in the bundle.
    assert sources["torchmark"] == ""


def test_it_can_be_imported_where_torchmark_is_not_installed() -> None:
    # Everything but what needs torch, in an interpreter without site-packages.
    code = BOOTSTRAP.replace(
        "from torchmark.worker.start import main\n    main(control)", "import torchmark.worker.start"
    )
    program = f"""
import json, os, socket, struct, sys
ours, theirs = socket.socketpair()
data = sys.stdin.buffer.read()
import threading
threading.Thread(target=lambda: ours.sendall(struct.pack("!I", len(data)) + data)).start()
os.dup2(theirs.fileno(), 0)
exec({code!r})
print(sys.modules["torchmark.worker.start"].__name__, "site-packages" in str(sys.path))
"""
    # By its standard input: one argument may not be that long.
    command = [sys.executable, "-I", "-S", "-c", program]
    done = subprocess.run(command, input=make_bundle(), capture_output=True)
    assert done.stdout == b"torchmark.worker.start False\n", done.stderr


TIMED = Times(1, (1.0,))


@pytest.fixture
def sleepers() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two programs, each in a session of its own."""
    found = [subprocess.Popen(["sleep", "1000"], start_new_session=True) for _ in range(2)]
    yield found
    for one in found:
        one.kill()
        one.wait()


def listen(zygote: int, said: list[Message], written: bytes = b"") -> Ending:
    ours, theirs = socket.socketpair()
    with contextlib.ExitStack() as stack:
        stack.enter_context(ours)
        for message in said:
            protocol.send(theirs, encode(message))
        theirs.close()
        ends = []
        for data in (written, b"", b""):
            read, write = os.pipe()
            ends.append(stack.enter_context(open(read, "rb", buffering=0)))
            os.write(write, data)
            os.close(write)
        return _Talk(ours, zygote, *ends).listen(10.0)


def test_a_process_that_the_zygote_has_not_started_is_not_believed(sleepers: list[subprocess.Popen[bytes]]) -> None:
    zygote, stranger = sleepers
    with pytest.raises(LinkLost, match="not its own") as caught:
        listen(zygote.pid, [Started(stranger.pid), Ended(9)])
    assert caught.value.started is None


def test_a_group_that_is_not_the_zygotes_is_never_killed(sleepers: list[subprocess.Popen[bytes]]) -> None:
    zygote, stranger = sleepers
    link = Link.__new__(Link)
    link._process = zygote
    link.kill(stranger.pid)
    assert zygote.poll() == -signal.SIGKILL
    assert stranger.poll() is None


@pytest.mark.parametrize("message", [TIMED, Counted(), Failed("raised", "x", None)])
def test_a_zygote_that_says_something_else_is_lost(message: Message) -> None:
    with pytest.raises(LinkLost, match="while a job ran"):
        listen(os.getsid(0), [message])
    ours, theirs = socket.socketpair()
    with ours, theirs:
        protocol.send(theirs, encode(message))
        with pytest.raises(LinkLost, match="while a job ran"):
            await_end(ours)


def test_a_zygote_that_says_nothing_readable_is_lost() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(protocol.HEADER.pack(8) + b'{"a": 1}')
        with pytest.raises(LinkLost, match="unknown kind"):
            await_end(ours)


def test_one_answer_of_a_process_that_waits_for_its_end_is_believed() -> None:
    ending = listen(os.getsid(0), [Started(os.getpid()), Ended(9)], protocol.pack(encode(TIMED)))
    assert ending.answer == TIMED


@pytest.mark.parametrize(
    "written",
    [
        protocol.pack(encode(TIMED)) * 2,
        protocol.pack(encode(TIMED)) + b"xxxxxxxx",
        protocol.pack(encode(TIMED)) + b"xx",
        b"xxxxxxxx" + protocol.pack(encode(TIMED)),
        protocol.pack({"kind": "unheard of"}) + protocol.pack(encode(TIMED)),
        protocol.pack({"a": 1})[:4] + b"[" * 7 + protocol.pack(encode(TIMED)),
    ],
)
def test_anything_beside_an_answer_makes_it_unbelievable(written: bytes) -> None:
    answer = listen(os.getsid(0), [Ended(9)], written).answer
    assert isinstance(answer, Failed)
    assert answer.failure == FailureKind.NO_RESULT.value


@pytest.mark.parametrize("status", [0, 1 << 8, signal.SIGSEGV])
def test_an_answer_of_a_process_that_then_ends_by_itself_is_none(status: int) -> None:
    assert listen(os.getsid(0), [Ended(status)], protocol.pack(encode(TIMED))).answer is None
    failed = Failed("raised", "ValueError", None)
    assert listen(os.getsid(0), [Ended(status)], protocol.pack(encode(failed))).answer == failed


# Has a worker that never comes up, and tells its number.
PROGRAM = """
import os, sys, threading
from torchmark.runner.link import Link
from torchmark.worker.protocol import PROTOCOL, Hello
def tell(process):
    print(process.pid, flush=True)
command = ["sh", "-c", "sleep 1000", "sh"]
start = lambda: Link(command, dict(os.environ), Hello(PROTOCOL, sys.argv[1]), tell)
# As the program does it: the thread that starts a worker may end before it.
threading.Thread(target=start).start()
"""


def test_a_worker_that_is_starting_ends_with_a_program_that_is_killed(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(scratch)], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        worker = int(program.stdout.readline())
        program.kill()
    wait_until(lambda: not is_alive(worker) and not scratch.exists())
