"""The messages between a parent and its worker, how they become JSON and back, and how they are framed."""

from __future__ import annotations

import array
import dataclasses
import json
import os
import signal
import socket
import struct
from collections.abc import Iterable, Sequence
from typing import Any, Union, get_args

from torchmark.errors import WorkerError
from torchmark.model.environment import Sdk
from torchmark.model.job import Job, SideBlocks
from torchmark.model.outcome import FailureKind, FirstCall
from torchmark.model.plain import (
    FieldRule,
    PlainError,
    Rules,
    at_least,
    every,
    from_plain,
    list_all_fields,
    name_kind,
    to_plain,
)
from torchmark.model.task import Times

HEADER = struct.Struct("!I")
# Times of half a million blocks, far more than any message of ours has; a length above it is not a length but something
# else that was written there. What is read takes up to twenty times that much memory.
LARGEST_FRAME_BYTES = 16 << 20
MOST_DESCRIPTORS = 8

Plain = dict[str, Any]


def pack(message: Plain) -> bytes:
    """One frame.

    >>> pack({"a": 1})
    b'\\x00\\x00\\x00\\x07{"a":1}'
    """
    text = json.dumps(message, separators=(",", ":")).encode()
    if len(text) > LARGEST_FRAME_BYTES:
        raise WorkerError(f"A message of {len(text)} bytes is too large to send.", kind="garbled")
    return HEADER.pack(len(text)) + text


class Unpacker:
    """Makes messages of bytes that arrive in pieces."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def is_empty(self) -> bool:
        """Whether all that was fed was complete messages."""
        return not self._buffer

    def feed(self, piece: bytes) -> list[Plain]:
        """Add a piece; gives the messages that are complete now."""
        self._buffer += piece
        messages = []
        while len(self._buffer) >= HEADER.size:
            (size,) = HEADER.unpack_from(self._buffer)
            if size > LARGEST_FRAME_BYTES:
                raise WorkerError(f"A frame of {size} bytes was announced: this is not a message.", kind="garbled")
            end = HEADER.size + size
            if len(self._buffer) < end:
                break
            messages.append(_parse(bytes(self._buffer[HEADER.size : end])))
            del self._buffer[:end]
        return messages


def _parse(text: bytes) -> Plain:
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WorkerError(f"A message is not JSON: {error}.", kind="garbled") from None
    if not isinstance(message, dict):
        raise WorkerError("A message is not a mapping.", kind="garbled")
    return message


def send(to: socket.socket, message: Plain, descriptors: tuple[int, ...] = ()) -> None:
    """Send one frame; copies of the descriptors arrive with its first bytes."""
    data = pack(message)
    sent = 0
    if descriptors:
        rights = array.array("i", descriptors)
        sent = to.sendmsg([data[: HEADER.size]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    to.sendall(data[sent:])


def receive(source: socket.socket) -> tuple[Plain, tuple[int, ...]] | None:
    """Wait for one frame and what comes with it; None when the other side has closed."""
    descriptors = array.array("i")
    size = descriptors.itemsize
    # Not for programs that the receiver starts.
    flags = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
    header, ancillary, _, _ = source.recvmsg(HEADER.size, socket.CMSG_SPACE(MOST_DESCRIPTORS * size), flags)
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % size])
    header += read_exactly(source, HEADER.size - len(header)) if header else b""
    if len(header) < HEADER.size:
        for descriptor in descriptors:
            os.close(descriptor)
        return None
    (length,) = HEADER.unpack(header)
    if length > LARGEST_FRAME_BYTES:
        raise WorkerError(f"A frame of {length} bytes was announced: this is not a message.", kind="garbled")
    text = read_exactly(source, length)
    return (_parse(text), tuple(descriptors)) if len(text) == length else None


def read_exactly(source: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer when the other side closes before.

    The kernel puts the parts together, as far as it can: a worker's heap must not depend on how many there were.
    """
    data = b""
    while len(data) < size:
        piece = source.recv(size - len(data), socket.MSG_WAITALL)
        if not piece:
            break
        data += piece
    return data


REPLAY = "torchmark_replay"

DISCARDED = "discarded"


def name_layout(layout: int) -> str:
    return f"layout {layout}"


def describe_status(status: int) -> tuple[FailureKind, str]:
    """From what `os.waitpid` said.

    >>> describe_status(11)
    (<FailureKind.CRASHED: 'crashed'>, 'was ended by SIGSEGV')
    """
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        return FailureKind.CRASHED, f"was ended by {name}"
    code = os.WEXITSTATUS(status)
    if code:
        return FailureKind.EXITED, f"exited with code {code}"
    return FailureKind.NO_RESULT, "ended without a result"


# Raised whenever a message changes its meaning. Both sides refuse to talk to another number.
PROTOCOL = 8

# Some thirty years: no process has measured anything for longer.
LONGEST_S = 1e9
# A worker cuts what it says of a failure at 20 000 characters. Several times that is not its own words.
LONGEST_TEXT = 100_000
# The most that Linux can be told to number processes up to, and the sixteen bits of a status.
MOST_PID = 1 << 22
MOST_STATUS = 0xFFFF

_FAILURES = frozenset(kind.value for kind in FailureKind)


@dataclasses.dataclass(frozen=True)
class Hello:
    """The first message: how to prepare. `library` is the one with the client requests; None without Valgrind."""

    protocol: int
    scratch: str
    library: str | None = None
    sys_path: tuple[str, ...] | None = None
    checking: bool = False
    compiling: bool = False
    """Whether to get `torch.compile` ready as well."""
    scripting: bool = False
    """Whether to get the loading of TorchScript ready as well."""
    frames: str | None = None
    """The library that makes Python functions visible to Callgrind, where they are to be."""


@dataclasses.dataclass(frozen=True)
class Ready:
    """The worker can take jobs; what it is made of."""

    protocol: int
    pid: int
    python_version: str
    torch_version: str
    cpu_capability: str | None
    debug_symbols: bool
    sdk: Sdk


@dataclasses.dataclass(frozen=True)
class Refused:
    """The worker cannot work, or cannot take this job; one word of why, and a sentence."""

    reason: str
    message: str
    traceback: str | None = None


@dataclasses.dataclass(frozen=True)
class Go:
    """Fork a child for the job that lies in the file that comes with this."""


@dataclasses.dataclass(frozen=True)
class Started:
    """A child was forked for the job."""

    pid: int


@dataclasses.dataclass(frozen=True)
class Ended:
    """The child and all it started are gone; `status` is as from `os.waitpid`."""

    status: int


@dataclasses.dataclass(frozen=True)
class Stop:
    """End the child that runs now."""


@dataclasses.dataclass(frozen=True)
class Counted:
    """The profiles of all layouts are written. `optimised_away`: of an empty loop, for the compiler left nothing.

    `functions` are the Python functions that were told apart, by their numbers: name, file, line.
    """

    optimised_away: bool = False
    functions: tuple[tuple[str, str, int], ...] = ()


@dataclasses.dataclass(frozen=True)
class Separate:
    """The setup started threads, so that the process cannot be forked: ask for one layout at a time."""

    threads: int


@dataclasses.dataclass(frozen=True)
class Raced:
    """The times of each statement. Blocks at the same position in two of them ran in one round."""

    results: tuple[Times, ...]


@dataclasses.dataclass(frozen=True)
class Gauged:
    """Seconds of one run, at best."""

    run_s: float


@dataclasses.dataclass(frozen=True)
class PairTimed:
    """The blocks of each side that ran here, in the order base, head."""

    sides: tuple[SideBlocks, ...]


@dataclasses.dataclass(frozen=True)
class Scripted:
    """The TorchScript model is in its file."""


@dataclasses.dataclass(frozen=True)
class Checked:
    """How two ways differ, or None; where one of them failed, which of the two, and how."""

    problem: str | None
    failed: int | None = None


@dataclasses.dataclass(frozen=True)
class Failed:
    """The user's code failed: a kind of failure, what happened, and the user's own traceback."""

    failure: str
    message: str
    traceback: str | None


Answer = Union[Counted, Separate, Times, Raced, Gauged, PairTimed, FirstCall, Scripted, Checked, Failed]
Message = Union[Hello, Ready, Refused, Go, Started, Ended, Stop, Answer, Job]


# Jobs are called by what is to be done.
_KINDS: dict[str, type[Any]] = {name_kind(kind).replace("_job", ""): kind for kind in get_args(Message)}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def _are_alike(series: Iterable[Sequence[object]]) -> bool:
    """Whether all have as many values."""
    return len(set(map(len, series))) <= 1


def _fits_function(part: str | int) -> bool:
    return len(part) <= LONGEST_TEXT if isinstance(part, str) else part >= 0


def _seconds(*fields: str) -> tuple[FieldRule, ...]:
    return every("a number of seconds", lambda value: bool(0 <= value <= LONGEST_S), *fields)


def _short(*fields: str) -> tuple[FieldRule, ...]:
    return every(f"of at most {LONGEST_TEXT} characters", lambda text: len(text) <= LONGEST_TEXT, *fields)


# What types do not tell of the messages that a worker sends.
RULES: Rules = {
    Times: (
        *at_least(1, "number_per_run"),
        FieldRule("raw_times", "at least one block", lambda times: bool(times.raw_times)),
        *_seconds("raw_times", "overhead_s"),
    ),
    Raced: (
        FieldRule(
            "results", "equally many blocks of each", lambda raced: _are_alike(one.raw_times for one in raced.results)
        ),
    ),
    Gauged: _seconds("run_s"),
    SideBlocks: (
        FieldRule("times", "as many as faults and switches", lambda one: _are_alike(vars(one).values())),
        *_seconds("times"),
        *at_least(0, "faults", "switches"),
    ),
    PairTimed: (
        FieldRule(
            "sides",
            "one or two, of equally many blocks",
            lambda timed: len(timed.sides) in (1, 2) and _are_alike(side.times for side in timed.sides),
        ),
    ),
    FirstCall: (
        *_seconds("first_s", "steady_s"),
        *at_least(0, "graphs", "graph_breaks", "abandoned", "cache_hits", "cache_misses"),
        *_short("breaks"),
    ),
    Counted: every(f"names and files of at most {LONGEST_TEXT} characters, and lines", _fits_function, "functions"),
    Checked: (*every("0 or 1", lambda number: number in (0, 1), "failed"), *_short("problem")),
    Failed: (*every("a kind of failure", _FAILURES.__contains__, "failure"), *_short("message", "traceback")),
    # Process 1 is nobody's child, and to signal the group 0 or 1 is to signal oneself or everybody.
    Started: every("the number of a process", lambda pid: bool(1 < pid <= MOST_PID), "pid"),
    Ended: every("a status of waitpid", lambda status: bool(0 <= status <= MOST_STATUS), "status"),
}


def encode(message: Message) -> Plain:
    """The message as JSON's types.

    >>> encode(Started(7))
    {'kind': 'started', 'pid': 7}
    """
    return {"kind": _NAMES[type(message)], **to_plain(message)}


def decode(plain: Plain) -> Message:
    """The message that `encode` gave this for. Whatever else it is, it is refused: a field that is not declared or is
    missing, a value of another type, a number that is not finite or out of bounds, a text or a list without end.

    >>> decode(encode(Started(7)))
    Started(pid=7)
    """
    fields = dict(plain)
    name = fields.pop("kind", None)
    if not isinstance(name, str) or name not in _KINDS:
        raise WorkerError(f"A message of an unknown kind arrived: {name!r:.80}.", kind="garbled")
    kind = _KINDS[name]
    try:
        return from_plain(kind, fields, kind.__name__, RULES)  # type: ignore[no-any-return]
    except PlainError as error:
        raise WorkerError(f"A message does not have the promised form: {error}", kind="garbled") from None


def prepare_to_decode() -> None:
    """Find out now what all messages consist of: a child of a zygote is to find that done, and its heap as it was."""
    list_all_fields(tuple(_KINDS.values()))
